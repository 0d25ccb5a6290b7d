//! The experiments, one file each. An experiment is its parameters; targets know how to perform it.

pub mod paging;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use paging::{Backing, Paging, Touch};

/// An experiment with all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "experiment", rename_all = "kebab-case")]
pub enum Experiment {
    /// References to one anonymous mapping (VM Regress's test).
    Mapanon(Paging),
    /// References to one mapping of a file.
    Mapfile(Paging),
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

impl Experiment {
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
        }
    }
}

impl fmt::Display for Experiment {
    /// The command line that performs it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mapanon(paging) | Self::Mapfile(paging) => write!(f, "{} {paging}", self.name()),
        }
    }
}
