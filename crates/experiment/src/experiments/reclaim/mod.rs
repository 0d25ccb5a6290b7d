//! `reclaim`: what taking memory from a load in advance frees, how much of it was cold, and what it
//! costs.
//!
//! A load has a hot part, which it references again and again, and a cold one, which it does not.
//! Step by step memory is taken: by a file of its cgroup that is asked, `memory.reclaim`
//! (Documentation/admin-guide/cgroup-v2.rst, Linux 5.19 and later; proactive reclaim as in Weiner
//! et al., "TMO: Transparent Memory Offloading in Datacenters", ASPLOS 2022), or by a scheme of the
//! kernel's data access monitor, DAMON (Documentation/admin-guide/mm/damon/usage.rst; Park, Bhowmik
//! and Uta, "DAOS: Data Access-aware Operating System", HPDC 2022).

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Contradiction, Declaration, Feature, Footprint, TOUCH, Tasks};
use crate::declaration::{declared, positive, words};
use crate::metrics::{
    MetricId, RECLAIM_COLD, RECLAIM_COST, RECLAIM_MISTAKES, RECLAIM_PAGES, RECLAIM_RECLAIMED,
};
use crate::tables::{TableId, tables};

tables! {
    steps = "steps", "step", compare(RECLAIMED, OUT_COLD) {
        STEP = "step", Text, "the number of the step, from 1";
        ASKED = "asked", Bytes, "bytes requested";
        RECLAIMED = "reclaimed", Bytes, "bytes reclaimed by the cgroup's count";
        OUT_COLD = "out.cold", Pages, "cold pages that were paged out";
        OUT_HOT = "out.hot", Pages, "hot pages that were paged out";
        FAULTS_HOT = "faults.hot", Count, "major faults on the hot part afterwards";
        TIME = "time", Nanoseconds, "CPU time of the request";
    }
    scheme = "scheme", "step, of reclaim by DAMON" {
        STEP = "step", Text, "the number of the step, from 1";
        TRIED = "tried", Bytes, "regions that the scheme tried";
        APPLIED = "applied", Bytes, "regions on which its action succeeded";
    }
}

/// By what memory is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum By {
    /// The file of the cgroup that is asked for so many bytes.
    #[serde(rename = "memory.reclaim")]
    #[value(name = "memory.reclaim")]
    MemoryReclaim,
    /// A scheme of the data access monitor.
    #[serde(rename = "damon")]
    Damon,
}
words!(By);

/// What DAMON's scheme does to regions that are old enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Pages them out.
    Pageout,
    /// Counts them.
    Stat,
}
words!(Action);

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Reclaim {
    /// The means of reclaim: writes to memory.reclaim, or a DAMON scheme
    #[arg(long, value_name = "WAY", default_value = "memory.reclaim")]
    pub by: By,
    /// Pages of the hot part, which is referenced between two steps
    #[arg(long, value_name = "PAGES", default_value = "2048", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub hot: u64,
    /// Pages of the cold part, which is not referenced until all steps are done
    #[arg(long, value_name = "PAGES", default_value = "6144", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub cold: u64,
    /// Pages to reclaim in all steps together
    #[arg(long, value_name = "PAGES", default_value = "4096", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub ask: u64,
    /// Steps in which it is asked for
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub steps: u32,
    /// Passes over the hot part before each step; with DAMON a minimum
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub turns: u32,
    /// By DAMON: seconds of a step
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = positive)]
    pub seconds: f64,
    /// DAMON: the scheme's action, page out or only count
    #[arg(long, value_name = "ACTION", default_value = "pageout")]
    pub action: Action,
    /// DAMON: the sampling interval in milliseconds (sample_us)
    #[arg(long, value_name = "MS", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sampling: u32,
    /// DAMON: the aggregation interval in milliseconds (aggr_us); the scheme acts once per interval
    #[arg(long, value_name = "MS", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub aggregation: u32,
    /// DAMON: aggregation intervals without a reference before the scheme acts on a region
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(3..=1_000_000))]
    pub age: u32,
}
declared!(Reclaim);

impl Reclaim {
    /// How often the scheme can act in all steps together.
    pub fn windows(&self) -> u64 {
        (f64::from(self.steps) * self.seconds * 1e3 / f64::from(self.aggregation)) as u64
    }

    /// Seconds for which DAMON watches before the first step: no region is old enough sooner.
    pub fn lead(&self) -> f64 {
        f64::from(self.age) * f64::from(self.aggregation) / 1e3
    }
}

/// The file that is changed for DAMON, and put back.
pub const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds";

impl Declaration for Reclaim {
    /// Both parts.
    fn footprint(&self, page_size: u64) -> Footprint {
        Footprint::pages(self.hot.saturating_add(self.cold), page_size)
    }

    fn primary(&self) -> Option<MetricId> {
        Some(RECLAIM_COLD)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[RECLAIM_RECLAIMED, RECLAIM_PAGES, RECLAIM_MISTAKES, RECLAIM_COST]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn profiles_kernel(&self) -> bool {
        true
    }

    /// By DAMON a thread references the hot part meanwhile.
    fn tasks(&self, _: u64) -> Tasks {
        Tasks::threads(u64::from(self.by == By::Damon))
    }

    /// What is DAMON's is asked of another way, or its intervals do not fit into each other and
    /// into a step.
    fn contradiction(&self) -> Option<Contradiction> {
        let usual = Self::default();
        if self.by != By::Damon {
            let asked = [
                ("seconds", self.seconds != usual.seconds),
                ("action", self.action != usual.action),
                ("sampling", self.sampling != usual.sampling),
                ("aggregation", self.aggregation != usual.aggregation),
                ("age", self.age != usual.age),
            ];
            let (name, _) = asked.into_iter().find(|(_, asked)| *asked)?;
            return Some((name, "is an option of DAMON", "give --by damon with it"));
        }
        if self.aggregation < self.sampling {
            return Some((
                "aggregation",
                "is shorter than one sampling interval",
                "give at least --sampling",
            ));
        }
        let window = f64::from(self.aggregation) / 1e3;
        (self.seconds < window).then_some((
            "seconds",
            "is shorter than one aggregation interval, in which the scheme acts once",
            "give longer steps",
        ))
    }

    /// DAMON pages out what it watches, whatever cgroup that is in.
    fn requires(&self) -> Vec<Feature> {
        vec![if self.by == By::Damon { Feature::Damon } else { Feature::CgroupTwo }]
    }

    fn needs_limit(&self) -> Option<&'static str> {
        Some("has no cgroup for the load without a memory limit")
    }

    fn kernel_settings(&self) -> &'static [&'static str] {
        if self.by == By::Damon { &[KDAMONDS] } else { &[] }
    }

    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        let touched = 2.0 * self.hot.saturating_add(self.cold) as f64 * TOUCH;
        (self.by == By::Damon).then(|| self.lead() + f64::from(self.steps) * self.seconds + touched)
    }
}
