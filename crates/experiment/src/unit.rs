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
    /// Things per million instructions.
    PerMillionInstructions,
    /// Bytes per million instructions.
    BytesPerMillionInstructions,
    /// A plain ratio.
    Ratio,
}

impl Unit {
    /// The unit that replaces this one where a clock counts each instruction as one nanosecond, and the factor by
    /// which to multiply its figures.
    pub fn counted(self) -> (Self, f64) {
        match self {
            Self::Nanoseconds => (Self::Instructions, 1.0),
            Self::PerSecond => (Self::PerMillionInstructions, 1e-3),
            Self::BytesPerSecond => (Self::BytesPerMillionInstructions, 1e-3),
            other => (other, 1.0),
        }
    }
}
