//! Hits and misses of the page cache, and the work of read-ahead, counted for the machine or for each
//! process, memory cgroup or file.
//!
//! | what | function | tracepoint (6.18) |
//! |---|---|---|
//! | pages that a read asks for | `filemap_read` and `filemap_splice_read` (6.5) return | `mm_filemap_get_pages` |
//! | pages that a fault maps | `set_pte_range` (`do_set_pte` before 6.6), `do_set_pmd` | `mm_filemap_map_pages`, `mm_filemap_fault` |
//! | pages that somebody waits for | `page_cache_sync_ra`, `filemap_fault` | `page_cache_sync_ra`, `mm_filemap_fault` |
//! | whose pages read-ahead adds | `page_cache_async_ra`, `page_cache_ra_unbounded` | the same |
//! | pages dirtied | `__folio_mark_dirty` | `writeback_dirty_folio` |
//! | pages written | `__folio_start_writeback` | none: `/proc/vmstat`, for the machine |
//! | pages that come and go | | `mm_filemap_add_to_page_cache`, `mm_filemap_delete_from_page_cache` |
//!
//! Programs on functions know what a read was given and a fault has mapped. Some kernels refuse them.
//! The tracepoints know what was asked for, so `tracepoints.rs` has to put that together.
//! Pages mapped as a huge page have no tracepoint.
//!
//! Pages that were read and that nobody has asked for yet are remembered as bits, 64 pages of a file
//! in a word. The first request for such a page takes its bit, and is no hit. A request for pages
//! without bits, as in a warm cache, costs a look-up for each 64 pages.

mod functions;
mod maker;
mod maps;
mod names;
mod programs;
mod tracepoints;

use std::collections::HashMap;

use pagelab_counters::views::cachestat::{By, Counts, Owner, Requests};

use super::btf::Btf;
use super::program::Program;
use super::{TraceError, pair};
use maps::{AHEAD, DIRTIED, HITS, MISSES, Maps, OWNERS, WASTED, WORDS, WRITTEN};
use names::Names;
use programs::Hooks;

/// Counts for as long as it lives.
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
    /// Begins. Pages that are in the cache already count as asked for before.
    ///
    /// # Errors
    /// When the kernel lacks what it takes (BTF, Linux 5.18) or the caller the rights.
    pub fn start(by: By) -> Result<Self, TraceError> {
        let maps = Maps::new()?;
        let (programs, hooks) = programs::all(&Btf::read()?, &maps, by)?;
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

    /// What was requested since the last sample.
    pub fn sample(&mut self) -> Requests {
        self.names.update(self.by, &self.maps.names);
        let mut owners = Vec::new();
        let keys = self.maps.owners.keys();
        let is_crowded = keys.len() > OWNERS as usize / 2;
        for key in keys {
            let Some(now) = self.maps.owners.sum(key) else { continue };
            let before = self.before.insert(key, now).unwrap_or_default();
            if now != before {
                // A hit that was none may be corrected after it was seen.
                let of = |offset: i16| {
                    let change = now[offset as usize / 8].wrapping_sub(before[offset as usize / 8]);
                    if change > u64::MAX / 2 { 0 } else { change }
                };
                // Whoever evicts a page did not read it.
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
                // One that is idle begins anew.
                self.maps.owners.remove(key);
                self.before.remove(&key);
                self.names.forget(key);
            }
        }
        let written = written_pages();
        let before = std::mem::replace(&mut self.written, written);
        if let (By::Machine, Hooks::Tracepoints, [(_, counts)]) = (self.by, self.hooks, &mut owners[..]) {
            counts.written = Some(written.saturating_sub(before));
        }
        let lost = self.maps.lost.get([0]).map_or(0, |[lost]| lost);
        let lost_now = lost.wrapping_sub(std::mem::replace(&mut self.lost, lost));
        Requests { owners, lost: lost_now }
    }

    /// Whether the programs hang on functions or tracepoints, for people.
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

/// Pages that the machine has written since boot.
fn written_pages() -> u64 {
    let text = crate::files::text("/proc/vmstat").unwrap_or_default();
    pagelab_procfs::value(&text, "nr_written").unwrap_or(0)
}
