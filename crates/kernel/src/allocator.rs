//! The program's allocator: the system's, which asks the kernel for huge pages behind large tables
//! once a command wants that.
//!
//! A simulation looks at random places of tables of some ten MiB; with pages of 4 KiB most looks
//! miss the TLB as well as the cache. Where transparent huge pages are left to advice (`madvise`,
//! the default of most distributions), nobody else gives it. Experiments never ask: what they
//! measure has pages as the setting says.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Smaller ones would waste more of their last huge page than they gain.
const LARGE: usize = 4 << 20;

static ASKING: AtomicBool = AtomicBool::new(false);

/// Asks for huge pages behind every large allocation from now on.
pub fn ask_for_huge_pages() {
    ASKING.store(true, Relaxed);
}

/// See the module.
#[derive(Debug)]
pub struct Allocator;

/// Advises the kernel about the whole pages of an allocation; a refusal changes nothing.
#[inline]
fn advise(start: *mut u8, size: usize) {
    if size >= LARGE && ASKING.load(Relaxed) && !start.is_null() {
        let page = crate::region::page_size();
        let begin = start.addr().next_multiple_of(page);
        let end = (start.addr() + size) & !(page - 1);
        // SAFETY: the pages lie within one live allocation, and the advice changes no content of them.
        unsafe { libc::madvise(start.with_addr(begin).cast(), end - begin, libc::MADV_HUGEPAGE) };
    }
}

// SAFETY: every call is the system allocator's; advice changes neither addresses nor contents.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps GlobalAlloc's contract, which is the system allocator's.
        let start = unsafe { System.alloc(layout) };
        advise(start, layout.size());
        start
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let start = unsafe { System.alloc_zeroed(layout) };
        advise(start, layout.size());
        start
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let start = unsafe { System.realloc(start, layout, size) };
        advise(start, size);
        start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_keep_their_contents_and_zeroes() {
        ask_for_huge_pages();
        for size in [100, LARGE - 1, LARGE + 5000] {
            let layout = Layout::from_size_align(size, 64).unwrap();
            // SAFETY: the layouts are not empty, all bytes touched are within the allocation, which
            // is released with the layout that it has at the end.
            unsafe {
                let start = Allocator.alloc_zeroed(layout);
                assert!(std::slice::from_raw_parts(start, size).iter().all(|&byte| byte == 0));
                start.add(size - 1).write(7);
                let start = Allocator.realloc(start, layout, 3 * size);
                assert_eq!((start.read(), start.add(size - 1).read()), (0, 7));
                Allocator.dealloc(start, Layout::from_size_align(3 * size, 64).unwrap());
            }
        }
        // SAFETY: as above.
        unsafe {
            let layout = Layout::from_size_align(LARGE, 8).unwrap();
            let start = Allocator.alloc(layout);
            start.write(1);
            Allocator.dealloc(start, layout);
        }
    }
}
