//! `neighbour`: what a load pays for another one beside it under the same memory limit, and what
//! protecting it gives back.
//!
//! Two cgroups of version 2 share a limit. The victim makes references to its mapping; the
//! neighbour writes its own, or reads a file, page after page, again and again. The victim's
//! references are made alone, beside the neighbour, and beside it with its charge alone, and 64
//! pages per CPU, as its `memory.low` and as its `memory.min`
//! (Documentation/admin-guide/cgroup-v2.rst).

pub mod metrics;

use pagelab_reference::Pattern;
use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, FAULT, Feature, Footprint, HIT, TOUCH, Tasks};
use super::paging::text;
use crate::declaration::{declared, words};
use crate::metrics::{
    MetricId, VICTIM_COST_ALONE, VICTIM_COST_LOW, VICTIM_COST_MIN, VICTIM_COST_NEIGHBOUR,
    VICTIM_FAULTS_ALONE, VICTIM_FAULTS_LOW, VICTIM_FAULTS_MIN, VICTIM_FAULTS_NEIGHBOUR,
    VICTIM_REFAULTS_ALONE, VICTIM_REFAULTS_LOW, VICTIM_REFAULTS_MIN, VICTIM_REFAULTS_NEIGHBOUR,
};
use crate::tables::{TableId, tables};

/// The situations in which the victim's references are made, in their order.
pub const SITUATIONS: [&str; 4] = ["alone", "beside", "low", "min"];

/// Of each situation the victim's metrics: cost, major faults, refaults.
pub const METRICS: [[MetricId; 3]; 4] = [
    [VICTIM_COST_ALONE, VICTIM_FAULTS_ALONE, VICTIM_REFAULTS_ALONE],
    [VICTIM_COST_NEIGHBOUR, VICTIM_FAULTS_NEIGHBOUR, VICTIM_REFAULTS_NEIGHBOUR],
    [VICTIM_COST_LOW, VICTIM_FAULTS_LOW, VICTIM_REFAULTS_LOW],
    [VICTIM_COST_MIN, VICTIM_FAULTS_MIN, VICTIM_REFAULTS_MIN],
];

tables! {
    situations = "situations", "situation", compare(MAJOR) {
        SITUATION = "situation", Text, "alone, beside, low or min";
        MAJOR = "major", Count, "major faults of the victim's thread";
        PGMAJFAULT = "pgmajfault", Count, "major faults by the count of its cgroup";
        MINOR = "minor", Count, "minor faults of the victim's thread";
        REFAULTS = "refaults", Pages, "its refaults";
        VICTIM = "victim", Bytes, "the victim's charge at the end";
        OTHER = "other", Bytes, "the neighbour's charge at the end";
        WRITTEN = "written", Count, "pages written or read by the neighbour";
        LOW = "low", Count, "reclaims of the victim below its memory.low";
    }
}

/// What the neighbour does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Writes anonymous memory.
    Write,
    /// Reads a file with pread(2).
    ReadFile,
}
words!(Task);

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Neighbour {
    /// Pages of the victim's mapping, anonymous memory
    #[arg(long, value_name = "PAGES", default_value = "8192", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub pages: u64,
    /// The victim's references in each situation; each writes a word
    #[arg(long, value_name = "N", default_value = "50000", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub references: u64,
    /// The order of the victim's references (see: pagelab patterns)
    #[arg(long, value_name = "PATTERN", default_value = "zipf:0.9")]
    #[serde(with = "text")]
    pub pattern: Pattern,
    /// Pages of the neighbour's mapping or file, which it writes or reads in order, again and again
    #[arg(long, value_name = "PAGES", default_value = "16384", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub neighbour: u64,
    /// The neighbour's task: write anonymous memory, or read a file through the page cache
    #[arg(long, value_enum, default_value = "write")]
    pub task: Task,
    /// The seed of the pattern
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}
declared!(Neighbour);

impl Declaration for Neighbour {
    /// Both mappings, or the victim's and the neighbour's file.
    fn footprint(&self, page_size: u64) -> Footprint {
        match self.task {
            Task::Write => Footprint::pages(self.pages.saturating_add(self.neighbour), page_size),
            Task::ReadFile => Footprint {
                file: self.neighbour.saturating_mul(page_size),
                ..Footprint::pages(self.pages, page_size)
            },
        }
    }

    fn primary(&self) -> Option<MetricId> {
        Some(VICTIM_FAULTS_NEIGHBOUR)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[VICTIM_COST_NEIGHBOUR, VICTIM_FAULTS_LOW, VICTIM_FAULTS_MIN]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn profiles_kernel(&self) -> bool {
        true
    }

    fn tasks(&self, _: u64) -> Tasks {
        Tasks::processes(1)
    }

    fn requires(&self) -> Vec<Feature> {
        let trace = match &self.pattern {
            Pattern::Trace(file) => Some(Feature::File("pattern", file.clone())),
            _ => None,
        };
        [Feature::CgroupTwo].into_iter().chain(trace).collect()
    }

    fn needs_limit(&self) -> Option<&'static str> {
        Some("has nothing for two to share without a memory limit")
    }

    /// In four situations, of which three have somebody beside.
    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        let written = 4.0 * self.neighbour as f64 * TOUCH;
        Some(self.references as f64 * (4.0 * HIT + 3.0 * FAULT) + written)
    }
}
