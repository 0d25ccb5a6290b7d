//! What a machine fetches, loads and stores between its marks, written into the ring in the machine's own order: each
//! instruction's fetch, then its loads and stores, of all processors, of programs and the kernel.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use crate::blocks::{Block, Reference};
use crate::recorded::{KINDS, SHIFT, crosses, near_end};
use crate::translated::Translated;
use crate::{executions, threads};
use pagelab_ring::words::{FETCH, LOAD, STORE, key};

/// Bits of an address that are kept: those above repeat bit 47, which the kernel's have.
const VIRTUAL: u64 = (1 << 48) - 1;
/// The machine has one thread, and so one slot.
const THREAD: c_uint = 0;

/// From here on it is written.
pub fn begin() {
    threads::begin(THREAD);
}

/// Up to here.
pub fn end() {
    threads::end(THREAD);
}

/// Has an instruction's references written: each is a block by itself.
pub fn translate(one: &Translated) {
    let kinds = KINDS.load(Relaxed);
    let wants = |kind: u64| kinds & 1 << kind != 0;
    let fetches = if wants(FETCH) { vec![(key(unit(one.address), FETCH), 1)] } else { Vec::new() };
    // The machine has one thread, whichever of its processors it is.
    let (callback, data) = executions::callback::<true>(Block::of(one.address, 1, fetches));
    one.when_executed(callback, data);
    if wants(LOAD) || wants(STORE) {
        one.when_it_accesses(access, ptr::null_mut());
    }
}

fn unit(address: u64) -> u64 {
    (address & VIRTUAL) >> SHIFT.load(Relaxed)
}

extern "C" fn access(_: c_uint, what: u32, address: u64, _: *mut c_void) {
    executions::access(THREAD, Reference::new(unit(address), what));
    let shift = SHIFT.load(Relaxed);
    if near_end(address, shift) && crosses(what, address, shift) {
        executions::access(THREAD, Reference::new(unit(address) + 1, what));
    }
}
