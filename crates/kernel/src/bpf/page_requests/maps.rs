//! The maps that the programs and pagelab share.

use super::super::TraceError;
use super::super::map::{Full, Map, MapOfProcessors};
use super::names::NAME_WORDS;

/// Words of 64 pages of which some were read and not asked for.
pub(super) const UNASKED: u32 = 1 << 17;
/// Threads that wait for pages or read ahead.
pub(super) const WAITING: u32 = 1 << 14;
/// Owners of requests that are told apart.
pub(super) const OWNERS: u32 = 1 << 14;
/// New owners between two samples that get a name.
pub(super) const NAMED: u32 = 1 << 12;

/// The words of an owner's value, as offsets in bytes: hits, misses, read-ahead hits, wasted pages,
/// dirtied, written.
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
    /// By device, nothing, inode and word of 64 pages: bits of pages that somebody waited for, and of
    /// those read ahead.
    pub(super) unasked: Map<6, 2>,
    /// By thread: whether it is in a fault (1) and the device in one word, the inode, the first page
    /// that it waits for, and the one behind the last.
    pub(super) waiting: Map<1, 4>,
    /// By thread: its last request and its last fault; see `tracepoints.rs`.
    pub(super) requests: Map<1, 6>,
    pub(super) faults: Map<1, 6>,
    /// By device, nothing, inode, or by the number of a process or cgroup.
    pub(super) owners: MapOfProcessors<4, WORDS>,
    /// Names of new owners, by the same.
    pub(super) names: Map<4, NAME_WORDS>,
    /// One value of zeros, of which new names begin.
    pub(super) blank: Map<1, NAME_WORDS>,
    /// Pages that were not counted because a map was full.
    pub(super) lost: Map<1, 1>,
}

impl Maps {
    /// Empty ones.
    pub(super) fn new() -> Result<Self, TraceError> {
        let new = Self {
            unasked: Map::new(Full::Refuses, UNASKED)?,
            waiting: Map::new(Full::Evicts, WAITING)?,
            requests: Map::new(Full::Evicts, WAITING)?,
            faults: Map::new(Full::Evicts, WAITING)?,
            owners: MapOfProcessors::new(OWNERS)?,
            names: Map::new(Full::Evicts, NAMED)?,
            blank: Map::new(Full::Refuses, 1)?,
            lost: Map::new(Full::Refuses, 1)?,
        };
        new.blank.put([0], [0; NAME_WORDS]);
        new.lost.put([0], [0]);
        Ok(new)
    }
}
