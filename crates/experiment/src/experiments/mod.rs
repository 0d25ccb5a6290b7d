//! The experiments, one file each. An experiment is its parameters; targets know how to perform it.

pub mod clock;
pub mod command;
pub mod faultscale;
pub mod fileread;
pub mod forkstorm;
pub mod paging;
pub mod recording;
pub mod vmtest;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use clock::{Clock, Suspicion};
pub use command::Command;
pub use faultscale::{Faultscale, Work, Workers};
pub use fileread::{Access, Fileread, Seqread};
pub use forkstorm::{Child, Forkstorm};
pub use paging::{Backing, Paging, Touch};
pub use recording::Recording;
pub use vmtest::{Mapping, PagesOf, Vmtest};

/// An experiment with all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "experiment", rename_all = "kebab-case")]
pub enum Experiment {
    /// References to one anonymous mapping (VM Regress's test).
    Mapanon(Paging),
    /// References to one mapping of a file.
    Mapfile(Paging),
    /// Throughput against active virtual memory (Irlam).
    Vmtest(Vmtest),
    /// Fork, exec and exit (Morton).
    Forkstorm(Forkstorm),
    /// Memory management against the number of workers (Dillon).
    Faultscale(Faultscale),
    /// Random reads of files (McDougall).
    Fileread(Fileread),
    /// Sequential reads against the transfer size (McDougall).
    Seqread(Seqread),
    /// Whether time is true (McDougall).
    Clock(Clock),
    /// A program of the user's.
    Command(Command),
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
            Self::Vmtest(vmtest) => vmtest.footprint(page_size),
            Self::Forkstorm(forkstorm) => forkstorm.footprint(page_size),
            Self::Faultscale(faultscale) => faultscale.footprint(page_size),
            Self::Fileread(fileread) => fileread.footprint(page_size),
            Self::Seqread(seqread) => seqread.footprint(page_size),
            Self::Clock(_) => Footprint::default(),
            Self::Command(command) => command.footprint(page_size),
            Self::Record(_) => Footprint::default(),
        }
    }

    /// Name, one line, and parameters of every experiment.
    pub fn catalogue() -> &'static [(&'static str, &'static str, &'static [Parameter])] {
        &[
            ("mapanon", "references to one anonymous mapping (Gorman 2002)", paging::PARAMETERS),
            ("mapfile", "references to one mapping of a file", paging::PARAMETERS),
            ("vmtest", "throughput against active virtual memory (Irlam 1990)", vmtest::PARAMETERS),
            ("forkstorm", "fork, exec and exit as fast as they go (Morton 2002)", forkstorm::PARAMETERS),
            ("faultscale", "memory management against workers (Dillon 2011)", faultscale::PARAMETERS),
            ("fileread", "random reads of files (McDougall 2005)", fileread::PARAMETERS),
            ("seqread", "sequential reads against the transfer size (McDougall 2005)", fileread::SEQUENTIAL),
            ("clock", "whether time is true on this machine (McDougall 2007)", clock::PARAMETERS),
            ("command", "any program of yours: command -- PROGRAM ARGUMENTS", command::PARAMETERS),
        ]
    }

    /// The experiment's name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mapanon(_) => "mapanon",
            Self::Mapfile(_) => "mapfile",
            Self::Vmtest(_) => "vmtest",
            Self::Forkstorm(_) => "forkstorm",
            Self::Faultscale(_) => "faultscale",
            Self::Fileread(_) => "fileread",
            Self::Seqread(_) => "seqread",
            Self::Clock(_) => "clock",
            Self::Command(_) => "command",
            Self::Record(_) => "record",
        }
    }
}

impl fmt::Display for Experiment {
    /// The command line that performs it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mapanon(paging) | Self::Mapfile(paging) => write!(f, "{} {paging}", self.name()),
            Self::Vmtest(vmtest) => write!(f, "vmtest {vmtest}"),
            Self::Forkstorm(forkstorm) => write!(f, "forkstorm {forkstorm}"),
            Self::Faultscale(faultscale) => write!(f, "faultscale {faultscale}"),
            Self::Fileread(fileread) => write!(f, "fileread {fileread}"),
            Self::Seqread(seqread) => write!(f, "seqread {seqread}"),
            Self::Clock(clock) => write!(f, "clock {clock}"),
            Self::Command(command) => write!(f, "command {command}"),
            Self::Record(recording) => write!(f, "{} {recording}", self.name()),
        }
    }
}
