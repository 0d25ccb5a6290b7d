//! The ring and the maps through which the programs send requests one by one.

use super::super::TraceError;
use super::super::map::{Full, Map};
use super::super::ring::Ring;

/// Bytes of the ring: 400,000 records.
const RING: u32 = 16 << 20;
/// Maximum number of cgroups of a subtree.
const MAX_GROUPS: u32 = 1 << 12;

/// The words of a record: kind and device, inode, first page, end (exclusive).
pub(super) const RECORD_WORDS: usize = 4;

/// The event of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A read or a fault requested the pages.
    Requested = 0,
    /// The pages entered the cache from a device, for a request or by read-ahead.
    Read = 1,
    /// The pages entered the cache in another way, usually by a write.
    Written = 2,
}

/// The maps through which the programs send records.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) ring: Ring<RECORD_WORDS>,
    /// Number of pages in records that found the ring full.
    pub(super) dropped: Map<1, 1>,
    /// The cgroups to report, by the inodes of their directories; `None` means all.
    pub(super) groups: Option<Map<2, 1>>,
}

impl Channel {
    /// Creates empty maps; with `is_limited`, for selected cgroups only.
    pub(super) fn new(is_limited: bool) -> Result<Self, TraceError> {
        let dropped = Map::new(Full::Refuses, 1)?;
        dropped.put([0], [0]);
        let groups = is_limited.then(|| Map::new(Full::Refuses, MAX_GROUPS)).transpose()?;
        Ok(Self { ring: Ring::new(RING)?, dropped, groups })
    }
}
