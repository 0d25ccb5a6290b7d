//! `oom`: who is killed when a memory limit is reached and nothing is left to reclaim, and how long
//! everybody waits for it.
//!
//! Inside the run's cgroup some processes hold memory and one grows until the kernel kills
//! (mm/oom_kill.c, `oom_badness`): with the same `oom_score_adj` for all, with more of it for the
//! first, and with `memory.oom.group` (Documentation/admin-guide/ cgroup-v2.rst).

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Footprint, Tasks};
use crate::catalogue::name;
use crate::declaration::declared;
use crate::metrics::MetricId;
use crate::observation::Unit;

/// The situations, in their order.
pub const SITUATIONS: [&str; 3] = ["equal", "adjusted", "group"];

/// The columns of the table `kills`, after the situation and who was killed: what the killed held
/// in memory and in swap, the score of one that was killed alone and the highest one by the
/// kernel's formula, the time from the first time at the limit, the time since a page was last
/// written, the kernel's own count of kills, and the time in which somebody waited for memory
/// (PSI).
pub const COLUMNS: [(&str, Unit); 7] = [
    ("held", Unit::Bytes),
    ("score", Unit::Pages),
    ("highest", Unit::Pages),
    ("stall", Unit::Nanoseconds),
    ("pause", Unit::Nanoseconds),
    ("oom_kill", Unit::Count),
    ("stalled", Unit::Nanoseconds),
];

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Oom {
    /// Pages of each process that does not grow
    #[arg(long, value_name = "PAGES,PAGES,…", value_delimiter = ',', default_value = "512,1024,8192", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub held: Vec<u64>,
    /// The last process grows up to this number of pages; without a kill if the limit has room for
    /// all
    #[arg(long, value_name = "PAGES", default_value = "32768", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub grow: u64,
    /// Extra oom_score_adj of the first process in the situation 'adjusted', in thousandths of the
    /// limit
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub adjust: u32,
}
declared!(Oom);

impl Declaration for Oom {
    /// All processes.
    fn footprint(&self, page_size: u64) -> Footprint {
        let pages = self.held.iter().fold(self.grow, |sum, pages| sum.saturating_add(*pages));
        Footprint::pages(pages, page_size)
    }

    fn primary(&self) -> Option<MetricId> {
        Some(name::OOM_STALL_EQUAL)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[name::OOM_KILLED_EQUAL, name::OOM_STALL_ADJUSTED]
    }

    fn tasks(&self, _: u64) -> Tasks {
        Tasks::processes(self.held.len() as u64 + 1)
    }

    fn needs_limit(&self) -> Option<&'static str> {
        Some("kills nobody without a memory limit")
    }

    fn runs_out_of_memory(&self) -> bool {
        true
    }
}
