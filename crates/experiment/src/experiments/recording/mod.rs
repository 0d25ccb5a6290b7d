//! A recording of the kernel's counters over time: no load of its own, only what was seen.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Footprint, Load};
use crate::metrics::MetricId;

/// What was recorded, and how often.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// Selectors of counters, `module:instance:name:statistic`.
    pub selectors: Vec<String>,
    /// Nanoseconds between two samples.
    pub interval: u64,
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for selector in &self.selectors {
            write!(f, "{selector} ")?;
        }
        write!(f, "--interval {}", self.interval as f64 / 1e9)
    }
}

impl Declaration for Recording {
    fn footprint(&self, _: u64) -> Footprint {
        Footprint::default()
    }

    fn primary(&self) -> Option<MetricId> {
        None
    }

    fn headline(&self) -> &'static [MetricId] {
        &[]
    }

    fn load(&self) -> Load<'_> {
        Load::None
    }
}
