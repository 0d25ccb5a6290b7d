//! `tier`: where the pages of a hot set lie on a machine with several nodes of memory, and what it
//! costs that they lie there: bound to the fast node, to the slow one, interleaved; and left to the
//! kernel, without and with demotion and promotion.
//!
//! Memory tiering: pages that are not used are demoted to slower memory instead of being reclaimed
//! (`demotion_enabled`), and pages there that hint faults find in use are promoted
//! (`kernel.numa_balancing` 2): Documentation/admin-guide/sysctl/kernel.rst,
//! Documentation/ABI/testing/sysfs-kernel-mm-numa and -memory-tiers.

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Bounds, Contradiction, Declaration, Feature, Footprint, TOUCH};
use crate::declaration::{declared, positive};
use crate::metrics::{
    MetricId, TIER_COST_FAST, TIER_COST_INTERLEAVED, TIER_COST_OFF, TIER_COST_ON, TIER_COST_SLOW,
    TIER_DEMOTED, TIER_HOT_FAST, TIER_HOT_INTERLEAVED, TIER_HOT_OFF, TIER_HOT_ON, TIER_HOT_SLOW,
    TIER_LATENCY_FAST, TIER_LATENCY_INTERLEAVED, TIER_LATENCY_OFF, TIER_LATENCY_ON, TIER_LATENCY_SLOW,
    TIER_PROMOTED,
};
use crate::setting::Setting;
use crate::tables::{TableId, tables};

/// The situations, in their order.
pub const SITUATIONS: [&str; 5] = ["fast", "slow", "interleaved", "off", "on"];

/// Of each situation the metrics: cost, share of the hot set on the fast node, modelled wait.
pub const METRICS: [[MetricId; 3]; 5] = [
    [TIER_COST_FAST, TIER_HOT_FAST, TIER_LATENCY_FAST],
    [TIER_COST_SLOW, TIER_HOT_SLOW, TIER_LATENCY_SLOW],
    [TIER_COST_INTERLEAVED, TIER_HOT_INTERLEAVED, TIER_LATENCY_INTERLEAVED],
    [TIER_COST_OFF, TIER_HOT_OFF, TIER_LATENCY_OFF],
    [TIER_COST_ON, TIER_HOT_ON, TIER_LATENCY_ON],
];

tables! {
    tiers = "tiers", "situation", compare(COST, MEAN) {
        SITUATION = "situation", Text, "fast, slow, interleaved, off or on";
        COST = "cost", Nanoseconds, "CPU time per reference";
        MEAN = "mean", Share, "share of the hot set on the fast node, mean";
        END = "end", Share, "share of the hot set on the fast node at the end of each position";
        LATENCY = "latency", Nanoseconds, "modelled wait of a reference there";
        PROMOTED = "promoted", Pages, "pages promoted";
        DEMOTED = "demoted", Pages, "pages demoted";
        HINTS = "hints", Count, "hint faults";
        KSWAPD = "kswapd", Nanoseconds, "CPU time of the kernel's reclaim threads";
    }
    tier_pages = "tier.pages", "sample of the nodes" {
        SITUATION = "situation", Text, "fast, slow, interleaved, off or on";
        POSITION = "position", Count, "position of the hot set";
        TIME = "time", Nanoseconds, "CPU time since it came there";
        HOT_FAST = "hot.fast", Pages, "its pages on the fast node";
        HOT_SLOW = "hot.slow", Pages, "its pages on the slow node";
        FAST = "fast", Pages, "pages of the mapping on the fast node";
        SLOW = "slow", Pages, "pages of the mapping on the slow node";
        PROMOTED = "promoted", Pages, "pages promoted so far";
        DEMOTED = "demoted", Pages, "pages demoted so far";
    }
}

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Tier {
    /// Pages of the mapping that is left to the kernel [default: an eighth more than is free on the
    /// fast node; in one tier: two hot sets]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub pages: Option<u64>,
    /// Pages of the hot set, which is at the end of the mapping, then at its beginning, and so on
    #[arg(long, value_name = "PAGES", default_value = "4096", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub hot: u64,
    /// Positions of the hot set, one after the other
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub positions: u32,
    /// Seconds of CPU time for which the hot set is referenced at each position
    #[arg(long, value_name = "SECONDS", default_value = "0.8", value_parser = positive)]
    pub seconds: f64,
    /// The kernel's scan period for pages in use, in milliseconds of CPU time (scan_period_min_ms
    /// and _max_ms)
    #[arg(long, value_name = "MS", default_value = "100", value_parser = clap::value_parser!(u32).range(100..=60_000))]
    pub scan_period: u32,
    /// The seed of the order of references
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}
declared!(Tier);

/// Whether reclaim demotes.
pub const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
/// 0, 1 for balancing between processors' nodes, 2 for promotion between tiers.
pub const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
/// When the kernel looks for pages in use; there where debugfs is.
pub const SCANNING: [&str; 3] = [
    "/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms",
    "/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms",
    "/sys/kernel/debug/sched/numa_balancing/scan_delay_ms",
];

impl Declaration for Tier {
    /// The greatest mapping; the hot sets alone where its size is not settled.
    fn footprint(&self, page_size: u64) -> Footprint {
        let pages = self.pages.unwrap_or(0).max(self.hot.saturating_mul(2));
        Footprint::pages(pages, page_size)
    }

    fn primary(&self) -> Option<MetricId> {
        Some(TIER_COST_ON)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[TIER_HOT_ON, TIER_PROMOTED, TIER_DEMOTED]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn profiles_kernel(&self) -> bool {
        true
    }

    fn contradiction(&self) -> Option<Contradiction> {
        self.pages.is_some_and(|pages| pages < self.hot.saturating_mul(2)).then_some((
            "hot",
            "has no room for two hot sets in the mapping",
            "give at most half of --pages",
        ))
    }

    fn settle(&mut self, bounds: &Bounds) {
        let default = bounds.beyond_fast_node.map(|pages| pages.max(self.hot.saturating_mul(2)));
        self.pages = self.pages.or(default);
    }

    fn requires(&self) -> Vec<Feature> {
        vec![Feature::TwoNodes]
    }

    fn usual(&self) -> Setting {
        Setting::unlimited()
    }

    fn kernel_settings(&self) -> &'static [&'static str] {
        &[DEMOTION, BALANCING, SCANNING[0], SCANNING[1], SCANNING[2]]
    }

    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        let pages = 2 * self.pages.unwrap_or(0);
        Some(SITUATIONS.len() as f64 * f64::from(self.positions) * self.seconds + pages as f64 * TOUCH)
    }
}
