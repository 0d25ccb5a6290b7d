//! The pages that user mode loads and stores between a machine's marks.
//!
//! Pages are told apart by their virtual address: a page at one address in several processes counts
//! once. What the kernel reads and writes on a program's behalf does not count.

use std::collections::HashSet;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use crate::recorded::{crosses, near_end};
use crate::translated::Translated;

/// Bits of an address within a page.
const SHIFT: u32 = 12;
/// Entries of the filter before the set: most accesses are to a page of the last few.
const FILTER: usize = 256;
/// From here up addresses are the kernel's, on every 64-bit processor.
const KERNEL: u64 = 1 << 63;

struct Touched {
    /// The last page of each entry, plus one.
    recent: [u64; FILTER],
    pages: HashSet<u64>,
}

/// The pages, between the marks.
static TOUCHED: AtomicPtr<Touched> = AtomicPtr::new(ptr::null_mut());

/// Whether it is an address of user mode.
pub fn is_user(address: u64) -> bool {
    address < KERNEL
}

/// The page of an address.
pub fn page(address: u64) -> u64 {
    address >> SHIFT
}

/// From here on pages are kept.
pub fn begin() {
    let _ = end();
    let new = Touched { recent: [0; FILTER], pages: HashSet::new() };
    TOUCHED.store(Box::into_raw(Box::new(new)), Relaxed);
}

/// The pages since [`begin`]; `None`: they were not asked for.
pub fn end() -> Option<HashSet<u64>> {
    let touched = TOUCHED.swap(ptr::null_mut(), Relaxed);
    // SAFETY: null, or of [`begin`], and nobody has it: the machine has one thread.
    (!touched.is_null()).then(|| unsafe { Box::from_raw(touched) }.pages)
}

/// Has the pages of an instruction's loads and stores kept, if it is of user mode.
pub fn translate(one: &Translated) {
    if is_user(one.address) {
        one.when_it_accesses(access, ptr::null_mut());
    }
}

extern "C" fn access(_: c_uint, what: u32, address: u64, _: *mut c_void) {
    // SAFETY: null, or of [`begin`]; the machine has one thread, and no callback calls another.
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
