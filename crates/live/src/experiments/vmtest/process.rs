//! What one process of `vmtest` does, and the shared cells over which it is told and tells.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use pagelab_experiment::experiments::{Mapping, PagesOf};
use pagelab_kernel::mappings;
use pagelab_kernel::region::{HugePages, Region, page_size};
use pagelab_kernel::rusage::{self, Usage};

use super::laps::{END, Laps};
use crate::harness::clock::{Clock, Monotonic};
use crate::harness::family::Barrier;

/// Cells common to all: how many have made their segments; how many have ended the round.
pub const READY: usize = 0;
pub const DONE: usize = 1;
/// How many were refused their segment.
pub const REFUSED: usize = 2;
/// Mappings of pagelab's own in the first process.
pub const MAPPINGS: usize = 3;
/// Whether to stop the round. It is looked at while reads are made, and the first line of every
/// page has the same place in a first-level cache: among these lines it would take one of their
/// places (of 16 pages, 0.92 of the speed).
pub const STOP: usize = 8;

const COMMON: usize = 16;
/// Cells of each process, a cache line.
const EACH: usize = 8;
/// Reads in a lap: a millisecond or two where a read takes some nanoseconds.
const LAP: u64 = 1 << 18;
/// Reads between two checks of [`STOP`].
const BLOCK: usize = 64;

/// The cells for so many processes.
pub fn cells(processes: usize) -> usize {
    COMMON + processes * EACH
}

/// What a process has to do.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Reads in a round, at most.
    pub reads: u64,
    /// What its segment is.
    pub mapping: Mapping,
    /// Of which pages.
    pub pages_of: PagesOf,
    /// Its size in base pages.
    pub pages: usize,
}

/// What a process did in a round.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Reads made.
    pub reads: u64,
    /// When the last was done, monotonic ns.
    pub ended: u64,
    /// What they consumed.
    pub used: Usage,
}

impl Slot {
    /// That of process `index`, after [`DONE`] counted it.
    pub fn read(barrier: &Barrier, index: usize) -> Self {
        let cell = |n: usize| barrier[COMMON + index * EACH + n].load(Relaxed);
        Self { reads: cell(0), ended: cell(1), used: Usage::of_told(|n| cell(2 + n)) }
    }

    fn write(self, barrier: &Barrier, index: usize) {
        for (n, value) in [self.reads, self.ended].into_iter().chain(self.used.told()).enumerate() {
            barrier[COMMON + index * EACH + n].store(value, Relaxed);
        }
    }
}

/// What the kernel is told about huge pages.
pub fn advice(pages_of: PagesOf) -> HugePages {
    match pages_of {
        PagesOf::Base => HugePages::Forbidden,
        PagesOf::Thp => HugePages::Wanted,
        PagesOf::Hugetlb => HugePages::System,
    }
}

impl Order {
    /// Does it, round after round; the exit status.
    pub fn perform(
        &self,
        index: usize,
        barrier: &Barrier,
        laps: &Laps,
        common: Option<&Region>,
        file: Option<&File>,
    ) -> i32 {
        if index == 0 {
            barrier[MAPPINGS].store(mappings::own().unwrap_or(0), Relaxed);
        }
        let own = match common {
            Some(_) => None,
            None => match self.segment(index, file) {
                Ok(region) => Some(region),
                Err(_) => {
                    barrier[REFUSED].fetch_add(1, AcqRel);
                    return 2;
                }
            },
        };
        let Some(segment) = own.as_ref().or(common) else { return 2 };
        let stop = || barrier[STOP].load(Relaxed) != 0;
        // Every page once: a page of a file is read, one of another process is mapped here too.
        read(segment, self.pages, self.pages as u64, || false);
        barrier[READY].fetch_add(1, AcqRel);
        let mut round = 0;
        loop {
            round = laps.next(round);
            if round == END {
                return 0;
            }
            let before = rusage::thread_up_to_date();
            let mut reads = 0;
            while reads < self.reads && !stop() {
                reads += read(segment, self.pages, LAP.min(self.reads - reads), stop);
                laps.finish(stop);
            }
            let ended = Monotonic.now();
            Slot { reads, ended, used: rusage::thread_up_to_date() - before }.write(barrier, index);
            barrier[DONE].fetch_add(1, Release);
        }
    }

    /// A segment of this process's own; one that can be written is.
    fn segment(&self, index: usize, file: Option<&File>) -> io::Result<Region> {
        match (self.mapping, file) {
            (Mapping::File, Some(file)) => Region::part(file, index * self.pages, self.pages),
            _ => {
                let region = match self.pages_of {
                    PagesOf::Hugetlb => Region::huge(self.pages)?,
                    _ => Region::anonymous(self.pages)?,
                };
                // Refused by kernels without huge pages, where it is not needed.
                let _ = region.advise(advice(self.pages_of));
                region.populate(|_, _| {});
                Ok(region)
            }
        }
    }
}

/// Reads the first byte of every page in turn, `most` reads at most; the reads made.
///
/// Each read's address depends on the byte read before (by adding 0 in a way that the compiler cannot
/// see through), so the reads follow one another as on a machine that executes in order, and a
/// processor that would have many under way at once shows what one costs.
fn read(segment: &Region, pages: usize, most: u64, stop: impl Fn() -> bool) -> u64 {
    let (base, step) = (segment.base(), page_size());
    let (mut made, mut looked) = (0, 0);
    let mut carry = 0_usize;
    while made < most {
        let mut page = 0;
        while page < pages {
            let end = (page + BLOCK).min(pages);
            while page < end {
                // SAFETY: `page` is below the segment's pages, which are mapped and readable; `carry`
                // is 0, for a byte shifted by eight is.
                let byte = unsafe { base.add(page * step + carry).read_volatile() };
                carry = hidden(usize::from(byte)) >> 8;
                page += 1;
            }
            let by_now = made + page as u64;
            if by_now - looked >= BLOCK as u64 {
                looked = by_now;
                if stop() {
                    return by_now;
                }
            }
        }
        made += pages as u64;
    }
    made
}

/// `value`, of which the compiler no longer knows anything; costs no instruction.
#[inline(always)]
fn hidden(mut value: usize) -> usize {
    // SAFETY: the text is a comment: no instruction is executed.
    unsafe { std::arch::asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags)) };
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every page's first line, which is what is read, has the same place in a first-level cache.
    #[test]
    fn polled_words_are_not_the_first_line_of_a_page() {
        const LINE: usize = 64;
        assert_ne!(STOP * size_of::<u64>() % page_size() / LINE, 0);
        assert!(COMMON > STOP && [READY, DONE, REFUSED, MAPPINGS].iter().all(|&cell| cell * 8 / LINE == 0));
    }
}
