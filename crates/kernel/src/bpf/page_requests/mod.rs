//! Counts page-cache hits, misses and read-ahead with BPF programs, for the machine or by process,
//! memory cgroup or file.
//!
//! | event | function | tracepoint (6.18) |
//! |---|---|---|
//! | a read requests pages | `filemap_read` and `filemap_splice_read` (6.5) return | `mm_filemap_get_pages` |
//! | a fault maps pages | `set_pte_range` (`do_set_pte` before 6.6), `do_set_pmd` | `mm_filemap_map_pages`, `mm_filemap_fault` |
//! | a task waits for pages | `page_cache_sync_ra`, `filemap_fault` | `page_cache_sync_ra`, `mm_filemap_fault` |
//! | read-ahead adds pages | `page_cache_async_ra`, `page_cache_ra_unbounded` | the same |
//! | a page becomes dirty | `__folio_mark_dirty` | `writeback_dirty_folio` |
//! | a page is written back | `__folio_start_writeback` | none: `/proc/vmstat`, for the machine |
//! | a page enters or leaves the cache | | `mm_filemap_add_to_page_cache`, `mm_filemap_delete_from_page_cache` |
//!
//! Programs on functions see the pages that a read returned and a fault mapped. Some kernels refuse
//! them. Programs on tracepoints see only the requested range, from which `tracepoints.rs`
//! reconstructs the requests. Huge-page mappings have no tracepoint.
//!
//! A bitmap marks the pages that were read in but not yet requested, 64 pages of a file per word.
//! The first request for such a page clears its bit and is not a hit. A request costs one lookup
//! per 64 pages, or none if the file has no bits, as in a warm cache.

mod channel;
mod functions;
mod maker;
mod maps;
mod names;
mod programs;
pub mod stream;
mod tracepoints;

use std::collections::HashMap;

use pagelab_counters::views::cachestat::{By, Counts, Owner, Requests};

use super::btf::Btf;
use super::program::Program;
use super::{TraceError, pair};
use channel::Channel;
use maps::{AHEAD, DIRTIED, HITS, MISSES, Maps, OWNERS, WASTED, WORDS, WRITTEN};
use names::Names;
use programs::Hooks;

/// Counts page-cache requests until it is dropped.
#[derive(Debug)]
pub struct PageRequests {
    maps: Maps,
    by: By,
    hooks: Hooks,
    names: Names,
    before: HashMap<[u32; 4], [u64; WORDS]>,
    written: u64,
    lost: u64,
    _programs: Vec<Program>,
}

impl PageRequests {
    /// Starts counting. Pages already in the cache count as requested before.
    ///
    /// # Errors
    /// When the kernel is too old (before 5.18) or has no BTF, or the caller lacks the rights.
    pub fn start(by: By) -> Result<Self, TraceError> {
        Self::begin(by, None)
    }

    /// Like [`Self::start`], but the programs also send each request through `channel`.
    fn begin(by: By, channel: Option<&Channel>) -> Result<Self, TraceError> {
        let maps = Maps::new()?;
        let (programs, hooks) = programs::all(&Btf::read()?, &maps, by, channel)?;
        let names = Names::default();
        Ok(Self {
            maps,
            by,
            hooks,
            names,
            before: HashMap::new(),
            written: written_pages(),
            lost: 0,
            _programs: programs,
        })
    }

    /// The requests since the last sample.
    pub fn sample(&mut self) -> Requests {
        self.names.update(self.by, &self.maps.names);
        let mut owners = Vec::new();
        let counts = self.maps.counts(self.by);
        let is_crowded = counts.len() > OWNERS as usize / 2;
        for (key, now) in counts {
            let before = self.before.insert(key, now).unwrap_or_default();
            if now != before {
                // A correction may lower a count that an earlier sample reported.
                let of = |offset: i16| {
                    let change = now[offset as usize / 8].wrapping_sub(before[offset as usize / 8]);
                    if change > u64::MAX / 2 { 0 } else { change }
                };
                // The task that evicts a page is not the one that read it.
                let wasted = matches!(self.by, By::Machine | By::File).then(|| of(WASTED));
                let counts = Counts {
                    hits: of(HITS),
                    misses: of(MISSES),
                    ahead: of(AHEAD),
                    wasted,
                    dirtied: of(DIRTIED),
                    written: (self.hooks == Hooks::Functions).then(|| of(WRITTEN)),
                };
                owners.push((self.owner(key), counts));
            } else if is_crowded {
                // Drop an idle owner; it starts from zero if it returns.
                self.maps.owners.remove(key);
                self.before.remove(&key);
                self.names.forget(key);
            }
        }
        let written = written_pages();
        let before = std::mem::replace(&mut self.written, written);
        if let (By::Machine, Hooks::Tracepoints) = (self.by, self.hooks) {
            let written = written.saturating_sub(before);
            if owners.is_empty() && written > 0 {
                // Writeback alone, of pages dirtied earlier.
                owners.push((Owner::default(), Counts { wasted: Some(0), ..Counts::default() }));
            }
            owners.iter_mut().for_each(|(_, counts)| counts.written = Some(written));
        }
        let lost = self.maps.lost.get([0]).map_or(0, |[lost]| lost);
        let lost_now = lost.wrapping_sub(std::mem::replace(&mut self.lost, lost));
        Requests { owners, lost: lost_now }
    }

    /// The hooks that the programs are attached to: "functions" or "tracepoints".
    pub fn source(&self) -> &'static str {
        match self.hooks {
            Hooks::Functions => "functions",
            Hooks::Tracepoints => "tracepoints",
        }
    }

    fn owner(&mut self, key: [u32; 4]) -> Owner {
        let number = pair(key[2], key[3]);
        match self.by {
            By::Machine => Owner::default(),
            By::Process => Owner { number: Some(number), name: self.names.process(key, number) },
            By::Cgroup => Owner { number: Some(number), name: self.names.cgroup(number) },
            By::File => Owner { number: Some(number), name: self.names.file(key) },
        }
    }
}

/// The number of pages that the machine has written back since boot.
fn written_pages() -> u64 {
    let text = crate::files::text("/proc/vmstat").unwrap_or_default();
    pagelab_procfs::value(&text, "nr_written").unwrap_or(0)
}
