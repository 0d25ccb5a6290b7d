//! `--evictions`: finds evicted pages in the page table (`/proc/self/pagemap`).
//!
//! The thread that makes the references polls the page table at a fixed interval of references. A
//! page that was mapped at the last poll and is not mapped now was evicted. A fault on a page that
//! was mapped at the last poll means that the page left and came back since. Anonymous base pages
//! come back only by faults, and every fault is known, so the log misses no eviction; its time has
//! the resolution of the interval. Polling sets no accessed bit and needs no privilege. It shows
//! when pages leave the page table, and not how long they stay in the swap cache afterwards.

use pagelab_experiment::build::{EvictionLog, note};
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Recorder, Result};
use pagelab_kernel::pagemap::{Snapshot, SnapshotReader};
use pagelab_kernel::region::Region;

use crate::harness::clock::{Clock, Monotonic};
use crate::harness::failure::failed;
use crate::harness::touch::WRITE;

/// Number of polls per as many references as the region has pages.
const POLLS_PER_PASS: u64 = 64;
/// Maximum number of polls in a run, which bounds their cost.
const MAX_POLLS: u64 = 20_000;

/// The log of evictions, and the pages that are mapped as far as is known.
#[derive(Debug)]
pub struct Evictions {
    interval: usize,
    /// References made so far.
    made: usize,
    mapped: Snapshot,
    now: Snapshot,
    log: EvictionLog,
    polls: u64,
    /// Time of the polls, ns.
    time: u64,
}

impl Evictions {
    /// Creates a log for the region of `paging`, which has `pages` pages. Allocates all memory that a
    /// run needs.
    pub fn new(paging: &Paging, pages: usize) -> Self {
        let interval = (pages as u64 / POLLS_PER_PASS).max(paging.references.div_ceil(MAX_POLLS)).max(1);
        Self {
            interval: usize::try_from(interval).unwrap_or(usize::MAX),
            made: 0,
            mapped: Snapshot::new(pages),
            now: Snapshot::new(pages),
            log: EvictionLog::new(),
            polls: 0,
            time: 0,
        }
    }

    /// Number of references between two polls.
    pub fn interval(&self) -> usize {
        self.interval
    }

    /// Number of references before the next poll.
    pub fn left(&self) -> usize {
        self.interval - self.made % self.interval
    }

    /// Sets the pages that are mapped before the first reference.
    pub fn begin(&mut self, first: &Snapshot) {
        let present = first.present().enumerate().filter(|(_, present)| *present);
        present.for_each(|(page, _)| self.mapped.put_present(page));
    }

    /// Adds references, those at the indexes `faulted` with a fault, and polls at the end of an
    /// interval or after the `last` reference.
    ///
    /// # Errors
    /// If the page map cannot be read.
    pub fn made(
        &mut self,
        references: &[u32],
        faulted: &[u32],
        last: bool,
        reader: &mut SnapshotReader,
        region: &Region,
    ) -> Result<()> {
        self.faults(references, faulted);
        self.made += references.len();
        if last || self.made.is_multiple_of(self.interval) {
            let begun = Monotonic.now();
            reader.read(region, &mut self.now).map_err(failed("reading the page map"))?;
            self.compare();
            self.polls += 1;
            self.time += Monotonic.now() - begun;
        }
        Ok(())
    }

    /// Sets the pages that faulted as mapped. A page that was mapped before was evicted meanwhile.
    fn faults(&mut self, references: &[u32], faulted: &[u32]) {
        for &at in faulted {
            let page = references[at as usize] & !WRITE;
            if self.mapped.is_present(page as usize) {
                self.log.add((self.made + at as usize) as u32, page);
            }
            self.mapped.put_present(page as usize);
        }
    }

    /// Logs the pages that are no longer mapped.
    fn compare(&mut self) {
        for page in self.now.gone_since(&self.mapped) {
            self.log.add(self.made as u32, page as u32);
        }
        std::mem::swap(&mut self.now, &mut self.mapped);
    }

    /// Records the log and the cost of the polls.
    ///
    /// # Errors
    /// If the recorder fails.
    pub fn report(self, recorder: &mut dyn Recorder) -> Result<()> {
        let text = format!(
            "pagelab read the page table every {} references to log evictions: {} reads between \
            references, {:.0} µs on average; access times do not include them",
            self.interval,
            self.polls,
            self.time as f64 / 1000.0 / self.polls.max(1) as f64
        );
        note(recorder, Level::Info, text)?;
        self.log.record(self.interval as u32, recorder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::Observations;
    use pagelab_experiment::tables::evictions;

    fn rows(evictions: Evictions) -> Vec<(f64, f64)> {
        let mut seen = Observations::default();
        evictions.report(&mut seen).unwrap();
        let table = seen.table(evictions::TABLE).unwrap();
        let of = |column| table.numbers(column).unwrap().iter().copied().flatten().collect::<Vec<_>>();
        of(evictions::REFERENCE).into_iter().zip(of(evictions::PAGE)).collect()
    }

    fn made(evictions: &mut Evictions, references: &[u32], faulted: &[u32], mapped: &[usize]) {
        evictions.faults(references, faulted);
        evictions.made += references.len();
        evictions.now = Snapshot::new(8);
        mapped.iter().for_each(|&page| evictions.now.put_present(page));
        evictions.compare();
    }

    #[test]
    fn a_page_that_left_is_seen_at_a_poll_or_at_its_return() {
        let mut evictions = Evictions::new(&Paging { references: 100, ..Paging::default() }, 8);
        [0, 1, 2].into_iter().for_each(|page| evictions.mapped.put_present(page));
        // Page 3 replaces page 0. Page 1 leaves before the third reference, which brings it back.
        made(&mut evictions, &[2, 3, 1, 2], &[1, 2], &[1, 2, 3]);
        // Page 0 replaces page 2. The last reference but one is a write.
        made(&mut evictions, &[1, WRITE, 1], &[1], &[0, 1, 3]);
        assert_eq!(rows(evictions), [(2.0, 1.0), (4.0, 0.0), (7.0, 2.0)]);
    }

    #[test]
    fn polls_are_bounded() {
        let of =
            |pages, references| Evictions::new(&Paging { references, ..Paging::default() }, pages).interval();
        assert_eq!((of(64, 1000), of(6400, 1000), of(6400, 20_000_000)), (1, 100, 1000));
    }
}
