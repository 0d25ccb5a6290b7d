//! What is computed of a reference stream alone: misses against memory (`replay`, `mrc`), the
//! working set over time (`wss`). Its results are runs like any other; no target performs it.

pub mod metrics;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Footprint, Load};
use crate::metrics::{MISS_RATIO_MEAN, MetricId, WORKING_SET_MEAN};
use crate::tables::{TableId, tables};

tables! {
    curve = "curve", "memory size" {
        SIZE = "size", Bytes, "the memory";
        FRAMES = "frames", Pages, "the memory";
        MISSES = "misses", Count, "the misses";
        RATIO = "miss.ratio", Share, "misses divided by references";
        RATIO_ERROR = "miss.ratio.error", Share, "the standard error of a sampled ratio";
        FRAMES_MEAN = "frames.mean", Pages, "mean resident pages of a policy without a fixed number of frames";
        BYTE_RATIO = "byte.miss.ratio", Share, "bytes missed divided by bytes requested";
        WRITE_BACKS = "write-backs", Count, "dirty pages written";
        READ_AHEAD_WAITS = "read-ahead.waits", Count, "with read-ahead: references that waited for a read";
        READ_AHEAD_PAGES = "read-ahead.pages", Pages, "with read-ahead: pages read";
    }
    working_set = "working-set", "window of the stream or of the process" {
        REFERENCE = "reference", Count, "the last reference of the window, of a stream";
        TIME = "time", Nanoseconds, "the end of the window, of a process";
        PAGES = "pages", Pages, "the working set";
    }
}

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
    /// What a miss costs, ns, where that was measured.
    pub miss_cost: Option<f64>,
    /// How long the program runs without misses, ns, where that was measured.
    pub program_time: Option<f64>,
    /// Whether the stream was recorded through a window. It then lacks the references within the
    /// window.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub through_window: bool,
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
        Some(MISS_RATIO_MEAN)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[]
    }

    fn tables(&self) -> &'static [TableId] {
        &[tables::curve::TABLE]
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
        Some(WORKING_SET_MEAN)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[]
    }

    fn tables(&self) -> &'static [TableId] {
        &[tables::working_set::TABLE]
    }

    fn load(&self) -> Load<'_> {
        Load::None
    }
}
