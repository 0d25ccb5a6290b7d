//! A matrix of switches and loads: what each mechanism of a kernel costs or saves under each load.
//!
//! A cell is a load under a switch, compared with the same load without it by [`comparison`], on
//! two figures: instructions, and major faults as multiples of OPT's. The load without a switch is
//! the other side of all comparisons, so it has [`DEFAULT_MORE`] times the repetitions of a cell:
//! the square root of their number (Dunnett, "A multiple comparison procedure for comparing several
//! treatments with a control", 1955).

mod loads;
mod switches;
#[cfg(test)]
mod tests;

use pagelab_experiment::experiments::{self, Backing};
use pagelab_experiment::{MetricId, Run, metrics};
use pagelab_reference::PatternError;

pub use self::loads::{LOADS, Load};
pub use self::switches::{Switch, switches};
use crate::comparison::{self, ALPHA, Verdict};
use crate::stats::{median, sorted};
use crate::{counts_instructions, regret};

/// Repetitions of a load without a switch, as a multiple of those of a cell.
pub const DEFAULT_MORE: u32 = 4;
/// Minimum faults of OPT for a figure: with fewer, a multiple says little.
const MIN_OPT: u64 = 100;

/// A figure of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Instructions per operation of the load.
    Instructions,
    /// Major faults as a multiple of OPT's with as many frames as the limit has.
    Regret,
}

impl Figure {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Instructions, Self::Regret];
}

/// What became of a cell.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was not measured.
    Missing,
    /// The kernel does not have the switch, or the load does not take it: why.
    Unsupported(String),
    /// It failed: why.
    Failed(String),
    /// It was measured.
    Measured(Box<Run>),
}

/// A figure of several repetitions.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Sample {
    /// Their median.
    pub median: f64,
    /// Their minimum.
    pub min: f64,
    /// Their maximum.
    pub max: f64,
    /// Their number.
    pub n: usize,
}

impl Sample {
    /// The sample of some values; `None` without any.
    fn of(values: &[f64], scale: f64) -> Option<Self> {
        let sorted = sorted(values)?;
        let (min, max) = (sorted.first()? * scale, sorted.last()? * scale);
        Some(Self { median: median(values)? * scale, min, max, n: values.len() })
    }

    /// Whether all repetitions have the same value.
    pub fn is_same(&self) -> bool {
        self.min == self.max
    }
}

/// A figure of a cell, compared with the load without a switch.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Effect {
    /// Without the switch.
    pub before: Sample,
    /// With it.
    pub after: Sample,
    /// The change as a share of the figure without the switch.
    pub change: f64,
    /// Its 95% interval; `None` if there are too few repetitions for one.
    pub interval: Option<(f64, f64)>,
    /// Whether the change is significant.
    pub differs: bool,
    /// Whether it was tested: not if the repetitions of both sides agree to four digits.
    pub tested: bool,
    /// Whether there are too few repetitions to tell.
    pub inconclusive: bool,
}

impl Effect {
    /// The size of the change on a scale of ratios, on which a double is as much as a half.
    pub fn size(&self) -> f64 {
        self.change.ln_1p().abs()
    }
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The effect on the instructions.
    pub instructions: Option<Effect>,
    /// The effect on the regret.
    pub regret: Option<Effect>,
    /// Why it has none.
    pub missing: Option<Reason>,
}

/// Why a cell has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The kernel or the load does not take the switch.
    Unsupported(String),
    /// The run failed.
    Failed(String),
}

impl Cell {
    /// The effect on a figure.
    pub fn effect(&self, figure: Figure) -> Option<&Effect> {
        match figure {
            Figure::Instructions => self.instructions.as_ref(),
            Figure::Regret => self.regret.as_ref(),
        }
    }

    /// The size of its largest significant effect; `None` if it has none.
    fn size(&self) -> Option<f64> {
        let effects = Figure::ALL.into_iter().filter_map(|figure| self.effect(figure));
        effects.filter(|effect| effect.differs).map(Effect::size).max_by(f64::total_cmp)
    }
}

/// A load without a switch.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Baseline {
    /// Its instructions.
    pub instructions: Option<Sample>,
    /// Its regret.
    pub regret: Option<Sample>,
    /// OPT's faults, if the references are known and OPT has enough faults.
    pub opt: Option<u64>,
}

/// The matrix.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The columns.
    pub loads: Vec<Load>,
    /// The rows.
    pub switches: Vec<Switch>,
    /// Each load without a switch.
    pub baselines: Vec<Baseline>,
    /// For each switch a cell for each load.
    pub cells: Vec<Vec<Cell>>,
}

