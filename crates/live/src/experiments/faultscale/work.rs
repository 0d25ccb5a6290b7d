//! What one worker does again and again. One operation in sixteen is timed.

use std::fs::File;

use pagelab_experiment::experiments::Work;
use pagelab_kernel::region::{Region, page_size};
use pagelab_kernel::rusage;

use crate::harness::bare;
use crate::harness::clock::{Clock, Monotonic};
use crate::harness::samples::Own;

/// Of so many operations one is timed.
const SAMPLE: usize = 16;

/// A worker's work and what it holds for it.
pub(super) enum Worker<'a> {
    /// Maps so many pages, writes each, unmaps: an operation is a fault.
    Anon(usize),
    /// Writes each page of a mapping that stays, and gives all back: an operation is a fault.
    Refill(Region),
    /// Maps the file, reads each page, unmaps: an operation is a page, of which one fault maps
    /// several (16 unless /sys/kernel/debug/fault_around_bytes says otherwise).
    File(&'a File, usize),
    /// Maps a page and unmaps it, untouched.
    Map,
    /// Forks a child that exits at once, with so many pages of page table to copy.
    Fork(Region),
}

impl<'a> Worker<'a> {
    /// Prepares; `None` when the kernel refuses.
    pub(super) fn new(work: Work, pages: usize, file: Option<&'a File>) -> Option<Self> {
        match work {
            Work::Anon => Some(Self::Anon(pages)),
            Work::Refill => {
                let region = Region::base_pages(pages).ok()?;
                Some(Self::Refill(region))
            }
            Work::File => Some(Self::File(file?, pages)),
            Work::Map => Some(Self::Map),
            Work::Fork => {
                let region = Region::base_pages(pages).ok()?;
                region.populate(|_, _| {});
                Some(Self::Fork(region))
            }
            Work::Build => None,
        }
    }

    /// Does it once, the `number`-th time, and leaves the times of one in sixteen, and adds to
    /// `waits`, where it is to be counted, how often this thread slept in its operations; the
    /// operations made, `None` when the kernel refuses.
    pub(super) fn turn(
        &self,
        number: u64,
        times: &mut Own<'_>,
        waits: &mut Option<u64>,
        stop: impl Fn() -> bool,
    ) -> Option<u64> {
        let phase = number as usize % SAMPLE;
        match self {
            Self::Anon(pages) => {
                let region = Region::base_pages(*pages).ok()?;
                Some(counted(waits, || touch(&region, *pages, true, phase, times, stop)))
            }
            Self::Refill(region) => {
                let made = counted(waits, || touch(region, region.pages(), true, phase, times, stop));
                region.give_back().ok()?;
                Some(made)
            }
            Self::File(file, pages) => {
                let region = Region::part(file, 0, *pages).ok()?;
                Some(counted(waits, || touch(&region, *pages, false, phase, times, stop)))
            }
            Self::Map => counted(waits, || {
                for one in 0..SAMPLE {
                    let before = (one == phase).then(|| Monotonic.now());
                    drop(Region::anonymous(1).ok()?);
                    before.into_iter().for_each(|before| times.keep(Monotonic.now() - before));
                }
                Some(SAMPLE as u64)
            }),
            Self::Fork(region) => {
                let before = (phase == 0).then(|| Monotonic.now());
                let child = bare::fork(bare::Child::new(region, 0)).ok()?;
                // SAFETY: no status is wanted; the child is ours.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                before.into_iter().for_each(|before| times.keep(Monotonic.now() - before));
                Some(1)
            }
        }
    }
}

/// Does `work`, and adds to `waits`, where it is to be counted, how often this thread slept meanwhile.
fn counted<T>(waits: &mut Option<u64>, work: impl FnOnce() -> T) -> T {
    let Some(waits) = waits else { return work() };
    let before = rusage::thread().voluntary;
    let made = work();
    *waits += rusage::thread().voluntary - before;
    made
}

/// Touches every page until told to stop, and times those that lie `phase` pages behind a
/// sixteenth; how many.
fn touch(
    region: &Region,
    pages: usize,
    write: bool,
    phase: usize,
    times: &mut Own<'_>,
    stop: impl Fn() -> bool,
) -> u64 {
    // SAFETY: below the region's pages, which are mapped; written only where they may be.
    let once = |page: usize| unsafe {
        let at = region.base().add(page * page_size());
        if write {
            at.write_volatile(1);
        } else {
            std::hint::black_box(at.read_volatile());
        }
    };
    for page in 0..pages {
        if page % 64 == 0 && stop() {
            return page as u64;
        }
        if page % SAMPLE == phase {
            let before = Monotonic.now();
            once(page);
            times.keep(Monotonic.now() - before);
        } else {
            once(page);
        }
    }
    pages as u64
}
