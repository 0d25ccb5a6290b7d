//! An instruction that QEMU translates, and what is called of it.

use std::ffi::c_void;

use crate::api::{self, Block, ExecutedCallback, Instruction, NO_REGISTERS};

/// An instruction of a block that is translated.
pub struct Translated {
    /// QEMU's.
    pub instruction: *mut Instruction,
    /// Where it is in the machine's virtual memory.
    pub address: u64,
    /// Bytes.
    pub size: usize,
    /// Where it is in this process, which has mapped the machine's memory; null: nowhere.
    place: *const u8,
}

impl Translated {
    /// The instruction of this number in a block.
    pub fn of(block: *const Block, number: usize) -> Self {
        // SAFETY: the block is QEMU's, valid while it is translated, and has so many instructions.
        unsafe {
            let instruction = api::qemu_plugin_tb_get_insn(block, number);
            Self {
                instruction,
                address: api::qemu_plugin_insn_vaddr(instruction),
                size: api::qemu_plugin_insn_size(instruction),
                place: api::qemu_plugin_insn_haddr(instruction).cast(),
            }
        }
    }

    /// Its bytes; none where they are not in memory, or in two pages of it.
    pub fn bytes(&self) -> &[u8] {
        if self.place.is_null() || self.address % 4096 + self.size as u64 > 4096 {
            return &[];
        }
        // SAFETY: the bytes of an instruction lie in the machine's memory, within one page, which this process has mapped.
        unsafe { std::slice::from_raw_parts(self.place, self.size) }
    }

    /// Has `callback` called each time that it is executed.
    pub fn when_executed(&self, callback: ExecutedCallback, data: *mut c_void) {
        // SAFETY: QEMU's instruction; whoever gives the callback gives what it takes.
        unsafe {
            api::qemu_plugin_register_vcpu_insn_exec_cb(self.instruction, callback, NO_REGISTERS, data);
        }
    }

    /// Has `callback` called of each of its loads and stores.
    pub fn when_it_accesses(&self, callback: api::MemoryCallback, data: *mut c_void) {
        // SAFETY: as for `when_executed`.
        unsafe {
            api::qemu_plugin_register_vcpu_mem_cb(self.instruction, callback, NO_REGISTERS, api::BOTH, data);
        }
    }
}
