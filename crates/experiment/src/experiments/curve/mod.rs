//! What is computed of a reference stream alone: misses against memory (`replay`, `mrc`), the
//! working set over time (`wss`). Its results are runs like any other; no target performs it.

pub mod metrics;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Footprint, Load};
use crate::catalogue::name;
use crate::metrics::MetricId;

/// Misses of one policy or system on a stream, at several memory sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Curve {
    /// The stream: a pattern, or a trace's file.
    pub stream: String,
    /// Bytes of a page.
    pub page_size: u64,
    /// References in the stream.
    pub references: u64,
    /// Pages that it references.
    pub pages: u64,
    /// The share of the pages that was sampled; none: all.
    pub sample: Option<f64>,
}

/// The working set of a stream or of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkingSet {
    /// The stream (a pattern, or a trace's file), or the number of the process.
    pub of: String,
    /// The window: references of a stream, nanoseconds of a process.
    pub window: u64,
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stream)?;
        self.sample.iter().try_for_each(|share| write!(f, " --sample {share}"))
    }
}

impl fmt::Display for WorkingSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (window {})", self.of, self.window)
    }
}

impl Declaration for Curve {
    fn footprint(&self, _: u64) -> Footprint {
        Footprint::default()
    }

    fn primary(&self) -> Option<MetricId> {
        Some(name::MISS_RATIO_MEAN)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[]
    }

    fn load(&self) -> Load<'_> {
        Load::None
    }
}

impl Declaration for WorkingSet {
    fn footprint(&self, _: u64) -> Footprint {
        Footprint::default()
    }

    fn primary(&self) -> Option<MetricId> {
        Some(name::WORKING_SET_MEAN)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[]
    }

    fn load(&self) -> Load<'_> {
        Load::None
    }
}
