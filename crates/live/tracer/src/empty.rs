//! Calls that do nothing, where the recorder has its own: what QEMU's calls into a plugin cost by themselves
//! (`scripts/recorder`). No ring, no trace.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::api::{self, BOTH, Block, Id, NO_REGISTERS};

/// Whether there is a call for each block, too.
static BLOCKS: AtomicBool = AtomicBool::new(false);

/// Begins: a call for each load and store, and, where `what` is `blocks`, one for each block.
pub fn begin(id: Id, what: &[u8]) {
    BLOCKS.store(what == b"blocks", Relaxed);
    // SAFETY: QEMU's function with this plugin's number, from its install function as it wants it.
    unsafe { api::qemu_plugin_register_vcpu_tb_trans_cb(id, translate) };
}

extern "C" fn translate(_: Id, block: *mut Block) {
    // SAFETY: the block is QEMU's, valid during this call, and has so many instructions; the callbacks take no data.
    unsafe {
        for number in 0..api::qemu_plugin_tb_n_insns(block) {
            let instruction = api::qemu_plugin_tb_get_insn(block, number);
            api::qemu_plugin_register_vcpu_mem_cb(instruction, access, NO_REGISTERS, BOTH, ptr::null_mut());
        }
        if BLOCKS.load(Relaxed) {
            api::qemu_plugin_register_vcpu_tb_exec_cb(block, executed, NO_REGISTERS, ptr::null_mut());
        }
    }
}

extern "C" fn access(_: c_uint, _: u32, _: u64, _: *mut c_void) {}

extern "C" fn executed(_: c_uint, _: *mut c_void) {}
