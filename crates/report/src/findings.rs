//! Findings as sentences: the main figure first, with its unit, statistic and spread, then what explains
//! it.

mod clock;
mod evictions;
mod mapping;
mod memory;
mod on_models;
mod processes;
mod programs;
mod reads;
mod shortage;
mod streams;

use pagelab_analysis::finding::{Figure, Finding, Interval, IntervalKind, What};
use pagelab_experiment::Outcome;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Unit;
pub use programs::limits;
pub(crate) use reads::cause;

use crate::table::TextTable;
use crate::text::value;

/// The finding as one sentence, without its run's name and a full stop.
pub fn text(finding: &Finding) -> String {
    match &finding.what {
        What::AccessTime { pattern } => mapping::access_time(finding, pattern),
        What::PastLimit { limit, within } => mapping::past_limit(finding, *limit, within),
        What::HugePages => mapping::huge_pages(finding),
        What::Writeback => mapping::writeback(finding),
        What::Zswap => mapping::zswap(finding),
        What::Evictions { judgement } => evictions::sentence(finding, judgement),
        What::Regret => mapping::regret(finding),
        What::ReadTime { knees } => reads::read_time(finding, knees.as_deref()),
        What::ForkRate { copies, exec, top_function } => {
            processes::fork_rate(finding, *copies, *exec, top_function.as_deref())
        }
        What::Scaling { work, workers, lock } => processes::scaling(finding, work, workers, lock.as_deref()),
        What::FileReads => reads::file_reads(finding),
        What::SequentialReads => reads::sequential_reads(finding),
        What::FirstAnswer => reads::first_answer(finding),
        What::Latencies => reads::latencies(finding),
        What::Declared => {
            let list = finding.figures.iter();
            list.map(|figure| format!("{} {}", figure.name, with_spread(finding, &figure.name)))
                .collect::<Vec<_>>()
                .join("; ")
        }
        What::Operations => mapping::operations(finding),
        What::Neighbour => memory::neighbour(finding),
        What::Bandwidth => memory::bandwidth(finding),
        What::Merging => memory::merging(finding),
        What::Tiers => memory::tiers(finding),
        What::Kills { equal, adjusted } => shortage::kills(finding, equal.as_deref(), adjusted.as_deref()),
        What::Reclaimed => shortage::reclaimed(finding),
        What::PagedOut => shortage::paged_out(finding),
        What::HugePagesHad => shortage::huge_pages_had(finding),
        What::ClockAgreement { trusted } => clock::clock_agreement(finding, *trusted),
        What::Program { program, limit } => programs::program_time(finding, program, *limit),
        What::ProgramOnModels { program, limit, sides } => {
            on_models::sentence(finding, program, *limit, sides)
        }
        What::LeastMemory { program, limits, inconclusive, early, stall } => {
            programs::least_memory(finding, program, limits, [*inconclusive, *early], *stall)
        }
        What::Recording => streams::recording(finding),
        What::Traced { program, unit } => format!(
            "{program}: {} references to {} {} recorded in {} ({} loads, {} stores, {} fetches), {} of trace",
            shown(finding, "references"),
            shown(finding, "units"),
            if *unit == 4096 { "pages" } else { "lines of 64 bytes" },
            shown(finding, metrics::TIME_ELAPSED),
            shown(finding, "loads"),
            shown(finding, "stores"),
            shown(finding, "fetches"),
            shown(finding, "size"),
        ),
        What::Curve { stream } => streams::curve(finding, stream),
        What::WorkingSet { of } => streams::working_set(finding, of),
        What::Warning { text, .. } => text.clone(),
        What::NotPerformed { repetition, outcome } => not_performed(*repetition, outcome),
    }
}

/// The finding as a line: the run's name and the sentence.
pub fn line(finding: &Finding) -> String {
    match &finding.what {
        What::Warning { text, runs } => match runs.as_slice() {
            [one] => format!("Warning: {one}: {text}"),
            _ => format!("Warning: {text}"),
        },
        _ => format!("{}: {}.", finding.run, text(finding)),
    }
}

