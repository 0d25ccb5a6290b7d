//! Runs in the formats that other tools read: dashboards of benchmarks, benchstat, KernelCI, flame
//! graphs, Perfetto.
//!
//! Each says less than a run holds; the forms without a loss are the notebook's own (JSON, CSV,
//! Parquet).

mod benchfmt;
mod benchmarks;
mod evictions;
mod folded;
mod junit;
mod kcidb;
mod perfetto;

use std::io::{self, Write};

use pagelab_experiment::observation::{Better, Unit};
use pagelab_experiment::{Outcome, Run};

pub use self::junit::{Gate, Outcome as Judged, Suite, document as junit_document, junit};
use crate::runs::{Measure, measures};

/// A format of another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Bencher Metric Format (<https://bencher.dev/docs/reference/bencher-metric-format>).
    Bencher,
    /// The input of github-action-benchmark's `customSmallerIsBetter`
    /// (<https://github.com/benchmark-action/github-action-benchmark>).
    SmallerIsBetter,
    /// That of its `customBiggerIsBetter`.
    BiggerIsBetter,
    /// Go's benchmark format with unit lines (<https://go.dev/design/14313-benchmark-format>),
    /// which benchstat reads.
    Benchfmt,
    /// KCIDB's report, version 5.3 (<https://github.com/kernelci/kcidb-io>): tests of this build.
    Kcidb(Build),
    /// Stacks and their weights, as flame graphs take them.
    Folded,
    /// A Perfetto trace (<https://perfetto.dev>): counters over time.
    Perfetto,
    /// The judged evictions of runs with a log of them, as CSV.
    Evictions,
}

/// A build that KCIDB knows: `ORIGIN:ID`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    origin: String,
    id: String,
}

/// Why runs were not written.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The output could not be written.
    #[error("the export could not be written: {0}")]
    Io(#[from] io::Error),
    /// No run holds what the format is for.
    #[error("{what} in {runs}\nhint: {remedy}")]
    Nothing {
        /// What there is none of.
        what: &'static str,
        /// The runs' names.
        runs: String,
        /// What to do.
        remedy: &'static str,
    },
}

impl Format {
    /// Whether it is not for a terminal.
    pub fn is_binary(&self) -> bool {
        *self == Self::Perfetto
    }

    /// Whether it holds metrics, so that some of them may be chosen.
    pub fn has_metrics(&self) -> bool {
        !matches!(self, Self::Folded | Self::Perfetto | Self::Evictions)
    }
}

impl std::str::FromStr for Build {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        match text.split_once(':') {
            Some((origin, id)) if !origin.is_empty() && !id.is_empty() && origin.chars().all(plain) => {
                Ok(Self { origin: origin.to_owned(), id: text.replace('\0', "") })
            }
            _ => Err(
                "write ORIGIN:ID, the origin in lower-case letters, digits and _, such as maestro:6650a1b2",
            ),
        }
    }
}

/// Writes `runs`, of their metrics those named in `only`, all where none is named.
///
/// # Errors
/// When `to` cannot be written or no run holds what the format is for.
pub fn write(
    runs: &[Run],
    format: &Format,
    only: &[String],
    mut to: impl Write,
) -> Result<(), ExchangeError> {
    let held = |measure: &Measure| match format {
        Format::SmallerIsBetter => measure.better == Better::Lower,
        Format::BiggerIsBetter => measure.better == Better::Higher,
        _ => true,
    };
    let mut chosen: Vec<(&Run, Vec<Measure>)> = runs.iter().map(|run| (run, chosen(run, only))).collect();
    let is_empty = |chosen: &[(_, Vec<Measure>)]| chosen.iter().all(|(_, measures)| measures.is_empty());
    if format.has_metrics() && is_empty(&chosen) {
        return Err(nothing(runs, "no metric was measured", "see: pagelab show RUN"));
    }
    chosen.iter_mut().for_each(|(_, measures)| measures.retain(held));
    if format.has_metrics() && is_empty(&chosen) {
        // The action refuses an empty list.
        let (what, remedy) = if *format == Format::BiggerIsBetter {
            ("no metric is better when bigger", "use --format smaller-is-better")
        } else {
            ("no metric is better when smaller", "use --format bigger-is-better")
        };
        return Err(nothing(runs, what, remedy));
    }
    match format {
        Format::Bencher => benchmarks::bencher(&chosen, &mut to)?,
        Format::SmallerIsBetter | Format::BiggerIsBetter => benchmarks::action(&chosen, &mut to)?,
        Format::Benchfmt => benchfmt::write(&chosen, &mut to)?,
        Format::Kcidb(build) => kcidb::write(&chosen, build, &mut to)?,
        Format::Folded => folded::write(runs, &mut to)?,
        Format::Perfetto => perfetto::write(runs, &mut to)?,
        Format::Evictions => evictions::write(runs, &mut to)?,
    }
    Ok(to.flush()?)
}

fn nothing(runs: &[Run], what: &'static str, remedy: &'static str) -> ExchangeError {
    let names: Vec<&str> = runs.iter().map(|run| run.header.name.as_str()).collect();
    ExchangeError::Nothing { what, runs: names.join(", "), remedy }
}

/// What a run measured of `only`; what was not measured is left out.
fn chosen<'a>(run: &'a Run, only: &[String]) -> Vec<Measure<'a>> {
    let wanted = |m: &Measure| !m.values.is_empty() && (only.is_empty() || only.iter().any(|o| o == m.name));
    measures(run).into_iter().filter(wanted).collect()
}

/// A unit's symbol; empty of plain numbers.
fn symbol(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "B",
        Unit::Pages => "pages",
        Unit::PerSecond => "1/s",
        Unit::BytesPerSecond => "B/s",
        Unit::Instructions => "instructions",
        Unit::PerMillionInstructions => "1/Minstr",
        Unit::BytesPerMillionInstructions => "B/Minstr",
        Unit::Count | Unit::Share | Unit::Ratio => "",
    }
}

/// What a figure of a run is, in words.
fn repetitions(run: &Run) -> String {
    let (done, all) = (run.done().count(), run.repetitions.len());
    match (run.header.deterministic, done == all) {
        (true, _) => "deterministic".to_owned(),
        (_, true) if all == 1 => "1 repetition".to_owned(),
        (_, true) => format!("median of {all} repetitions"),
        _ => format!("median of {done} of {all} repetitions"),
    }
}

/// Why the first repetition that was not wholly performed was not.
fn failure(run: &Run) -> Option<String> {
    run.repetitions.iter().find_map(|repetition| match &repetition.outcome {
        Outcome::Done => None,
        Outcome::Interrupted => Some("interrupted".to_owned()),
        Outcome::Failed(failure) => Some(failure.to_string()),
        Outcome::Torn => Some("never reported an end".to_owned()),
    })
}
