//! The experiments, one file each. An experiment is its parameters; targets know how to perform it.

pub mod paging;
pub mod recording;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use paging::{Backing, Paging, Touch};
pub use recording::Recording;

/// An experiment with all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "experiment", rename_all = "kebab-case")]
pub enum Experiment {
    /// References to one anonymous mapping (VM Regress's test).
    Mapanon(Paging),
    /// References to one mapping of a file.
    Mapfile(Paging),
    /// The kernel's counters over time (`pagelab record`); no target performs it.
    Record(Recording),
}

/// One parameter of an experiment, for `pagelab experiments` and the manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The command line's name, without dashes.
    pub name: &'static str,
    /// The default as text.
    pub default: &'static str,
    /// One line.
    pub help: &'static str,
}

/// The most that an experiment holds at once, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Anonymous memory: without memory enough, this goes to swap.
    pub anonymous: u64,
    /// Files of its own.
    pub file: u64,
}

impl Footprint {
    /// Both together.
    pub fn total(self) -> u64 {
        self.anonymous.saturating_add(self.file)
    }
}

impl Experiment {
    /// What it holds at once where a page has `page_size` bytes.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        match self {
            Self::Mapanon(paging) => Footprint { anonymous: paging.pages.saturating_mul(page_size), file: 0 },
            Self::Mapfile(paging) => Footprint { anonymous: 0, file: paging.pages.saturating_mul(page_size) },
            Self::Record(_) => Footprint::default(),
        }
    }

    /// Name, one line, and parameters of every experiment.
    pub fn catalogue() -> &'static [(&'static str, &'static str, &'static [Parameter])] {
        &[
            ("mapanon", "references to one anonymous mapping (Gorman 2002)", paging::PARAMETERS),
            ("mapfile", "references to one mapping of a file", paging::PARAMETERS),
        ]
    }

    /// The experiment's name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mapanon(_) => "mapanon",
            Self::Mapfile(_) => "mapfile",
            Self::Record(_) => "record",
        }
    }
}

impl fmt::Display for Experiment {
    /// The command line that performs it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mapanon(paging) | Self::Mapfile(paging) => write!(f, "{} {paging}", self.name()),
            Self::Record(recording) => write!(f, "{} {recording}", self.name()),
        }
    }
}
