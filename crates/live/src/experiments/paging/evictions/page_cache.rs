//! Evictions of a file's pages, from the kernel's tracepoints of the page cache.
//!
//! A page that leaves the page cache was evicted: nobody truncates the file during a run. pagelab
//! reads the events after each reference, so a page that enters or leaves during a reference has
//! its number. kswapd frees pages at any time; those have the number of the reference that follows.

use std::fs::File;

use pagelab_experiment::build::EvictionLog;
use pagelab_experiment::{Failure, Result};
use pagelab_kernel::bpf::page_requests::stream::file_number;
use pagelab_kernel::bpf::reclaim::{Event, ReclaimLog, Watched};

use super::evictor;
use crate::harness::failure::failed;

/// The source.
#[derive(Debug)]
pub(super) struct PageCache {
    events: ReclaimLog,
    pages: u32,
}

impl PageCache {
    /// Starts the programs for a file that has `pages` pages.
    pub(super) fn new(file: &File, pages: usize) -> Result<Self> {
        let (device, inode) = file_number(&file.metadata().map_err(failed("reading the file's number"))?);
        let events = ReclaimLog::start(&Watched::File { device, inode })
            .map_err(|error| Failure::parameters("--evictions", &error))?;
        Ok(Self { events, pages: pages as u32 })
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

    /// Forgets the events before the first reference.
    pub(super) fn begin(&mut self) {
        self.events.drain(|_| {});
    }

    /// Logs the events up to reference `made`.
    pub(super) fn read(&mut self, made: u32, log: &mut EvictionLog) {
        let all = u64::from(self.pages);
        let within = |page: u64, pages: u32| {
            let end = page.saturating_add(pages.into()).min(all);
            (page.min(all) as u32, end.saturating_sub(page) as u32)
        };
        self.events.drain(|event| match event {
            Event::Entered { page, pages } => log.arrive(made, within(page, pages)),
            Event::Left { page, pages, by, workingset } => {
                log.add_pages(made, within(page, pages), evictor(by), workingset);
            }
        });
    }
}
