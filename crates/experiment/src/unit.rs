//! Units, and which direction of a figure is an improvement.

use serde::{Deserialize, Serialize};

/// Which direction of a metric is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less is better (times, faults).
    Lower,
    /// More is better (throughput).
    Higher,
    /// It only describes.
    Neither,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// A number of things.
    Count,
    /// Pages of the target's base size.
    Pages,
    /// Bytes.
    Bytes,
    /// A share from 0 to 1.
    Share,
    /// Things a second.
    PerSecond,
    /// Bytes a second.
    BytesPerSecond,
    /// Instructions executed.
    Instructions,
    /// A plain ratio.
    Ratio,
}
