//! `--evictions`: logs the pages that leave memory, and who freed them.
//!
//! Each kind of page has a source of its own: the page table for anonymous memory ([`page_table`]),
//! tracepoints of the page cache for a file ([`page_cache`]). The thread that makes the references
//! reads the source between two references.

mod page_cache;
mod page_table;

use std::collections::BTreeMap;
use std::fs::File;

use pagelab_experiment::build::{EvictionLog, Evictor, note, warn};
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Observation, Recorder, Result, environment, warnings};
use pagelab_kernel::bpf::reclaim::Actor;
use pagelab_kernel::pagemap::{Snapshot, SnapshotReader};
use pagelab_kernel::region::Region;

use self::page_cache::PageCache;
use self::page_table::PageTable;
use crate::harness::clock::{Clock, Monotonic};

/// Where evicted pages are found.
#[derive(Debug)]
enum Source {
    PageTable(Box<PageTable>),
    PageCache(Box<PageCache>),
}

/// The log of evictions, and its source.
#[derive(Debug)]
pub struct Evictions {
    source: Source,
    interval: usize,
    /// References made so far.
    made: usize,
    log: EvictionLog,
    polls: u64,
    /// Time of the polls, ns.
    time: u64,
}

impl Evictions {
    /// Creates a log for the region of `paging`, which has `pages` pages, of `file` or anonymous.
    /// Allocates all memory that a run needs.
    ///
    /// # Errors
    /// If the kernel refuses the tracepoints that a file needs.
    pub fn new(paging: &Paging, pages: usize, file: Option<&File>) -> Result<Self> {
        let (source, interval, log) = match file {
            Some(file) => {
                let source = Source::PageCache(Box::new(PageCache::new(file, pages)?));
                (source, 1, EvictionLog::with_arrivals())
            }
            None => {
                let source = Source::PageTable(Box::new(PageTable::new(pages)));
                (source, page_table::interval(paging, pages), EvictionLog::new())
            }
        };
        Ok(Self { source, interval, made: 0, log, polls: 0, time: 0 })
    }

    /// Number of references between two polls.
    pub fn interval(&self) -> usize {
        self.interval
    }

    /// Number of references before the next poll.
    pub fn left(&self) -> usize {
        self.interval - self.made % self.interval
    }

    /// Begins with the pages that are in memory before the first reference.
    pub fn begin(&mut self, first: &Snapshot, region: &Region) {
        match &mut self.source {
            Source::PageTable(table) => table.begin(first, region),
            Source::PageCache(cache) => cache.begin(first),
        }
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
        let before = self.made;
        self.made += references.len();
        let polls = last || self.made.is_multiple_of(self.interval);
        if let (Source::PageCache(cache), true) = (&mut self.source, last) {
            cache.end(self.made as u32, reader, region, &mut self.log)?;
        }
        let begun = Monotonic.now();
        match &mut self.source {
            Source::PageTable(table) => {
                table.read_freed(&mut self.log);
                table.faults(before, references, faulted, &mut self.log);
                if polls {
                    table.poll(self.made, reader, region, &mut self.log)?;
                }
            }
            Source::PageCache(cache) => cache.read(self.made as u32, &mut self.log),
        }
        if polls {
            self.polls += 1;
            self.time += Monotonic.now() - begun;
        }
        Ok(())
    }

    /// Records the log, its source, and the cost of the polls.
    ///
    /// # Errors
    /// If the recorder fails.
    pub fn report(self, recorder: &mut dyn Recorder) -> Result<()> {
        let (name, lost) = match &self.source {
            Source::PageTable(table) => (table.name(), table.lost()),
            Source::PageCache(cache) => (cache.name(), cache.lost()),
        };
        let text = format!(
            "the log of evictions is from {name}; pagelab read it {}: {} reads of {:.1} µs on average, which \
            access times do not include",
            if self.interval == 1 {
                "after each reference".into()
            } else {
                format!("every {} references", self.interval)
            },
            self.polls,
            self.time as f64 / 1000.0 / self.polls.max(1) as f64
        );
        note(recorder, Level::Info, text)?;
        if let Source::PageTable(table) = &self.source {
            table.report(recorder)?;
        }
        if lost > 0 {
            let lost_events = warnings::EVICTIONS_LOST;
            warn(recorder, lost_events, format!("{}: {lost} events", lost_events.0))?;
        }
        let entry = (environment::EVICTIONS_SOURCE.to_owned(), name.to_owned());
        recorder.observe(Observation::Environment(BTreeMap::from([entry])))?;
        self.log.record(self.interval as u32, recorder)
    }
}

/// The evictor in the log.
fn evictor(actor: Actor) -> Evictor {
    match actor {
        Actor::Kswapd => Evictor::Kswapd,
        Actor::Direct => Evictor::Direct,
        Actor::Cgroup => Evictor::Cgroup,
        Actor::Task => Evictor::Task,
    }
}
