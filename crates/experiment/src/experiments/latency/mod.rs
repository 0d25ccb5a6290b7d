//! `latency`: what one access costs at each level of the memory hierarchy, from the first-level
//! cache to a page fault (Larry McVoy and Carl Staelin, lmbench, 1996).
//!
//! A chain of pointers in random order runs through a working set, so that each load waits for the
//! one before it and no prefetcher knows the next; the working set grows from below the first-level
//! cache to beyond the last. One chain has every cache line of the set, in huge pages where there
//! are any: what it shows are the caches and memory. Another has one line of each base page: beyond
//! the reach of the TLBs what it shows is a TLB miss. Then base pages and huge pages of fresh
//! anonymous memory are touched for the first time.

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Bounds, Declaration, Footprint, LOAD, TOUCH};
use crate::declaration::declared;
use crate::metrics::{LATENCY_DRAM, LATENCY_L3, LATENCY_MINOR_FAULT, LATENCY_TLB_MISS, MetricId};
use crate::setting::Setting;
use crate::sizes::Sizes;
use crate::tables::{TableId, tables};

tables! {
    latency = "latency", "working set" {
        SIZE = "size", Bytes, "the working set";
        LINE_LOAD = "line.load", Nanoseconds, "a load; every cache line, huge pages";
        PAGE_LOAD = "page.load", Nanoseconds, "a load; one line of each base page";
    }
}

/// The greatest working set where none is asked for: so many times the last-level cache.
const TIMES: u64 = 4;

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Latency {
    /// The working sets: 16K..256M, or 16K..1G:2 (points per doubling) [default: from 16K to four
    /// times the last-level cache]
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,
    /// Loads timed at each size, in rounds
    #[arg(long, value_name = "N", default_value = "200000", value_parser = clap::value_parser!(u64).range(1..))]
    pub loads: u64,
    /// First touches of base pages and of huge pages, each in rounds
    #[arg(long, value_name = "N", default_value = "8192", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub faults: u64,
    /// The seed of the order of loads
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}
declared!(Latency);

impl Latency {
    /// The default working sets under this memory limit (at most half of it) and beyond this
    /// last-level cache.
    pub fn sizes_for(limit: Option<u64>, last_cache: Option<u64>) -> Sizes {
        Sizes::beyond_caches(16 << 10, TIMES, limit, last_cache)
    }

    /// The working sets that are swept: those asked for, else those of a machine without a limit.
    pub fn sweep(&self) -> Sizes {
        self.sizes.clone().unwrap_or_else(|| Self::sizes_for(None, None))
    }
}

impl Declaration for Latency {
    /// The greatest working set, which is held in one kind of pages at a time.
    fn footprint(&self, page_size: u64) -> Footprint {
        Footprint::anonymous(self.sweep().greatest(page_size))
    }

    fn primary(&self) -> Option<MetricId> {
        Some(LATENCY_DRAM)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[LATENCY_L3, LATENCY_TLB_MISS, LATENCY_MINOR_FAULT]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn settle(&mut self, bounds: &Bounds) {
        self.sizes.get_or_insert_with(|| Self::sizes_for(bounds.limit, bounds.last_cache));
    }

    fn usual(&self) -> Setting {
        Setting::unlimited()
    }

    /// The order of the chain: four bytes for each cache line.
    fn buffers(&self, page_size: u64) -> u64 {
        self.footprint(page_size).anonymous / 16
    }

    fn seconds(&self, _: Option<u64>, page_size: u64) -> Option<f64> {
        let sizes = self.sweep().bytes(page_size);
        let written = 2 * sizes.last().copied().unwrap_or(0) / page_size;
        Some(2.0 * sizes.len() as f64 * self.loads as f64 * LOAD + written as f64 * TOUCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_set_is_beyond_the_last_cache_and_within_the_limit() {
        let greatest = |limit, cache| Latency::sizes_for(limit, cache).greatest(4096);
        assert_eq!(greatest(None, None), 128 << 20);
        assert_eq!(greatest(None, Some(96 << 20)), 384 << 20);
        assert_eq!(greatest(None, Some(1 << 30)), 1 << 30);
        assert_eq!(greatest(Some(64 << 20), Some(96 << 20)), 32 << 20);
        assert_eq!(greatest(Some(4096), None), 16 << 10);
    }
}
