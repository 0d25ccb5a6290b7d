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
use crate::catalogue::name;
use crate::declaration::declared;
use crate::metrics::MetricId;
use crate::observation::Unit;
use crate::plan::Dishonoured;
use crate::setting::{Setting, Value};

/// The ways of asking, in their order: before memory is filled; in pieces, without compaction; with
/// direct compaction; by MADV_COLLAPSE; without compaction again, after compact_memory.
pub const WAYS: [&str; 5] = ["whole", "pieces", "direct", "collapse", "compacted"];

/// The columns of the table `ways`, after the way's name: huge pages asked for and had, free memory
/// and the free blocks of a huge page's size before, direct compactions, how many of them did and
/// did not make a block, and the processor time of the calling thread.
pub const COLUMNS: [(&str, Unit); 8] = [
    ("asked", Unit::Count),
    ("had", Unit::Count),
    ("free", Unit::Bytes),
    ("blocks", Unit::Count),
    ("stall", Unit::Count),
    ("success", Unit::Count),
    ("fail", Unit::Count),
    ("time", Unit::Nanoseconds),
];

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
        Some(name::FRAGMENT_DIRECT)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[name::FRAGMENT_FRAGMENTED, name::FRAGMENT_COMPACTED, name::FRAGMENT_COST_DIRECT]
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
