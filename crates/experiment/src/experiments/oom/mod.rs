//! `oom`: who is killed when a memory limit is reached and nothing is left to reclaim, and how long
//! everybody waits for it.
//!
//! Inside the run's cgroup some processes hold memory and one grows until the kernel kills
//! (mm/oom_kill.c, `oom_badness`): with the same `oom_score_adj` for all, with more of it for the
//! first, and with `memory.oom.group` (Documentation/admin-guide/ cgroup-v2.rst).

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Footprint, Tasks};
use crate::declaration::declared;
use crate::metrics::{MetricId, OOM_KILLED_EQUAL, OOM_STALL_ADJUSTED, OOM_STALL_EQUAL};
use crate::tables::{TableId, tables};

/// The situations, in their order.
pub const SITUATIONS: [&str; 3] = ["equal", "adjusted", "group"];

tables! {
    kills = "kills", "situation", compare(STALL) {
        SITUATION = "situation", Text, "equal, adjusted or group";
        WHO = "who", Text, "the OOM victim";
        HELD = "held", Bytes, "its memory and swap";
        SCORE = "score", Pages, "its score by the kernel's formula, of a single victim";
        HIGHEST = "highest", Pages, "the highest score of all processes";
        STALL = "stall", Nanoseconds, "time from the limit to the kill";
        PAUSE = "pause", Nanoseconds, "time from the last page written to the kill";
        OOM_KILL = "oom_kill", Count, "kills by the kernel's count";
        STALLED = "stalled", Nanoseconds, "time in which a task waited for memory (PSI)";
    }
}

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
        Some(OOM_STALL_EQUAL)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[OOM_KILLED_EQUAL, OOM_STALL_ADJUSTED]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn profiles_kernel(&self) -> bool {
        true
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
