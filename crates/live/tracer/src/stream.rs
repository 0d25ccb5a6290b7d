//! What a machine fetches, loads and stores between its marks, written into the ring in the machine's own order: each
//! instruction's fetch, then its loads and stores, of all processors, of programs and the kernel.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use crate::machine::Translated;
use crate::{KINDS, SHIFT, api, ring};
use pagelab_ring::{FETCH, LOAD, STORE, key};

/// Bits of an address that are kept: those above repeat bit 47, which the kernel's have.
const VIRTUAL: u64 = (1 << 48) - 1;
/// The machine has one thread, and so one slot.
const THREAD: c_uint = 0;

/// From here on it is written.
pub fn begin() {
    ring::begin(THREAD);
}

/// Up to here.
pub fn end() {
    ring::end(THREAD);
}

/// Has an instruction's references written.
pub fn translate(one: &Translated) {
    let kinds = KINDS.load(Relaxed);
    let wants = |kind: u64| kinds & 1 << kind != 0;
    if wants(FETCH) {
        let key = named(one.address, FETCH);
        one.when_executed(fetch, ptr::without_provenance_mut(key as usize));
    }
    if wants(LOAD) || wants(STORE) {
        one.when_it_accesses(access, ptr::null_mut());
    }
}

fn named(address: u64, kind: u64) -> u64 {
    key((address & VIRTUAL) >> SHIFT.load(Relaxed), kind)
}

extern "C" fn fetch(_: c_uint, key: *mut c_void) {
    ring::touch(THREAD, key.addr() as u64, 1);
}

extern "C" fn access(_: c_uint, what: u32, address: u64, _: *mut c_void) {
    // SAFETY: QEMU's own word for this access.
    let kind = if unsafe { api::qemu_plugin_mem_is_store(what) } { STORE } else { LOAD };
    ring::touch(THREAD, named(address, kind), 1);
}
