//! Evictions as the page table shows them: the source "pagemap", for `--evictions`.
//!
//! The thread that makes the references reads `/proc/self/pagemap` of the region every so many
//! references, between two of them. A page that was mapped and is not mapped any more has left. A
//! fault on a page that was mapped shows that it left and came back between two looks. Anonymous
//! base pages come back by faults alone, and every fault is known, so no eviction is missed; when
//! a page left is known to the distance of two looks. Reading the page map sets no accessed bit and
//! needs no privilege. The source sees pages leave the page table. It does not see how long they
//! stay in the swap cache after that.

use pagelab_experiment::build::{EvictionLog, note};
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Recorder, Result};
use pagelab_kernel::pagemap::{Snapshot, SnapshotReader};
use pagelab_kernel::region::Region;

use crate::harness::clock::{Clock, Monotonic};
use crate::harness::failure::failed;
use crate::harness::touch::WRITE;

/// Looks while as many references are made as the region has pages.
const LOOKS_PER_PASS: u64 = 64;
/// The maximum number of looks in a run: it bounds what they cost.
const MAX_LOOKS: u64 = 20_000;

/// The evictions of a run so far, and the pages believed to be mapped.
#[derive(Debug)]
pub struct Evictions {
    interval: usize,
    /// References made so far.
    made: usize,
    mapped: Snapshot,
    now: Snapshot,
    log: EvictionLog,
    looks: u64,
    /// What the looks took, ns.
    time: u64,
}

impl Evictions {
    /// For the region of `paging`, which has `pages` pages. Allocates all that a run needs.
    pub fn new(paging: &Paging, pages: usize) -> Self {
        let interval = (pages as u64 / LOOKS_PER_PASS).max(paging.references.div_ceil(MAX_LOOKS)).max(1);
        Self {
            interval: usize::try_from(interval).unwrap_or(usize::MAX),
            made: 0,
            mapped: Snapshot::new(pages),
            now: Snapshot::new(pages),
            log: EvictionLog::new(),
            looks: 0,
            time: 0,
        }
    }

    /// References between two looks.
    pub fn interval(&self) -> usize {
        self.interval
    }

    /// References up to the next look.
    pub fn left(&self) -> usize {
        self.interval - self.made % self.interval
    }

    /// Takes note of the pages that are mapped before the first reference.
    pub fn begin(&mut self, first: &Snapshot) {
        let present = first.present().enumerate().filter(|(_, present)| *present);
        present.for_each(|(page, _)| self.mapped.put_present(page));
    }

    /// Takes note of these references, of which those at `faulted` faulted, and looks where it is
    /// time, and after the `last`.
    ///
    /// # Errors
    /// When the page map cannot be read.
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
            self.look();
            self.looks += 1;
            self.time += Monotonic.now() - begun;
        }
        Ok(())
    }

    /// A page that faulted is mapped. If it was mapped before, it had left meanwhile.
    fn faults(&mut self, references: &[u32], faulted: &[u32]) {
        for &at in faulted {
            let page = references[at as usize] & !WRITE;
            if self.mapped.is_present(page as usize) {
                self.log.add((self.made + at as usize) as u32, page);
            }
            self.mapped.put_present(page as usize);
        }
    }

    /// Compares what is mapped with what was.
    fn look(&mut self) {
        for page in self.now.gone_since(&self.mapped) {
            self.log.add(self.made as u32, page as u32);
        }
        std::mem::swap(&mut self.now, &mut self.mapped);
    }

    /// Records the log, and what the looks cost.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn report(self, recorder: &mut dyn Recorder) -> Result<()> {
        let text = format!(
            "pagelab read the page table every {} references to log evictions: {} reads between \
            references, {:.0} µs on average; access times do not include them",
            self.interval,
            self.looks,
            self.time as f64 / 1000.0 / self.looks.max(1) as f64
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
        evictions.look();
    }

    #[test]
    fn a_page_that_left_is_seen_at_a_look_or_at_its_return() {
        let mut evictions = Evictions::new(&Paging { references: 100, ..Paging::default() }, 8);
        [0, 1, 2].into_iter().for_each(|page| evictions.mapped.put_present(page));
        // Page 3 takes the place of page 0; page 1 leaves before the third reference and is back.
        made(&mut evictions, &[2, 3, 1, 2], &[1, 2], &[1, 2, 3]);
        // Page 0 takes the place of page 2. A write carries its mark.
        made(&mut evictions, &[1, WRITE, 1], &[1], &[0, 1, 3]);
        assert_eq!(rows(evictions), [(2.0, 1.0), (4.0, 0.0), (7.0, 2.0)]);
    }

    #[test]
    fn looks_are_bounded() {
        let of =
            |pages, references| Evictions::new(&Paging { references, ..Paging::default() }, pages).interval();
        assert_eq!((of(64, 1000), of(6400, 1000), of(6400, 20_000_000)), (1, 100, 1000));
    }
}
