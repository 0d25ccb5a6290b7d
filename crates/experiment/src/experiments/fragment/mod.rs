//! `fragment`: how many huge pages can still be had when free memory is in small pieces.
//!
//! Memory is filled with base pages and all but one in each group of them are given back: most of
//! it is free, and hardly any two megabytes of it lie together. Then huge pages are asked for in
//! several ways (Documentation/admin-guide/mm/transhuge.rst): at faults without and with direct
//! compaction, by MADV_COLLAPSE, and after all of memory was compacted at once
//! (/proc/sys/vm/compact_memory). Mel Gorman, "Memory compaction" (2010), is where this was asked
//! first.

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Feature, Footprint};
use crate::declaration::declared;
use crate::experiments::Dishonoured;
use crate::metrics::{
    FRAGMENT_COMPACTED, FRAGMENT_COST_DIRECT, FRAGMENT_DIRECT, FRAGMENT_FRAGMENTED, MetricId,
};
use crate::setting::{Setting, Value};
use crate::tables::{TableId, tables};

/// The ways of asking, in their order: before memory is filled; in pieces, without compaction; with
/// direct compaction; by MADV_COLLAPSE; without compaction again, after compact_memory.
pub const WAYS: [&str; 5] = ["whole", "pieces", "direct", "collapse", "compacted"];

tables! {
    ways = "ways", "way of requesting huge pages", compare(HAD) {
        WAY = "way", Text, "the way";
        ASKED = "asked", Count, "huge pages requested";
        HAD = "had", Count, "huge pages allocated";
        FREE = "free", Bytes, "free memory before";
        BLOCKS = "blocks", Count, "free blocks of a huge page's size before";
        STALL = "stall", Count, "direct compactions";
        SUCCESS = "success", Count, "direct compactions that made a block";
        FAIL = "fail", Count, "direct compactions that made none";
        TIME = "time", Nanoseconds, "CPU time of the calling thread";
    }
}

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Fragment {
    /// Huge pages to request in each way
    #[arg(long, value_name = "N", default_value = "192", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub huge: u32,
    /// Pages per group: one stays, the others are freed
    #[arg(long, value_name = "PAGES", default_value = "16", value_parser = clap::value_parser!(u32).range(2..=512))]
    pub group: u32,
    /// Free pages at which filling ends
    #[arg(long, value_name = "PAGES", default_value = "8192", value_parser = clap::value_parser!(u64).range(4096..=1 << 31))]
    pub leave: u64,
}
declared!(Fragment);

impl Declaration for Fragment {
    /// What is asked for; the filling takes what there is, and leaves some.
    fn footprint(&self, page_size: u64) -> Footprint {
        const PAGES: u64 = 512;
        Footprint::pages(u64::from(self.huge).saturating_mul(PAGES), page_size)
    }

    fn primary(&self) -> Option<MetricId> {
        Some(FRAGMENT_DIRECT)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[FRAGMENT_FRAGMENTED, FRAGMENT_COMPACTED, FRAGMENT_COST_DIRECT]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn profiles_kernel(&self) -> bool {
        true
    }

    fn requires(&self) -> Vec<Feature> {
        vec![Feature::Disposable]
    }

    /// It takes all of the machine's memory, and has no limit to have none of.
    fn usual(&self) -> Setting {
        Setting::default()
    }

    fn honours(&self, condition: &Value) -> Result<(), Dishonoured> {
        match condition {
            Value::Memory(_) | Value::Swap(_) | Value::SwapSize(_) | Value::Thp(_) => Err((
                "performs fragment on all of the machine's memory, and sets what huge pages it has itself"
                    .to_owned(),
                "leave it out".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}
