//! First touches of fresh anonymous memory, in base pages and in huge ones.

use std::io;

use pagelab_experiment::build::median;
use pagelab_kernel::region::{HugePages, Region, page_size};
use pagelab_kernel::rusage;
use pagelab_kernel::thp::huge_page_size;

use super::ROUNDS;

/// The mean time of a first touch of a base page, ns: the median over rounds, `count` touches in all.
///
/// # Errors
/// When the kernel refuses memory.
pub fn base(count: u64) -> io::Result<Option<f64>> {
    rounds(count.div_ceil(ROUNDS) as usize, page_size(), HugePages::Forbidden)
}

/// The same of huge pages, as much memory as `count` base pages are; none where a touch gave base
/// pages.
///
/// # Errors
/// When the kernel refuses memory.
pub fn huge(count: u64) -> io::Result<Option<f64>> {
    let size = huge_page_size();
    let pages = (count as usize * page_size()).div_ceil(size).div_ceil(ROUNDS as usize);
    rounds(pages.max(1), size, HugePages::Wanted)
}

/// The fewest huge pages that are fresh memory to the caches.
const FRESH: usize = 64;

/// The same of so many huge pages in turn that each is in memory beyond the caches; none where that is more than
/// `most` bytes, or a touch gave base pages.
///
/// # Errors
/// When the kernel refuses memory.
pub fn huge_fresh(most: u64, last_cache: Option<u64>) -> io::Result<Option<f64>> {
    let size = huge_page_size();
    let pages = (2 * last_cache.unwrap_or(0) as usize).div_ceil(size).max(FRESH);
    // A mapping has one more than is touched.
    if ((pages + 1) * size) as u64 > most { Ok(None) } else { rounds(pages, size, HugePages::Wanted) }
}

/// Rounds of `count` first touches, one every `size` bytes; none where one of them took more than
/// one fault.
fn rounds(count: usize, size: usize, pages: HugePages) -> io::Result<Option<f64>> {
    let mut times = Vec::with_capacity(ROUNDS as usize);
    for _ in 0..ROUNDS {
        let region = Region::anonymous((count + 1) * size / page_size())?;
        if region.advise(pages).is_err() && pages == HugePages::Wanted {
            return Ok(None);
        }
        let start = region.base().align_offset(size);
        let faults = rusage::thread().minor;
        let begun = super::processor_time();
        for touch in 0..count {
            // SAFETY: within the mapping, which has one more of these pages than are touched; nobody else has it.
            unsafe { region.base().add(start + touch * size).write_volatile(1) };
        }
        let elapsed = super::processor_time() - begun;
        if !is_huge(&region, start, count, size, rusage::thread().minor - faults) {
            return Ok(None);
        }
        times.push(elapsed as f64 / count as f64);
    }
    Ok(median(times))
}

/// Whether each touch gave a page of `size`: it took one fault, and the end of each is there
/// without another.
fn is_huge(region: &Region, start: usize, count: usize, size: usize, faults: u64) -> bool {
    let before = rusage::thread().minor;
    for touch in 0..count {
        // SAFETY: as in `rounds`, the last byte of what was touched.
        unsafe { region.base().add(start + (touch + 1) * size - 1).write_volatile(1) };
    }
    faults <= count as u64 + 1 && rusage::thread().minor == before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_touch_takes_a_fault_and_a_second_none() {
        let region = Region::anonymous(64).unwrap();
        region.advise(HugePages::Forbidden).ok();
        let before = rusage::thread().minor;
        for page in 0..64 {
            // SAFETY: within the mapping.
            unsafe { region.base().add(page * page_size()).write_volatile(1) };
        }
        let faults = rusage::thread().minor - before;
        assert!(faults >= 64, "{faults}");
        assert!(is_huge(&region, 0, 64, page_size(), 64));
        assert!(!is_huge(&region, 0, 64, page_size(), 200), "more faults than touches");
        let base = base(1000).unwrap().unwrap();
        assert!(base > 50.0, "{base} ns");
    }

    #[test]
    fn fresh_huge_pages_take_no_more_memory_than_allowed() {
        let size = huge_page_size() as u64;
        assert_eq!(huge_fresh(FRESH as u64 * size, None).unwrap(), None);
        assert_eq!(huge_fresh(400 * size, Some(200 * size)).unwrap(), None, "twice the last cache is more");
    }

    #[test]
    fn base_pages_are_no_huge_page() {
        let size = huge_page_size();
        let region = Region::anonymous(2 * size / page_size()).unwrap();
        region.advise(HugePages::Forbidden).ok();
        let start = region.base().align_offset(size);
        // SAFETY: within the mapping.
        unsafe { region.base().add(start).write_volatile(1) };
        assert!(!is_huge(&region, start, 1, size, 1), "its end was not there");
    }
}
