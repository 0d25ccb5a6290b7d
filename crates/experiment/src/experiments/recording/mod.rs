//! A recording of the kernel's counters over time: no load of its own, only what was seen.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What was recorded, and how often.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// Selectors of counters, `module:instance:name:statistic`.
    pub selectors: Vec<String>,
    /// Nanoseconds between two looks.
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
