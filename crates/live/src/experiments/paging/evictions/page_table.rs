//! Evictions of anonymous pages, from the page table (`/proc/self/pagemap`).
//!
//! A page that was mapped at the last poll and is not mapped at this one was evicted. A fault on a
//! page that was mapped at the last poll means that the page left and came back since. Anonymous
//! base pages come back only by faults, and every fault is known, so the log misses no eviction;
//! its time has the resolution of the interval. Polling sets no accessed bit and needs no
//! privilege. It shows when pages leave the page table, and not how long they stay in the swap
//! cache afterwards.
//!
//! A BPF program on the function that frees pages shows who freed them, on kernels that permit such
//! programs. A page that leaves the page table is freed later, or comes back from the swap cache.

use pagelab_experiment::build::{EvictionLog, Evictor, metric, note};
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Recorder, Result, metrics};
use pagelab_kernel::bpf::TraceError;
use pagelab_kernel::bpf::reclaim::{Event, ReclaimLog, Watched};
use pagelab_kernel::pagemap::{Snapshot, SnapshotReader};
use pagelab_kernel::region::Region;

use super::evictor;
use crate::harness::failure::failed;

/// Number of polls per as many references as the region has pages.
const POLLS_PER_PASS: u64 = 64;
/// Maximum number of polls in a run, which bounds their cost.
const MAX_POLLS: u64 = 20_000;
/// No eviction.
const NONE: u32 = u32::MAX;

/// Number of references between two polls.
pub(super) fn interval(paging: &Paging, pages: usize) -> usize {
    let interval = (pages as u64 / POLLS_PER_PASS).max(paging.references.div_ceil(MAX_POLLS)).max(1);
    usize::try_from(interval).unwrap_or(usize::MAX)
}

/// The pages that are mapped as far as is known.
#[derive(Debug)]
pub(super) struct PageTable {
    mapped: Snapshot,
    now: Snapshot,
    freed: Result<Freed, TraceError>,
}

impl PageTable {
    /// Creates the source for a region of `pages` pages.
    pub(super) fn new(pages: usize) -> Self {
        let freed = ReclaimLog::start(&Watched::Anonymous).map(|events| Freed::new(events, pages));
        Self { mapped: Snapshot::new(pages), now: Snapshot::new(pages), freed }
    }

    pub(super) fn name(&self) -> &'static str {
        if self.freed.is_ok() { "the page table and kernel functions" } else { "the page table" }
    }

    pub(super) fn lost(&self) -> u64 {
        self.freed.as_ref().map_or(0, |freed| freed.events.dropped())
    }

    /// Sets the pages that are mapped before the first reference.
    pub(super) fn begin(&mut self, first: &Snapshot, region: &Region) {
        let present = first.present().enumerate().filter(|(_, present)| *present);
        present.for_each(|(page, _)| self.mapped.put_present(page));
        if let Ok(freed) = &self.freed {
            let start = region.base().addr() / region.page_size();
            freed.events.watch(start as u64..(start + region.pages()) as u64);
        }
    }

    /// Attributes evictions to the tasks that freed the pages.
    pub(super) fn read_freed(&mut self, log: &mut EvictionLog) {
        if let Ok(freed) = &mut self.freed {
            freed.read(log);
        }
    }

    /// Sets the pages that faulted as mapped. A page that was mapped before was evicted meanwhile.
    /// `made` is the number of references before these.
    pub(super) fn faults(&mut self, made: usize, references: &[u32], faulted: &[u32], log: &mut EvictionLog) {
        for &at in faulted {
            let page = (references[at as usize] & !crate::harness::touch::WRITE) as usize;
            let left = self.mapped.is_present(page);
            let number = left.then(|| log.add((made + at as usize) as u32, page as u32)).flatten();
            if let Ok(freed) = &mut self.freed {
                freed.returned(page, number, left, log);
            }
            self.mapped.put_present(page);
        }
    }

    /// Logs the pages that are no longer mapped after `made` references.
    pub(super) fn poll(
        &mut self,
        made: usize,
        reader: &mut SnapshotReader,
        region: &Region,
        log: &mut EvictionLog,
    ) -> Result<()> {
        reader.read(region, &mut self.now).map_err(failed("reading the page map"))?;
        self.compare(made, log);
        Ok(())
    }

    fn compare(&mut self, made: usize, log: &mut EvictionLog) {
        for page in self.now.gone_since(&self.mapped) {
            let number = log.add(made as u32, page as u32);
            if let (Ok(freed), Some(number)) = (&mut self.freed, number) {
                freed.left(page, number, log);
            }
        }
        std::mem::swap(&mut self.now, &mut self.mapped);
    }

    /// Records the number of freed pages, or why it is not known.
    pub(super) fn report(&self, recorder: &mut dyn Recorder) -> Result<()> {
        match &self.freed {
            Ok(freed) => metric(recorder, metrics::EVICTIONS_FREED, Some(freed.count as f64)),
            Err(error) => note(
                recorder,
                Level::Info,
                format!("the log of evictions does not show who freed pages: {error}"),
            ),
        }
    }
}

/// The pages that reclaim freed, and the evictions that wait for it.
#[derive(Debug)]
struct Freed {
    events: ReclaimLog,
    tasks: Tasks,
    count: u64,
}

impl Freed {
    fn new(events: ReclaimLog, pages: usize) -> Self {
        Self { events, tasks: Tasks::new(pages), count: 0 }
    }

    fn read(&mut self, log: &mut EvictionLog) {
        let Self { events, tasks, count } = self;
        events.drain(|event| {
            if let Event::Left { page, by, workingset, .. } = event {
                *count += 1;
                tasks.freed(page as usize, (evictor(by), workingset), log);
            }
        });
    }

