//! `command`: everything that can be seen about one program of the user's.

pub mod metrics;

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use serde::{Deserialize, Serialize};

use super::declaration::{Contradiction, Declaration, Feature, Footprint, Load, Programs, Tasks};
use crate::declaration::{self, Refusal, displayed};
use crate::metrics::{MEMORY_PEAK, MetricId, TIME_CPU, TIME_ELAPSED};
use crate::size::Size;
use crate::sizes::{Sizes, SizesError};
use crate::tables::{TableId, tables};
use crate::words;

tables! {
    command = "command", "sample of the program" {
        TIME = "time", Nanoseconds, "time since the start";
        RESIDENT = "memory.resident", Bytes, "memory of its processes in RAM";
        SWAPPED = "memory.swapped", Bytes, "memory of its processes in swap";
        CHARGED = "memory.charged", Bytes, "charge of its cgroup";
        WORKING_SET = "memory.working-set", Bytes, "pages referenced since the previous sample";
        PROCESSES = "processes", Count, "its processes";
    }
}

/// The parameters.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Command {
    /// Milliseconds between two samples of the program's memory
    #[arg(long, value_name = "MS", default_value = "20", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub sample: u64,
    /// The maximum memory of the program, which sizes its swap [default: 256M]
    #[arg(long, value_name = "SIZE", alias = "most")]
    #[serde(alias = "most")]
    pub max_memory: Option<Size>,
    /// Count a repetition whose program ends with a status other than 0
    #[arg(long)]
    pub allow_failure: bool,
    /// Find the smallest memory limit at which the program runs at full speed
    #[arg(long, value_name = "LO..HI", value_parser = range, hide = true)]
    #[serde(skip)]
    pub sweep_memory: Option<(Size, Size)>,
    /// Sweep: stop the program after this multiple of its run time at full speed [default: 2]
    #[arg(long, value_name = "FACTOR", value_parser = factor, requires = "sweep_memory", hide = true)]
    #[serde(skip)]
    pub give_up: Option<f64>,
    /// Sweep: its time limit, in multiples of the program's own run time [default: 10]
    #[arg(long, value_name = "FACTOR", value_parser = factor, requires = "sweep_memory", hide = true)]
    #[serde(skip)]
    pub budget: Option<f64>,
    /// The recording that simulators replay: read if it exists, otherwise made [default:
    /// PROGRAM.trace]
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Stop the program after this many seconds; the repetition does not count
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_parser = word())]
    pub program: Vec<String>,
}
displayed!(Command);

impl PartialEq for Command {
    /// Whether they do the same. A time-out changes nothing of a repetition that counts, a sweep is
    /// many runs, and a recording is of the same program.
    fn eq(&self, other: &Self) -> bool {
        let of = |command: &Self| (command.sample, command.max_memory, command.allow_failure);
        of(self) == of(other) && self.program == other.program
    }
}

impl Default for Command {
    /// Without a program, which the command line cannot do without.
    fn default() -> Self {
        Self { program: Vec::new(), ..declaration::default(&["--", "program"]) }
    }
}

/// What a program is taken to use at most, where nothing is said.
const DEFAULT_MAX_MEMORY: Size = Size::Bytes(256 << 20);

/// Two sizes that are no sweep.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
enum RangeError {
    #[error(transparent)]
    Sizes(#[from] SizesError),
    #[error("write LO..HI, such as 32M..2G")]
    List,
}

fn range(text: &str) -> Result<(Size, Size), RangeError> {
    match text.parse::<Sizes>()? {
        Sizes::Range { from, to, .. } => Ok((from, to)),
        Sizes::List(_) => Err(RangeError::List),
    }
}

/// A word of any bytes, escaped.
fn word() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|word| words::escaped(&word))
}

fn factor(text: &str) -> Result<f64, Refusal> {
    let factor = text.parse().ok().filter(|&factor: &f64| factor.is_finite() && factor > 1.0);
    factor.ok_or_else(|| Refusal::new("write a number above 1, such as 2"))
}

fn seconds(text: &str) -> Result<f64, Refusal> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.001..=1e7).contains(seconds));
    seconds.ok_or_else(|| Refusal::new("write seconds, from 0.001"))
}

impl Command {
    /// How much longer than at full speed a program may run under a limit of a sweep before it is stopped.
    pub const GIVE_UP: f64 = 2.0;
    /// How long a sweep may take, in times that the program takes by itself.
    pub const BUDGET: f64 = 10.0;

    /// `program` with the defaults.
    pub fn new(program: Vec<String>) -> Self {
        Self { program, ..Self::default() }
    }
}

impl Declaration for Command {
    /// What it is expected to hold.
    fn footprint(&self, page_size: u64) -> Footprint {
        let most = self.max_memory.or(self.sweep_memory.map(|(_, most)| most)).unwrap_or(DEFAULT_MAX_MEMORY);
        Footprint::anonymous(most.bytes(page_size))
    }

    fn primary(&self) -> Option<MetricId> {
        Some(TIME_ELAPSED)
    }

    /// Elapsed time has waiting, CPU time shows changes that other load hides in elapsed time.
    fn also_decide(&self) -> &'static [MetricId] {
        &[TIME_CPU]
    }

    fn headline(&self) -> &'static [MetricId] {
        &[TIME_CPU, MEMORY_PEAK]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn load(&self) -> Load<'_> {
        Load::Program(self)
    }

    /// The program; how many it starts is not known.
    fn tasks(&self, _: u64) -> Tasks {
        Tasks::processes(1)
    }

    fn contradiction(&self) -> Option<Contradiction> {
        self.program.is_empty().then_some((
            "program",
            "has no program to run",
            "write it after --: pagelab run command -- sort big.txt",
        ))
    }

    fn requires(&self) -> Vec<Feature> {
        vec![Feature::Programs(Programs {
            parameter: "program",
            words: self.program.clone(),
            script: None,
            many: false,
        })]
    }
}
