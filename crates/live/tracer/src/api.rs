//! The part of QEMU's plugin interface that is used (include/qemu/qemu-plugin.h). Tried with QEMU 7.2 alone.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The plugin's number.
pub type Id = u64;
/// `QEMU_PLUGIN_CB_NO_REGS`: the callback does not look at registers.
pub const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_MEM_RW`: loads and stores.
pub const BOTH: c_int = 3;

/// The beginning of `qemu_info_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Info {
    /// The architecture that is emulated.
    pub target_name: *const c_char,
    /// The least version of the interface that is supported.
    pub least: c_int,
    /// The present one.
    pub present: c_int,
    /// Whether a machine is emulated and not a program.
    pub system: bool,
}

/// A block of instructions while it is translated.
pub enum Block {}
/// One of its instructions.
pub enum Instruction {}

/// Where an access goes in the machine's physical memory.
pub enum Place {}

/// What is called of a memory access: processor, what it is, address, what was registered.
pub type MemoryCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// What is called when an instruction is executed: processor, what was registered.
pub type ExecutedCallback = extern "C" fn(c_uint, *mut c_void);

unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: ExecutedCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    pub fn qemu_plugin_insn_haddr(instruction: *const Instruction) -> *mut c_void;
    pub fn qemu_plugin_register_vcpu_init_cb(id: Id, callback: extern "C" fn(Id, c_uint));
    pub fn qemu_plugin_register_vcpu_exit_cb(id: Id, callback: extern "C" fn(Id, c_uint));
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: extern "C" fn(Id, *mut Block));
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        callback: extern "C" fn(c_uint, *mut c_void),
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        callback: MemoryCallback,
        flags: c_int,
        rw: c_int,
        data: *mut c_void,
    );
    #[rustfmt::skip]
    pub fn qemu_plugin_register_vcpu_syscall_cb(
        id: Id,
        callback: extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64),
    );
    pub fn qemu_plugin_register_vcpu_syscall_ret_cb(id: Id, callback: extern "C" fn(Id, c_uint, i64, i64));
    pub fn qemu_plugin_register_atexit_cb(
        id: Id,
        callback: extern "C" fn(Id, *mut c_void),
        data: *mut c_void,
    );
    pub fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    pub fn qemu_plugin_get_hwaddr(what: u32, address: u64) -> *mut Place;
    pub fn qemu_plugin_hwaddr_is_io(place: *const Place) -> bool;
    pub fn qemu_plugin_hwaddr_phys_addr(place: *const Place) -> u64;
    pub fn qemu_plugin_mem_size_shift(what: u32) -> c_uint;
    pub fn qemu_plugin_mem_is_store(what: u32) -> bool;
    pub fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
}
