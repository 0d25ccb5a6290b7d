//! Evictions of a file's pages, from the kernel's tracepoints of the page cache.
//!
//! A page that leaves the page cache was evicted: nobody truncates the file during a run. pagelab
//! reads the events after each reference, so a page that enters or leaves during a reference has
//! its number. kswapd frees pages at any time; those have the number of the reference that follows.

use std::fs::File;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pagelab_experiment::build::EvictionLog;
use pagelab_experiment::{Failure, Result};
use pagelab_kernel::bpf::page_requests::stream::file_number;
use pagelab_kernel::bpf::reclaim::{Event, ReclaimLog, Watched};
use pagelab_kernel::pagemap::{Snapshot, SnapshotReader};
use pagelab_kernel::region::Region;

use super::evictor;
use crate::harness::failure::failed;

/// The source.
#[derive(Debug)]
pub(super) struct PageCache {
    events: ReclaimLog,
    pages: u32,
    /// Pages in memory, by the events.
    held: u64,
    snapshot: Snapshot,
}

/// How long the end of read-ahead is waited for.
const TIMEOUT: Duration = Duration::from_secs(2);

impl PageCache {
    /// Starts the programs for a file that has `pages` pages.
    pub(super) fn new(file: &File, pages: usize) -> Result<Self> {
        let (device, inode) = file_number(&file.metadata().map_err(failed("reading the file's number"))?);
        let events = ReclaimLog::start(&Watched::File { device, inode })
            .map_err(|error| Failure::parameters("--evictions", &error))?;
        Ok(Self { events, pages: pages as u32, held: 0, snapshot: Snapshot::new(pages) })
    }

    pub(super) fn name(&self) -> &'static str {
        if self.events.is_on_functions() {
            "tracepoints of the page cache and kernel functions"
        } else {
            "tracepoints of the page cache"
        }
    }

    pub(super) fn lost(&self) -> u64 {
        self.events.dropped()
    }

    /// Begins with the pages that are in memory, and forgets the events before the first reference.
    pub(super) fn begin(&mut self, first: &Snapshot) {
        self.held = in_memory(first);
        self.events.drain(|_| {});
    }

    /// Logs the events up to the last reference, `made`, and waits until read-ahead has ended: a page
    /// enters the cache at once, and is in the page map when it has been read.
    ///
    /// # Errors
    /// If the page map cannot be read.
    pub(super) fn end(
        &mut self,
        made: u32,
        reader: &mut SnapshotReader,
        region: &Region,
        log: &mut EvictionLog,
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.read(made, log);
            reader.read(region, &mut self.snapshot).map_err(failed("reading the page map"))?;
            if in_memory(&self.snapshot) == self.held || begun.elapsed() > TIMEOUT {
                return Ok(());
            }
            sleep(Duration::from_millis(1));
        }
    }

    /// Logs the events up to reference `made`.
    pub(super) fn read(&mut self, made: u32, log: &mut EvictionLog) {
        let all = u64::from(self.pages);
        let within = |page: u64, pages: u32| {
            let end = page.saturating_add(pages.into()).min(all);
            (page.min(all) as u32, end.saturating_sub(page) as u32)
        };
        let held = &mut self.held;
        self.events.drain(|event| match event {
            Event::Entered { page, pages } => {
                let (first, count) = within(page, pages);
                *held += u64::from(count);
                log.arrive(made, (first, count));
            }
            Event::Left { page, pages, by, workingset } => {
                let (first, count) = within(page, pages);
                *held = held.saturating_sub(count.into());
                log.add_pages(made, (first, count), evictor(by), workingset);
            }
        });
    }
}

fn in_memory(snapshot: &Snapshot) -> u64 {
    snapshot.present().filter(|&present| present).count() as u64
}
