//! A chain of pointers in random order through a working set: each load's address is what the load
//! before it read.

use std::io;
use std::marker::PhantomData;
use std::ptr;

use pagelab_kernel::region::{HugePages, Region, page_size};
use pagelab_kernel::rusage;
use pagelab_kernel::thp::huge_page_size;
use pagelab_reference::rng::Rng;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Loads that are made without a look at the count.
const UNROLLED: u64 = 8;
/// A mapping whose population took fewer faults than one for so many pages is made of huge ones.
const HUGE_MIN_PAGES_PER_FAULT: u64 = 16;

/// Which places of a working set a chain goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// Every cache line.
    Lines,
    /// One line of each page; which one differs from page to page, so that they spread over a
    /// cache's sets.
    Pages,
}

impl Places {
    /// How many there are in a set of `bytes`.
    pub fn within(self, bytes: usize) -> usize {
        match self {
            Self::Lines => bytes / LINE,
            Self::Pages => bytes / page_size(),
        }
    }

    /// Where one of them is, in bytes.
    fn at(self, number: usize) -> usize {
        match self {
            Self::Lines => number * LINE,
            Self::Pages => {
                let lines = page_size() / LINE;
                let spread = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                number * page_size() + spread as usize % lines * LINE
            }
        }
    }
}

/// The memory that working sets are the first part of.
#[derive(Debug)]
pub struct Field {
    region: Region,
    /// Bytes before the first place: the place is aligned to a huge page.
    offset: usize,
    bytes: usize,
    huge: bool,
}

impl Field {
    /// Maps and writes memory for working sets of at most `bytes`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new(bytes: usize, pages: HugePages) -> io::Result<Self> {
        let aligned = huge_page_size();
        let region = Region::anonymous((bytes + aligned).div_ceil(page_size()))?;
        // Refused by kernels without huge pages: then there are none.
        let _ = region.advise(pages);
        let offset = region.base().align_offset(aligned);
        let before = rusage::thread().minor;
        for page in 0..bytes.div_ceil(page_size()) {
            // SAFETY: within the mapping, which is longer by more than the offset; nobody else has it.
            unsafe { region.base().add(offset + page * page_size()).write_volatile(1) };
        }
        let faults = rusage::thread().minor - before;
        let huge = faults * HUGE_MIN_PAGES_PER_FAULT < (bytes / page_size()) as u64;
        Ok(Self { region, offset, bytes, huge })
    }

    /// Whether the kernel gave huge pages.
    pub fn is_huge(&self) -> bool {
        self.huge
    }

    /// Lays a chain over the first `bytes`, with `order` as its buffer; none where it would have
    /// less than two places.
    pub fn chain<'a>(
        &'a self,
        bytes: usize,
        places: Places,
        order: &mut Vec<u32>,
        rng: &mut Rng,
    ) -> Option<Chain<'a>> {
        let count = places.within(bytes.min(self.bytes));
        cycle(order, u32::try_from(count).ok()?, rng);
        if count < 2 {
            return None;
        }
        // SAFETY: every place is within the mapping and aligned to a line.
        let at = |number: usize| unsafe { self.region.base().add(self.offset + places.at(number)) };
        for (place, &next) in order.iter().enumerate() {
            // SAFETY: as above; a line has room for a pointer, and nobody else has the mapping.
            unsafe { at(place).cast::<*const u8>().write(at(next as usize)) };
        }
        Some(Chain { here: at(0), places: count, field: PhantomData })
    }
}

/// Fills `next` with a permutation of `count` numbers that is one cycle (Sattolo, 1986).
fn cycle(next: &mut Vec<u32>, count: u32, rng: &mut Rng) {
    next.clear();
    next.extend(0..count);
    for last in (1..next.len()).rev() {
        next.swap(last, rng.below(last as u64) as usize);
    }
}

/// A chain, and where it was left.
#[derive(Debug)]
pub struct Chain<'a> {
    here: *const u8,
    places: usize,
    field: PhantomData<&'a Field>,
}

impl Chain<'_> {
    /// Its places.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Follows it for so many loads, rounded up to eight.
    pub fn follow(&mut self, loads: u64) {
        let mut here = self.here;
        for _ in 0..loads.div_ceil(UNROLLED) {
            for _ in 0..UNROLLED {
                // SAFETY: every place of the chain holds the address of another one, in a mapping that outlives it.
                here = unsafe { ptr::read_volatile(here.cast::<*const u8>()) };
            }
        }
        self.here = here;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_chain_goes_through_every_place_once_before_it_is_back() {
        let field = Field::new(64 << 10, HugePages::Forbidden).unwrap();
        for (places, count) in [(Places::Lines, 1024), (Places::Pages, (64 << 10) / page_size())] {
            let mut chain = field.chain(64 << 10, places, &mut Vec::new(), &mut Rng::new(1)).unwrap();
            assert_eq!(chain.places(), count);
            let start = chain.here;
            let mut seen = HashSet::new();
            while seen.insert(chain.here) {
                // SAFETY: as in `follow`, one load.
                chain.here = unsafe { *chain.here.cast() };
            }
            assert_eq!((seen.len(), chain.here), (count, start), "{places:?}");
        }
        assert!(field.chain(page_size(), Places::Pages, &mut Vec::new(), &mut Rng::new(1)).is_none());
    }

    #[test]
    fn base_pages_are_no_huge_ones() {
        assert!(!Field::new(8 << 20, HugePages::Forbidden).unwrap().is_huge());
    }
}
