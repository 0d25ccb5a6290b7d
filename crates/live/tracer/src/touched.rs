//! The pages that user mode loads from and stores to between the marks of a machine.
//!
//! Pages are identified by their virtual address: a page at one address in several processes counts
//! once. References of the kernel on a program's behalf do not count.

use std::collections::HashSet;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use crate::recorded::{crosses, near_end};
use crate::translated::Translated;

/// Bits of an address within a page.
const SHIFT: u32 = 12;
/// Entries of the filter in front of the set: most accesses are to one of the last few pages.
const FILTER: usize = 256;
/// The lowest address of the kernel, on every 64-bit processor.
const KERNEL: u64 = 1 << 63;

struct Touched {
    /// The last page of each entry, plus one.
    recent: [u64; FILTER],
    pages: HashSet<u64>,
}

/// The pages since the first mark; null outside the marks.
static TOUCHED: AtomicPtr<Touched> = AtomicPtr::new(ptr::null_mut());

/// Whether an address belongs to user mode.
pub fn is_user(address: u64) -> bool {
    address < KERNEL
}

/// The page of an address.
pub fn page(address: u64) -> u64 {
    address >> SHIFT
}

/// Begins to collect pages.
pub fn begin() {
    let _ = end();
    let new = Touched { recent: [0; FILTER], pages: HashSet::new() };
    TOUCHED.store(Box::into_raw(Box::new(new)), Relaxed);
}

/// Ends the collection. Returns the pages since [`begin`], or `None` if it was not called.
pub fn end() -> Option<HashSet<u64>> {
    let touched = TOUCHED.swap(ptr::null_mut(), Relaxed);
    // SAFETY: null, or from [`begin`] and no longer in use: the machine has one thread.
    (!touched.is_null()).then(|| unsafe { Box::from_raw(touched) }.pages)
}

/// Collects the pages of an instruction's loads and stores, if the instruction is of user mode.
pub fn translate(one: &Translated) {
    if is_user(one.address) {
        one.when_it_accesses(access, ptr::null_mut());
    }
}

extern "C" fn access(_: c_uint, what: u32, address: u64, _: *mut c_void) {
    // SAFETY: null, or from [`begin`]; the machine has one thread, and no callback calls another.
    let Some(touched) = (unsafe { TOUCHED.load(Relaxed).as_mut() }) else { return };
    touched.keep(page(address));
    if near_end(address, SHIFT) && crosses(what, address, SHIFT) {
        touched.keep(page(address) + 1);
    }
}

impl Touched {
    #[inline]
    fn keep(&mut self, page: u64) {
        let recent = &mut self.recent[page as usize % FILTER];
        if *recent != page + 1 {
            *recent = page + 1;
            self.pages.insert(page);
        }
    }
}
