//! The references of a program under QEMU, written into a ring that pagelab reads.
//!
//! A plugin of QEMU's translator: it is called when a block of instructions is translated, and has calls to itself put
//! into the generated code, one for each block (its instruction fetches) and one for each load and store (`executions`). A
//! block's fetches come before its loads and stores. What the kernel reads and writes of the program's memory is not
//! seen. Programs that the recorded one executes are recorded with it (`programs`).
//!
//! In a machine (`machine`) it writes what is referenced between two marks, with `machine=on`; or it counts instructions,
//! with the argument `count=PATH`, and with `caches=on` what they miss. With `empty=accesses` or `empty=blocks` its calls do
//! nothing (`empty`).
//!
//! Argument: `ring=PATH`, a file that pagelab has made; the mapping is all that stays of it, so the program's
//! descriptors are its own.

mod api;
mod blocks;
mod caches;
mod counts;
mod empty;
mod executions;
mod machine;
mod programs;
mod recorded;
mod ring;
mod stream;
mod threads;
mod touched;
mod translated;

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use api::{BOTH, Id, NO_REGISTERS};
use blocks::{Block, Reference};
use pagelab_ring::words::{FETCH, LOAD, STORE, key};
use recorded::{KINDS, SHIFT, STORES, crosses, near_end};

/// The version of the interface, and a mark by which pagelab finds it: these bytes stand nowhere else in this library.
#[repr(C)]
#[derive(Debug)]
pub struct Version {
    number: c_int,
    mark: [u8; 16],
}

/// The version that this is for: pagelab writes the one that its QEMU has into the copy that it hands over.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: Version = Version { number: 1, mark: *b"pagelab's tracer" };

/// The system calls that execute another program: execve, and execveat, which is left to the machine.
static EXECUTE: [AtomicU64; 2] = [const { AtomicU64::new(u64::MAX) }; 2];
/// The system call that ends the process, exit_group.
static EXIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Called by QEMU once, before the program begins.
///
/// # Safety
/// `info` and `arguments` are QEMU's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const api::Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU gives as many strings as it says.
    let arguments = (0..count as usize).map(|i| unsafe { CStr::from_ptr(*arguments.add(i)) });
    let arguments: Vec<&[u8]> = arguments.map(CStr::to_bytes).collect();
    let value = |key: &[u8]| arguments.iter().find_map(|argument| argument.strip_prefix(key));
    if let Some(path) = value(b"count=") {
        let wanted =
            machine::Wanted { caches: value(b"caches=").is_some(), pages: value(b"pages=").is_some() };
        return match machine::count(Path::new(OsStr::from_bytes(path)), wanted, id) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("pagelab's recorder: the file for counts cannot be opened: {error}");
                1
            }
        };
    }
    if let Some(what) = value(b"empty=") {
        empty::begin(id, what);
        return 0;
    }
    let Some(path) = value(b"ring=") else {
        eprintln!("pagelab's recorder: it is begun by pagelab trace and not by hand");
        return 1;
    };
    // SAFETY: QEMU's, valid during this call.
    let name = unsafe { CStr::from_ptr((*info).target_name) };
    let words = programs::begin(path, name.to_bytes());
    if let Err(error) = ring::open(Path::new(OsStr::from_bytes(path)), &words) {
        eprintln!("pagelab's recorder: the ring of pagelab's cannot be mapped: {error}");
        return 1;
    }
    STORES.store(recorded::stores(), Relaxed);
    SHIFT.store(ring::header().shift.load(Relaxed), Relaxed);
    KINDS.store(ring::header().kinds.load(Relaxed), Relaxed);
    if value(b"machine=").is_some() {
        machine::record(id);
        return 0;
    }
    let (execute, exit) = if name.to_bytes() == b"x86_64" { ([59, 322], 231) } else { ([221, 281], 94) };
    EXECUTE.iter().zip(execute).for_each(|(cell, number)| cell.store(number, Relaxed));
    EXIT.store(exit, Relaxed);
    // SAFETY: QEMU's functions with this plugin's number, from its install function as they want it.
    unsafe {
        api::qemu_plugin_register_vcpu_init_cb(id, thread_begins);
        api::qemu_plugin_register_vcpu_exit_cb(id, thread_ends);
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
        api::qemu_plugin_register_vcpu_syscall_cb(id, call);
        api::qemu_plugin_register_vcpu_syscall_ret_cb(id, called);
        api::qemu_plugin_register_atexit_cb(id, process_ends, ptr::null_mut());
    }
    0
}

