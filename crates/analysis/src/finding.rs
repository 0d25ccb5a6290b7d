//! Findings: what runs say, as data. A finding names what it is about, the run, its figures (each with
//! unit, statistic and interval), what it rests on, and how much it matters. `report` puts it into words.

pub use pagelab_experiment::metrics::Statistic;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{MetricId, Outcome, Run, Size, TableId};
use serde::Serialize;

use crate::evictions::Judgement;
use crate::stats::median;
use crate::vmtest::Knee;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A result.
    Info,
    /// It spoils a result or a comparison.
    Warning,
    /// Something was not performed.
    Failure,
}

/// What the ends of an interval are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalKind {
    /// The smallest and the greatest of the repetitions.
    Range,
    /// A 95% confidence interval.
    Confidence95,
}

/// An interval around a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end; `None`: there is no upper bound.
    pub high: Option<f64>,
    /// What they are.
    pub kind: IntervalKind,
}

/// A figure of a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// A metric's name, or the finding's own.
    pub name: String,
    /// The unit.
    pub unit: Unit,
    /// Which statistic it is.
    pub statistic: Statistic,
    /// The figure: the median over the repetitions that count.
    pub value: f64,
    /// How sure or how wide it is.
    pub interval: Option<Interval>,
    /// The number of repetitions behind it.
    pub n: usize,
}

impl Figure {
    /// A metric of a run: the median and the range over the repetitions that count; `None` where it was not
    /// measured.
    pub fn of(run: &Run, metric: MetricId) -> Option<Self> {
        let values = run.values(metric);
        let unit = run.done().flat_map(|r| &r.observations.metrics).find(|m| metric == *m.name)?.unit;
        Self::over(metric, unit, metric.statistic, &values)
    }

    /// The median and the range of `values`, one for each repetition.
    pub fn over(name: impl AsRef<str>, unit: Unit, statistic: Statistic, values: &[f64]) -> Option<Self> {
        let value = median(values)?;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let interval =
            (values.len() > 1).then_some(Interval { low, high: Some(high), kind: IntervalKind::Range });
        let name = name.as_ref().to_owned();
        Some(Self { name, unit, statistic, value, interval, n: values.len() })
    }

    /// A figure that follows from others.
    pub fn derived(name: impl AsRef<str>, unit: Unit, statistic: Statistic, value: f64, n: usize) -> Self {
        Self { name: name.as_ref().to_owned(), unit, statistic, value, interval: None, n }
    }

    /// The same with a 95% confidence interval.
    pub fn within(self, low: f64, high: Option<f64>) -> Self {
        Self { interval: Some(Interval { low, high, kind: IntervalKind::Confidence95 }), ..self }
    }
}

/// What a finding rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The metrics of the run that the figures are named after.
    Metrics,
    /// A table of the run's observations.
    Table(TableId),
    /// Another run.
    Run(String),
    /// A model that had the same stream and the same frames.
    Model(String),
    /// A note of the run.
    Note,
    /// How the repetition ended.
    Outcome,
}

/// What a program did under a memory limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredLimit {
    /// The limit in bytes.
    pub memory: u64,
    /// The fastest time in ns; `None`: the kernel killed it.
    pub time: Option<f64>,
    /// Whether it never ended by itself, and `time` is after how long it was stopped.
    pub stopped: bool,
    /// The fewest pages that it waited for to be fetched, where that is known.
    pub fetched: Option<f64>,
    /// The stall for memory as a share of the time at full speed, where it is known.
    pub stall: Option<f64>,
}

/// How the time in which a program stalled for memory is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StallSource {
    /// Measured: the kernel's pressure stall information.
    Pressure,
    /// Estimated: the pages fetched for want of memory, at what each cost.
    Pages,
}

/// A program's faults on a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramFaults {
    /// The target: `model:lru`.
    pub target: String,
    /// Whether they were measured, and not a model's.
    pub measured: bool,
    /// Faults that waited for a page that had been in memory or is in a file.
    pub major: Figure,
    /// Other faults; of a model the first reference to each page.
    pub minor: Option<Figure>,
    /// Pages read from swap, those read ahead included.
    pub swapped_in: Option<Figure>,
    /// Of a model, where a kernel was measured beside it: how many times its major faults the kernel had.
    pub error: Option<f64>,
}

impl ProgramFaults {
    /// The factor within which a model's prediction is a good one.
    const GOOD: f64 = 2.0;

    /// Whether the model is within a factor of two of the kernel; `None` where that is not known.
    pub fn predicts(&self) -> Option<bool> {
        self.error.map(|times| (1.0 / Self::GOOD..=Self::GOOD).contains(&times))
    }
}