impl Matrix {
    /// The matrix of the runs of `loads` without a switch, and of their `outcomes` under each
    /// switch.
    ///
    /// # Errors
    /// When the references of a load cannot be generated.
    pub fn of(
        loads: Vec<Load>,
        switches: Vec<Switch>,
        defaults: &[Option<Run>],
        outcomes: &[Vec<Outcome>],
    ) -> Result<Self, PatternError> {
        let mut baselines = Vec::new();
        for (load, run) in loads.iter().zip(defaults) {
            baselines.push(run.as_ref().map_or(Ok(Baseline::default()), |run| baseline(load, run))?);
        }
        let row = |outcomes: &Vec<Outcome>| {
            let columns = loads.iter().zip(defaults).zip(&baselines).zip(outcomes);
            columns
                .map(|(((load, run), of), outcome)| cell(load, run.as_ref(), of, outcome))
                .collect::<Vec<Cell>>()
        };
        let cells = outcomes.iter().map(row).collect();
        Ok(Self { loads, switches, baselines, cells })
    }

    /// Every cell: its switch, its load, and itself.
    pub fn cells(&self) -> impl Iterator<Item = (&Switch, &Load, &Cell)> {
        let rows = self.switches.iter().zip(&self.cells);
        rows.flat_map(move |(switch, row)| {
            self.loads.iter().zip(row).map(move |(load, cell)| (switch, load, cell))
        })
    }

    /// The cells with the largest significant effects, the largest first: at most `count`, and one
    /// of each switch.
    pub fn largest(&self, count: usize) -> Vec<(&Switch, &Load, &Cell)> {
        let mut found: Vec<_> = self.cells().filter_map(|found| Some((found.2.size()?, found))).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut largest: Vec<(&Switch, &Load, &Cell)> = Vec::new();
        for (_, found) in found {
            if largest.len() < count && largest.iter().all(|(switch, ..)| switch.name != found.0.name) {
                largest.push(found);
            }
        }
        largest
    }

    /// The effects on a figure.
    pub fn effects(&self, figure: Figure) -> impl Iterator<Item = &Effect> {
        self.cells().filter_map(move |(.., cell)| cell.effect(figure))
    }

    /// Tests that would find a difference by chance alone if no switch had an effect.
    pub fn by_chance(&self) -> f64 {
        let tested = Figure::ALL.into_iter().flat_map(|figure| self.effects(figure));
        ALPHA * tested.filter(|effect| effect.tested).count() as f64
    }
}

fn baseline(load: &Load, run: &Run) -> Result<Baseline, PatternError> {
    let opt = opt(run)?;
    let faults = run.values(metrics::FAULTS_MAJOR);
    Ok(Baseline {
        instructions: instructions(load, run).and_then(|values| Sample::of(&values, load.scale())),
        regret: opt.and_then(|opt| Sample::of(&faults, 1.0 / opt as f64)),
        opt,
    })
}

/// OPT's faults with as many frames as the limit has; `None` if the references are not known, or
/// there are too few faults.
fn opt(run: &Run) -> Result<Option<u64>, PatternError> {
    /// Limits of loads are in pages, whatever their size.
    const ANY_SIZE: u64 = 4096;
    let declared = run.header.experiment.declaration();
    let experiments::Load::References(paging, Backing::Anonymous) = declared.load() else { return Ok(None) };
    let Some(limit) = run.header.setting.limit() else { return Ok(None) };
    let frames = u32::try_from(limit.pages(ANY_SIZE)).unwrap_or(u32::MAX);
    let (_, opt) = regret::misses(paging, true, frames)?;
    Ok((opt >= MIN_OPT).then_some(opt))
}

impl Load {
    fn scale(&self) -> f64 {
        1.0 / f64::from(self.per)
    }
}

/// The metric that has a load's instructions; `None` if the run's times are none.
fn instructions(load: &Load, run: &Run) -> Option<Vec<f64>> {
    counts_instructions(run).then(|| run.values(load.metric)).filter(|values| !values.is_empty())
}

fn cell(load: &Load, default: Option<&Run>, of: &Baseline, outcome: &Outcome) -> Cell {
    let missing = |reason| Cell { missing: Some(reason), ..Cell::default() };
    match (outcome, default) {
        (Outcome::Unsupported(why), _) => missing(Reason::Unsupported(why.clone())),
        (Outcome::Failed(why), _) => missing(Reason::Failed(why.clone())),
        (Outcome::Measured(run), Some(default)) => {
            let counted = instructions(load, default).is_some() && instructions(load, run).is_some();
            let compared = |metric, scale| effect(default, run, metric, scale);
            Cell {
                instructions: counted.then(|| compared(load.metric, load.scale())).flatten(),
                regret: of.opt.and_then(|opt| compared(metrics::FAULTS_MAJOR, 1.0 / opt as f64)),
                missing: None,
            }
        }
        (Outcome::Missing | Outcome::Measured(_), _) => Cell::default(),
    }
}

/// The change of a metric; `None` if a side did not measure it, or it was 0 before.
fn effect(default: &Run, run: &Run, metric: MetricId, scale: f64) -> Option<Effect> {
    let compared = comparison::compare_by(default, run, &[metric.name.to_owned()]);
    let line = compared.line(metric.name)?;
    let change = line.change?;
    Some(Effect {
        before: Sample::of(&line.baseline, scale)?,
        after: Sample::of(&line.other, scale)?,
        change,
        interval: line.interval,
        differs: line.verdict.differs(),
        tested: line.p.is_some(),
        inconclusive: matches!(line.verdict, Verdict::Inconclusive(_)),
    })
}
