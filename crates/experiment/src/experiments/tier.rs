//! `tier`: where the pages of a hot set lie on a machine with several nodes of memory, and what it costs that they lie there:
//! bound to the fast node, to the slow one, interleaved; and left to the kernel, without and with demotion and promotion.
//!
//! Memory tiering: pages that are not used are demoted to slower memory instead of being reclaimed (`demotion_enabled`), and pages
//! there that hint faults find in use are promoted (`kernel.numa_balancing` 2): Documentation/admin-guide/sysctl/kernel.rst,
//! Documentation/ABI/testing/sysfs-kernel-mm-numa and -memory-tiers.

use serde::{Deserialize, Serialize};

use super::Footprint;
use crate::declaration::{declared, positive};
use crate::observation::Unit;

/// The situations, in their order.
pub const SITUATIONS: [&str; 5] = ["fast", "slow", "interleaved", "off", "on"];

/// The columns of the table `tiers`, after the situation's name: processor time of a reference, the mean share of the hot set on the
/// fast node and that at the end of each position, what a reference would then wait by the latencies that the machine's tables tell, pages promoted and
/// demoted, hint faults, and processor time of the kernel's reclaim threads.
pub const COLUMNS: [(&str, Unit); 8] = [
    ("cost", Unit::Nanoseconds),
    ("mean", Unit::Share),
    ("end", Unit::Share),
    ("latency", Unit::Nanoseconds),
    ("promoted", Unit::Pages),
    ("demoted", Unit::Pages),
    ("hints", Unit::Count),
    ("kswapd", Unit::Nanoseconds),
];

/// The columns of the table `tier.pages`, after the situation's name: where the hot set is (its position, and processor time since it
/// came there), its pages on the fast node and on the slow one, those of the whole mapping, and what was promoted and demoted so far.
pub const PAGES: [(&str, Unit); 8] = [
    ("position", Unit::Count),
    ("time", Unit::Nanoseconds),
    ("hot.fast", Unit::Pages),
    ("hot.slow", Unit::Pages),
    ("fast", Unit::Pages),
    ("slow", Unit::Pages),
    ("promoted", Unit::Pages),
    ("demoted", Unit::Pages),
];

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Tier {
    /// Pages of the mapping that is left to the kernel [default: an eighth more than is free on the fast node]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub pages: Option<u64>,
    /// Pages of the hot set, which is at the end of the mapping, then at its beginning, and so on
    #[arg(long, value_name = "PAGES", default_value = "4096", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub hot: u64,
    /// Positions of the hot set, one after the other
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub positions: u32,
    /// Seconds of processor time for which the hot set is referenced at each position
    #[arg(long, value_name = "SECONDS", default_value = "0.8", value_parser = positive)]
    pub seconds: f64,
    /// Milliseconds of processor time between two of the kernel's looks for pages in use (scan_period_min_ms and _max_ms)
    #[arg(long, value_name = "MS", default_value = "100", value_parser = clap::value_parser!(u32).range(100..=60_000))]
    pub scan_period: u32,
    /// The seed of the order of references
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}
declared!(Tier);

impl Tier {
    /// The greatest mapping; the hot sets alone where its size is not settled.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        let pages = self.pages.unwrap_or(0).max(self.hot.saturating_mul(2));
        Footprint { anonymous: pages.saturating_mul(page_size), file: 0 }
    }
}