extern "C" fn thread_begins(_: Id, processor: c_uint) {
    threads::begin(processor);
}

extern "C" fn thread_ends(_: Id, processor: c_uint) {
    threads::end(processor);
}

extern "C" fn process_ends(_: Id, _: *mut c_void) {
    threads::end_all();
}

extern "C" fn call(
    _: Id,
    _: c_uint,
    number: i64,
    first: u64,
    second: u64,
    third: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    if EXIT.load(Relaxed) == number.cast_unsigned() {
        ring::be_looked_at();
    }
    if EXECUTE[0].load(Relaxed) == number.cast_unsigned() {
        programs::execute(first, second, third);
    }
    if executes(number) {
        ring::header().executed.fetch_add(1, Relaxed);
    }
}

extern "C" fn called(_: Id, processor: c_uint, number: i64, _: i64) {
    // Who comes back from it has executed nothing.
    if executes(number) {
        ring::header().executed.fetch_sub(1, Relaxed);
    }
    threads::fork(processor);
}

fn executes(number: i64) -> bool {
    EXECUTE.iter().any(|cell| cell.load(Relaxed) == number.cast_unsigned())
}

extern "C" fn translate(_: Id, block: *mut api::Block) {
    let (shift, kinds) = (SHIFT.load(Relaxed), KINDS.load(Relaxed));
    let wants = |kind: u64| kinds & 1 << kind != 0;
    let mut fetches: Vec<(u64, u32)> = Vec::new();
    // SAFETY: the block is QEMU's, valid during this call.
    let instructions = unsafe { api::qemu_plugin_tb_n_insns(block) };
    let mut begins = 0;
    for i in 0..instructions {
        // SAFETY: as above; it has so many instructions.
        let (instruction, address) = unsafe {
            let instruction = api::qemu_plugin_tb_get_insn(block, i);
            (instruction, api::qemu_plugin_insn_vaddr(instruction))
        };
        if i == 0 {
            begins = address;
            // SAFETY: as above.
            programs::located(address, unsafe { api::qemu_plugin_insn_haddr(instruction) });
        }
        let fetch = key(address >> shift, FETCH);
        match fetches.last_mut() {
            Some((last, count)) if *last == fetch => *count += 1,
            _ => fetches.push((fetch, 1)),
        }
        if wants(LOAD) || wants(STORE) {
            // SAFETY: QEMU's instruction, and a callback that takes no data.
            unsafe {
                api::qemu_plugin_register_vcpu_mem_cb(
                    instruction,
                    if shift == 6 { access::<6> } else { access::<12> },
                    NO_REGISTERS,
                    BOTH,
                    ptr::null_mut(),
                );
            }
        }
    }
    if !wants(FETCH) {
        fetches.clear();
    }
    let (callback, data) = executions::callback::<false>(Block::of(begins, instructions, fetches));
    // SAFETY: the block is QEMU's, and what the callback takes stays.
    unsafe { api::qemu_plugin_register_vcpu_tb_exec_cb(block, callback, NO_REGISTERS, data) };
}

/// One callback for both kinds: asked for loads or stores alone, QEMU 7.2 calls back for others. One for each granularity that
/// there is, so that nothing is looked up.
extern "C" fn access<const SHIFT: u32>(processor: c_uint, what: u32, address: u64, _: *mut c_void) {
    if near_end(address, SHIFT) {
        return access_near_end(processor, what, address, SHIFT);
    }
    executions::access(processor, Reference::new(address >> SHIFT, what));
}

/// As [`access`] of what may lie in two units, which then are referenced one after the other.
#[cold]
#[inline(never)]
fn access_near_end(processor: c_uint, what: u32, address: u64, shift: u32) {
    executions::access(processor, Reference::new(address >> shift, what));
    if crosses(what, address, shift) {
        executions::access(processor, Reference::new((address >> shift) + 1, what));
    }
}
