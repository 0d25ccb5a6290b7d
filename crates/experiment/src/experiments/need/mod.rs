//! What running tasks need (`pagelab need`): measured, with no load of its own.

pub mod metrics;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Footprint, Load};
use crate::metrics::{MetricId, NEED_GROWTH, NEED_LIMIT, NEED_MEMORY, NEED_STALL};
use crate::tables::{TableId, tables};

tables! {
    need = "need", "interval of a running cgroup, or age of a process's memory" {
        TIME = "time", Nanoseconds, "the end of the interval, or the age";
        MEMORY = "memory", Bytes, "charged to the cgroup at most, or private memory referenced within the age";
        RECLAIMED = "reclaimed", Bytes, "a cgroup: reclaimed at the beginning of the interval";
        RETURNED = "returned", Bytes, "a cgroup: fetched again in the interval";
        STALL = "stall", Share, "a cgroup: share of the interval in which some task stalled for memory";
        LOWER = "lower", Bytes, "a process: lower bound of the private memory";
        UPPER = "upper", Bytes, "a process: upper bound of the private memory";
    }
}

/// A running cgroup or process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Need {
    /// The cgroup's path, or the process's number.
    pub of: String,
    /// The time limit of the measurement, seconds.
    pub seconds: u32,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} --for {}", self.of, self.seconds)
    }
}

impl Declaration for Need {
    fn footprint(&self, _: u64) -> Footprint {
        Footprint::default()
    }

    fn primary(&self) -> Option<MetricId> {
        Some(NEED_MEMORY)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[NEED_LIMIT, NEED_GROWTH, NEED_STALL]
    }

    fn tables(&self) -> &'static [TableId] {
        &[tables::need::TABLE]
    }

    fn load(&self) -> Load<'_> {
        Load::None
    }
}