    fn left(&mut self, page: usize, number: u32, log: &mut EvictionLog) {
        self.tasks.left(page, number, log);
    }

    fn returned(&mut self, page: usize, number: Option<u32>, left: bool, log: &mut EvictionLog) {
        self.tasks.returned(page, number, left, log);
    }
}

/// Matches evictions with the events of freed pages. Of one page the two come in turn; which is
/// seen first depends on the poll.
#[derive(Debug)]
struct Tasks {
    /// For each page, its eviction that has no event yet.
    pending: Vec<u32>,
    /// For each page, its event that has no eviction yet.
    unclaimed: Vec<Option<(Evictor, Option<bool>)>>,
}

impl Tasks {
    fn new(pages: usize) -> Self {
        Self { pending: vec![NONE; pages], unclaimed: vec![None; pages] }
    }

    /// Reclaim freed the page.
    fn freed(&mut self, page: usize, by: (Evictor, Option<bool>), log: &mut EvictionLog) {
        let Some(pending) = self.pending.get_mut(page) else { return };
        match std::mem::replace(pending, NONE) {
            NONE => self.unclaimed[page] = Some(by),
            number => log.attribute(number, by.0, by.1),
        }
    }

    /// The page left the page table.
    fn left(&mut self, page: usize, number: u32, log: &mut EvictionLog) {
        match self.unclaimed[page].take() {
            Some((by, workingset)) => log.attribute(number, by, workingset),
            None => self.pending[page] = number,
        }
    }

    /// The page came back. `left` if it left since the last poll, by the eviction `number`.
    fn returned(&mut self, page: usize, number: Option<u32>, left: bool, log: &mut EvictionLog) {
        let pending = std::mem::replace(&mut self.pending[page], NONE);
        if pending != NONE {
            log.attribute(pending, Evictor::SwapCache, None);
        }
        if left {
            let (by, workingset) = self.unclaimed[page].take().unwrap_or((Evictor::SwapCache, None));
            if let Some(number) = number {
                log.attribute(number, by, workingset);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::touch::WRITE;
    use pagelab_experiment::Observations;
    use pagelab_experiment::tables::evictions;

    fn rows(log: EvictionLog) -> Vec<(f64, f64)> {
        let mut seen = Observations::default();
        log.record(1, &mut seen).unwrap();
        let table = seen.table(evictions::TABLE).unwrap();
        let of = |column| table.numbers(column).unwrap().iter().copied().flatten().collect::<Vec<_>>();
        of(evictions::REFERENCE).into_iter().zip(of(evictions::PAGE)).collect()
    }

    #[test]
    fn a_page_that_left_is_seen_at_a_poll_or_at_its_return() {
        let freed = Err(TraceError::Denied);
        let mut table = PageTable { mapped: Snapshot::new(8), now: Snapshot::new(8), freed };
        let (mut log, mut before) = (EvictionLog::new(), 0);
        let mut made = |references: &[u32], faulted: &[u32], mapped: &[usize]| {
            table.faults(before, references, faulted, &mut log);
            before += references.len();
            table.now = Snapshot::new(8);
            mapped.iter().for_each(|&page| table.now.put_present(page));
            table.compare(before, &mut log);
        };
        made(&[0, 1, 2], &[0, 1, 2], &[0, 1, 2]);
        // Page 3 replaces page 0. Page 1 leaves before the third reference, which brings it back.
        made(&[2, 3, 1, 2], &[1, 2], &[1, 2, 3]);
        // Page 0 replaces page 2. The last reference but one is a write.
        made(&[1, WRITE, 1], &[1], &[0, 1, 3]);
        assert_eq!(rows(log), [(5.0, 1.0), (7.0, 0.0), (10.0, 2.0)]);
    }

    #[test]
    fn an_eviction_has_the_task_that_freed_the_page_before_or_after_the_poll() {
        let (mut tasks, mut log) = (Tasks::new(8), EvictionLog::new());
        let add = |page: u32, log: &mut EvictionLog| log.add(0, page).unwrap();
        // Freed before the poll saw it, and after.
        tasks.freed(1, (Evictor::Kswapd, Some(true)), &mut log);
        let number = add(1, &mut log);
        tasks.left(1, number, &mut log);
        let number = add(2, &mut log);
        tasks.left(2, number, &mut log);
        tasks.freed(2, (Evictor::Cgroup, None), &mut log);
        // Back from the swap cache, seen at a poll and at its return; freed and back between two
        // polls.
        let number = add(3, &mut log);
        tasks.left(3, number, &mut log);
        tasks.returned(3, None, false, &mut log);
        let number = add(4, &mut log);
        tasks.returned(4, Some(number), true, &mut log);
        tasks.freed(5, (Evictor::Direct, None), &mut log);
        let number = add(5, &mut log);
        tasks.returned(5, Some(number), true, &mut log);
        // Not freed before the end; a page outside of the region.
        let number = add(6, &mut log);
        tasks.left(6, number, &mut log);
        tasks.freed(100, (Evictor::Direct, None), &mut log);
        let mut seen = Observations::default();
        log.record(1, &mut seen).unwrap();
        let table = seen.table(evictions::TABLE).unwrap();
        let by = table.texts(evictions::BY).unwrap();
        assert_eq!(by, ["kswapd", "cgroup", "swap-cache", "swap-cache", "direct", ""]);
    }

    #[test]
    fn polls_are_bounded() {
        let of = |pages, references| interval(&Paging { references, ..Paging::default() }, pages);
        assert_eq!((of(64, 1000), of(6400, 1000), of(6400, 20_000_000)), (1, 100, 1000));
    }
}