/// What a finding is about, with what is no figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum What {
    /// What a reference to a mapping costs, and its faults.
    AccessTime {
        /// The order of the references.
        pattern: String,
    },
    /// How much slower references are where the mapping exceeds the memory limit.
    PastLimit {
        /// The limit.
        limit: Size,
        /// The run that stays within it.
        within: String,
    },
    /// How far transparent huge pages covered the mapping.
    HugePages,
    /// What became of the pages of a file that references wrote.
    Writeback,
    /// What went through zswap, and what of it was written back to the swap behind it.
    Zswap,
    /// The evictions, judged by OPT and compared with models.
    Evictions {
        /// The judgement.
        judgement: Box<Judgement>,
    },
    /// The major faults beside LRU's and OPT's on the same stream.
    Regret,
    /// The time of a read against active virtual memory.
    ReadTime {
        /// Where it changes, ascending.
        knees: Option<Vec<Knee>>,
    },
    /// Forks a second.
    ForkRate {
        /// Processes that fork.
        copies: u32,
        /// Whether the child execs.
        exec: bool,
        /// The kernel function with the most samples.
        top_function: Option<String>,
    },
    /// Throughput against the number of workers.
    Scaling {
        /// What the workers do, in the command line's word.
        work: String,
        /// What they are, in the command line's word.
        workers: String,
        /// The lock waited for longest with the most workers.
        lock: Option<String>,
    },
    /// Processor time of random reads of files.
    FileReads,
    /// Bandwidth of sequential reads.
    SequentialReads,
    /// Time to the first answer of a process restored from a snapshot, by prefetch order.
    FirstAnswer,
    /// What one access costs at each level.
    Latencies,
    /// What a load pays for another one under the same limit.
    Neighbour,
    /// How many bytes a second memory gives.
    Bandwidth,
    /// What merging equal pages takes and gives.
    Merging,
    /// Where a hot set lies on a machine with tiers, and what it costs.
    Tiers,
    /// Who was killed at a limit, and how long all waited.
    Kills {
        /// Who, where all have the same oom_score_adj.
        equal: Option<String>,
        /// Who, where the first has more.
        adjusted: Option<String>,
    },
    /// What asking for memory in advance freed.
    Reclaimed,
    /// What a scheme of DAMON's paged out in advance.
    PagedOut,
    /// How many huge pages could be had.
    HugePagesHad,
    /// The primary and the headline metrics of an experiment without a finding of its own.
    Declared,
    /// What operations on a mapping cost for each page.
    Operations,
    /// Whether the machine's clocks agree.
    ClockAgreement {
        /// Whether no rule found them not to.
        trusted: bool,
    },
    /// A program of the user's.
    Program {
        /// Its name.
        program: String,
        /// The memory limit.
        limit: Option<Size>,
    },
    /// A program's major faults on the kernel and on models that play its recorded references.
    ProgramOnModels {
        /// The program's name.
        program: String,
        /// The memory limit.
        limit: Option<Size>,
        /// Every target.
        sides: Vec<ProgramFaults>,
    },
    /// The least memory limit at which a program still runs at full speed.
    LeastMemory {
        /// The program's name.
        program: String,
        /// Every limit, ascending.
        limits: Vec<MeasuredLimit>,
        /// Whether a limit between was slow for a reason that may not be memory.
        inconclusive: bool,
        /// Whether the time that the sweep may take was over before the interval was as narrow as it should be.
        early: bool,
        /// How the stalls are known; `None`: by elapsed time alone.
        stall: Option<StallSource>,
    },
    /// Counters recorded over time.
    Recording,
    /// A program's references, recorded.
    Traced {
        /// The program's name.
        program: String,
        /// Bytes of what a reference names.
        unit: u64,
    },
    /// Misses of a stream at several memory sizes.
    Curve {
        /// The stream.
        stream: String,
    },
    /// The working set over time.
    WorkingSet {
        /// The stream or the process.
        of: String,
    },
    /// A note of a run that spoils it.
    Warning {
        /// The note.
        text: String,
        /// Every run that has it.
        runs: Vec<String>,
    },
    /// A repetition that does not count.
    NotPerformed {
        /// Its number.
        repetition: u32,
        /// How it ended.
        outcome: Outcome,
    },
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What it is about.
    #[serde(flatten)]
    pub what: What,
    /// The run's name.
    pub run: String,
    /// How much it matters.
    pub severity: Severity,
    /// The figures, the main one first.
    pub figures: Vec<Figure>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
}

impl Finding {
    /// A result of `run`.
    pub fn new(run: &Run, what: What, figures: Vec<Figure>, evidence: Vec<Evidence>) -> Self {
        Self { what, run: run.header.name.clone(), severity: Severity::Info, figures, evidence }
    }

    /// The figure of this name.
    pub fn figure(&self, name: impl AsRef<str>) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_range_of_its_repetitions() {
        let figure = Figure::over("x", Unit::Count, Statistic::Value, &[3.0, 1.0, 2.0]).unwrap();
        let interval = figure.interval.unwrap();
        assert_eq!((figure.value, interval.low, interval.high, figure.n), (2.0, 1.0, Some(3.0), 3));
        assert_eq!(Figure::over("x", Unit::Count, Statistic::Value, &[3.0]).unwrap().interval, None);
        assert_eq!(Figure::over("x", Unit::Count, Statistic::Value, &[]), None);
    }
}
