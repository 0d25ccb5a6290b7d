//! The BPF maps that the programs and pagelab share.

use pagelab_counters::views::cachestat::By;

use super::super::TraceError;
use super::super::map::{Full, Map, MapOfProcessors};
use super::names::NAME_WORDS;

/// Maximum number of 64-page words with pages that were read in but not yet requested.
pub(super) const UNASKED: u32 = 1 << 17;
/// Number of counters of these words, a power of two.
pub(super) const GROUPS: u32 = 1 << 14;
/// Maximum number of threads that wait for pages or read ahead.
pub(super) const WAITING: u32 = 1 << 14;
/// Number of places for the last requests of threads, a power of two.
pub(super) const THREADS: u32 = 1 << 15;
/// Maximum number of owners.
pub(super) const OWNERS: u32 = 1 << 14;
/// Maximum number of new owners between two samples that get a name.
pub(super) const NAMED: u32 = 1 << 12;

/// The words of an owner's value, as byte offsets: hits, misses, first requests of pages read
/// ahead, wasted pages, dirtied, written.
pub(super) const HITS: i16 = 0;
pub(super) const MISSES: i16 = 8;
pub(super) const AHEAD: i16 = 16;
pub(super) const WASTED: i16 = 24;
pub(super) const DIRTIED: i16 = 32;
pub(super) const WRITTEN: i16 = 40;
pub(super) const WORDS: usize = 6;

/// The maps that the programs share.
#[derive(Debug)]
pub(super) struct Maps {
    /// By device, padding, inode and 64-page word: a bitmap of the pages that a task waited for,
    /// and one of the pages read ahead.
    pub(super) unasked: Map<6, 2>,
    /// By the low bits of the inode: the number of words in `unasked`, so that a request for a file
    /// without words costs no lookup per word. The kernel inlines the lookup in an array.
    pub(super) groups: Map<1, 1>,
    /// By thread: the device and an in-fault flag in one word, the inode, the first page that it
    /// waits for, and the end of the range (exclusive).
    pub(super) waiting: Map<1, 4>,
    /// By the low bits of the thread: its last request, and in `faults` its last fault; see
    /// `tracepoints.rs`. Two threads with the same low bits share a place, so a large read of one
    /// may be counted twice while the other reads.
    pub(super) requests: Map<1, 7>,
    pub(super) faults: Map<1, 7>,
    /// The whole machine. The kernel inlines the lookup in an array.
    pub(super) machine: MapOfProcessors<1, WORDS>,
    /// By device, padding and inode, or by the number of a process or cgroup.
    pub(super) owners: MapOfProcessors<4, WORDS>,
    /// Names of new owners, by the same key.
    pub(super) names: Map<4, NAME_WORDS>,
    /// One value of zeros, with which new names start.
    pub(super) blank: Map<1, NAME_WORDS>,
    /// Pages not counted or not classified: a map was full, or a request was too large.
    pub(super) lost: Map<1, 1>,
}

impl Maps {
    /// Creates the maps, empty.
    pub(super) fn new() -> Result<Self, TraceError> {
        let new = Self {
            unasked: Map::new(Full::Refuses, UNASKED)?,
            groups: Map::array(GROUPS)?,
            waiting: Map::new(Full::Evicts, WAITING)?,
            requests: Map::array(THREADS)?,
            faults: Map::array(THREADS)?,
            machine: MapOfProcessors::array(1)?,
            owners: MapOfProcessors::new(OWNERS)?,
            names: Map::new(Full::Evicts, NAMED)?,
            blank: Map::new(Full::Refuses, 1)?,
            lost: Map::new(Full::Refuses, 1)?,
        };
        new.blank.put([0], [0; NAME_WORDS]);
        new.lost.put([0], [0]);
        Ok(new)
    }

    /// The owners, and their counts.
    pub(super) fn counts(&self, by: By) -> Vec<([u32; 4], [u64; WORDS])> {
        match by {
            By::Machine => self.machine.sum([0]).map(|counts| ([0; 4], counts)).into_iter().collect(),
            _ => {
                let keys = self.owners.keys().into_iter();
                keys.filter_map(|key| self.owners.sum(key).map(|counts| (key, counts))).collect()
            }
        }
    }
}
