//! Single times that several processes or threads leave for their parent: memory shared before they
//! are forked.

use std::io;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, Release};

use pagelab_experiment::build::Distribution;
use pagelab_kernel::region::Region;

/// Times of each owner, at most: of more the latest stay.
const MAX_TIMES: usize = 1 << 16;

/// Room for the times of so many owners.
#[derive(Debug)]
pub(crate) struct Samples {
    region: Region,
    each: usize,
    owners: usize,
}

// SAFETY: all access to the mapping is to atomics, and it is unmapped only when nobody borrows it.
unsafe impl Sync for Samples {}

impl Samples {
    /// For `owners` with at most `each` times each.
    ///
    /// # Errors
    /// When the kernel refuses memory.
    pub(crate) fn new(owners: usize, each: usize) -> io::Result<Self> {
        let each = each.clamp(1, MAX_TIMES);
        let bytes = owners * (each + 1) * size_of::<AtomicU32>();
        Ok(Self {
            region: Region::shared(bytes.div_ceil(pagelab_kernel::region::page_size()).max(1))?,
            each,
            owners,
        })
    }

    fn cells(&self) -> &[AtomicU32] {
        // SAFETY: the mapping is aligned to a page, at least as long, zeroed (a valid AtomicU32),
        // lives as long as self, and everybody uses it as atomics alone.
        unsafe {
            let first = self.region.base().cast::<AtomicU32>();
            std::slice::from_raw_parts(first, self.owners * (self.each + 1))
        }
    }

    /// The part of this owner, every page of it present.
    pub(crate) fn of(&self, owner: usize) -> Own<'_> {
        let cells = &self.cells()[owner * (self.each + 1)..(owner + 1) * (self.each + 1)];
        cells.iter().for_each(|cell| cell.store(0, Relaxed));
        let (made, times) = cells.split_first().expect("at least the counter");
        Own { made, times, count: 0 }
    }

    /// The addresses of the memory.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.region.range()
    }

    /// The times of all owners, once they have ended.
    pub(crate) fn all(&self) -> Distribution {
        self.those(0..self.owners)
    }

    /// The times of these.
    pub(crate) fn those(&self, owners: std::ops::Range<usize>) -> Distribution {
        let mut all = Distribution::new();
        for own in self.cells().chunks_exact(self.each + 1).take(owners.end).skip(owners.start) {
            let made = own[0].load(Relaxed) as usize;
            own[1..=made.min(self.each)].iter().for_each(|time| all.record(u64::from(time.load(Relaxed))));
        }
        all
    }
}

/// One owner's.
#[derive(Debug)]
pub(crate) struct Own<'a> {
    made: &'a AtomicU32,
    times: &'a [AtomicU32],
    count: usize,
}

impl Own<'_> {
    /// Keeps a time; beyond four seconds it is four seconds.
    #[inline]
    pub(crate) fn keep(&mut self, nanoseconds: u64) {
        self.times[self.count % self.times.len()].store(nanoseconds.min(u64::from(u32::MAX)) as u32, Relaxed);
        self.count += 1;
        self.made.store(self.count.min(self.times.len()) as u32, Release);
    }

    /// For an owner that has nothing but this memory: where the number of times kept stands, and
    /// where the times, of which it has room for so many.
    pub(crate) fn raw(&self) -> (*mut u32, *mut u32, usize) {
        (self.made.as_ptr(), self.times.as_ptr().cast_mut().cast(), self.times.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_each_owner_stay() {
        let samples = Samples::new(2, 3).unwrap();
        let (mut first, mut second) = (samples.of(0), samples.of(1));
        (1..=5).for_each(|time| first.keep(time));
        second.keep(1 << 40);
        let all = samples.all();
        assert_eq!((all.count(), all.min(), all.max()), (4, Some(3), Some(u64::from(u32::MAX))));
        assert_eq!((samples.those(0..1).count(), samples.those(1..2).max()), (3, Some(u64::from(u32::MAX))));
        assert_eq!(Samples::new(1, 5).unwrap().all().count(), 0);
    }
}
