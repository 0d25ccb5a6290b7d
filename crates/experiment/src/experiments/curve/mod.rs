//! What is computed of a reference stream alone: misses against memory (`replay`, `mrc`), the working set over
//! time (`wss`). Its results are runs like any other; no target performs it.

use std::fmt;

use serde::{Deserialize, Serialize};

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