/// A finding's main figure.
pub(crate) struct Main {
    /// What it is, with its statistic.
    pub what: &'static str,
    /// The figure with its unit.
    pub value: String,
    /// The range of its repetitions, or empty.
    pub spread: String,
}

/// The main figure of a finding; `None` of those without figures.
pub(crate) fn main(finding: &Finding) -> Option<Main> {
    let what = match &finding.what {
        What::AccessTime { .. } => "mean access time",
        What::ReadTime { .. } => "mean read time at the smallest size",
        What::ForkRate { .. } => "fork rate",
        What::Scaling { .. } => "best median throughput",
        What::FileReads => "mean CPU time of a cached read",
        What::SequentialReads => "best sequential bandwidth",
        What::FirstAnswer => "time to the first answer",
        What::Latencies => "mean load from DRAM",
        What::Operations => "median CPU time per page",
        What::Neighbour => "major faults with a neighbour",
        What::Bandwidth => "median bandwidth of copy",
        What::Merging => "frames saved by merging",
        What::Tiers => "CPU time per hot reference",
        What::Kills { .. } => "from the limit to the first kill",
        What::Reclaimed => "reclaimed as the cgroup counts it",
        What::PagedOut => "pages that DAMON's scheme paged out",
        What::HugePagesHad => "huge pages allocated in fragmented memory",
        What::ClockAgreement { .. } => "max difference of two clocks",
        What::Program { .. } => "elapsed time",
        What::LeastMemory { .. } => "memory needed",
        What::Recording => "counters recorded",
        _ => return None,
    };
    let figure = finding.figures.first()?;
    let interval = figure.interval.filter(|interval| interval.kind == IntervalKind::Range);
    let spread = interval.and_then(|Interval { low, high, .. }| {
        let high = high?;
        (low < high)
            .then(|| format!("{} … {}", value(Some(low), figure.unit), value(Some(high), figure.unit)))
    });
    Some(Main { what, value: value(Some(figure.value), figure.unit), spread: spread.unwrap_or_default() })
}

/// A figure in its unit; a dash where there is none.
fn shown(finding: &Finding, name: impl AsRef<str>) -> String {
    let figure = finding.figure(name);
    value(figure.map(|f| f.value), figure.map_or(Unit::Count, |f| f.unit))
}

/// The same with the spread of its repetitions.
fn with_spread(finding: &Finding, name: impl AsRef<str>) -> String {
    let name = name.as_ref();
    let spread = finding.figure(name).and_then(spread);
    shown(finding, name) + &spread.map_or_else(String::new, |spread| format!(" ({spread})"))
}

/// The ends of a figure's interval, where they differ.
pub(crate) fn spread(figure: &Figure) -> Option<String> {
    let Interval { low, high, kind } = figure.interval?;
    let (low, high) = (value(Some(low), figure.unit), high.map(|high| value(Some(high), figure.unit)));
    let high = high.unwrap_or_else(|| "unbounded".to_owned());
    match kind {
        IntervalKind::Range if low == high => None,
        IntervalKind::Range => Some(format!("{low} … {high}, n = {}", figure.n)),
        IntervalKind::Confidence95 => Some(format!("95% interval {low} … {high}")),
    }
}

/// The tables of a finding; empty if it has none.
pub fn tables(finding: &Finding) -> Vec<TextTable> {
    let one = limits(finding).or_else(|| on_models::table(finding));
    one.into_iter().chain(evictions::tables(finding)).collect()
}

/// What became of a repetition that does not count.
pub(crate) fn not_performed(repetition: u32, outcome: &Outcome) -> String {
    let what = match outcome {
        Outcome::Done => "is done".to_owned(),
        Outcome::Interrupted => "was interrupted and does not count".to_owned(),
        Outcome::Torn => "is torn (pagelab or the machine was killed) and does not count".to_owned(),
        Outcome::Failed(failure) => format!("failed and does not count: {}", failure.full()),
    };
    format!("repetition {repetition} {what}")
}
