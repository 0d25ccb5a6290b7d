//! What a section shows of its runs: one repetition of each, its knees, and panels of plots.

use pagelab_analysis::figure::{Mark, MarkKind, Plot};
use pagelab_analysis::vmtest;
use pagelab_experiment::environment;
use pagelab_experiment::experiments::Recording;
use pagelab_experiment::metrics;
use pagelab_experiment::{Observations, Repetition, Run};

use crate::{findings, text};

/// A run with the repetition that its plots show.
pub(crate) struct Shown<'a> {
    pub run: &'a Run,
    /// The repetition whose elapsed time is the median (of an even number the lower one); the first
    /// where no time was measured.
    pub repetition: &'a Repetition,
    /// The number of its colour.
    pub color: usize,
    /// What tells it from the others: the target where every run has another one, else its name.
    pub label: String,
    /// Of a sweep over memory: the time of a read, and its knees.
    pub curve: Option<vmtest::Curve>,
}

/// A recording that was killed: what it had seen is as good as any.
fn cut_short(run: &Run) -> Option<&Repetition> {
    run.repetitions.first().filter(|_| run.header.experiment.parameters::<Recording>().is_some())
}

impl<'a> Shown<'a> {
    pub fn new(run: &'a Run, color: usize, label: String) -> Option<Self> {
        let elapsed = |r: &&Repetition| r.observations.metric(metrics::TIME_ELAPSED);
        let mut timed: Vec<&Repetition> = run.done().filter(|r| elapsed(r).is_some()).collect();
        timed.sort_by(|a, b| f64::total_cmp(&elapsed(a).unwrap_or(0.0), &elapsed(b).unwrap_or(0.0)));
        let median = timed.get(timed.len().saturating_sub(1) / 2).copied();
        let repetition = median.or_else(|| run.done().next()).or_else(|| cut_short(run))?;
        Some(Self { run, repetition, color, label, curve: vmtest::of_run(run) })
    }

    pub fn name(&self) -> &str {
        &self.label
    }

    /// An entry of the environment that is a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.seen().environment.get(key)?.parse().ok()
    }

    pub fn seen(&self) -> &'a Observations {
        &self.repetition.observations
    }

    /// The knees, in this run's colour where there are `several` runs, and the memory limit in force.
    pub fn marks(&self, several: bool) -> Vec<Mark> {
        let color = several.then_some(self.color);
        let knees = self.curve.as_ref().and_then(|curve| curve.knees.as_deref()).unwrap_or_default();
        let knee = |(n, knee): (usize, &vmtest::Knee)| {
            // Neighbours part what is between them, and a band over more than two doublings says
            // nothing, nor one around a knee that nothing explains.
            let halfway = |other: Option<&vmtest::Knee>| other.map(|other| (other.at * knee.at).sqrt());
            let before = halfway(n.checked_sub(1).and_then(|n| knees.get(n))).unwrap_or(0.0);
            let after = halfway(knees.get(n + 1)).unwrap_or(f64::INFINITY);
            let (low, high) = (knee.interval.0.max(before), knee.interval.1.min(after));
            let told = knee.cause.is_some() && high <= low * WIDEST_BAND;
            Mark {
                x: knee.at,
                low: told.then_some(low),
                high: told.then_some(high),
                label: match &knee.cause {
                    Some((cause, _)) => format!("knee {} ({})", text::bytes(knee.at), findings::cause(cause)),
                    None => format!("knee {}", text::bytes(knee.at)),
                },
                color,
                kind: MarkKind::Knee,
            }
        };
        let limit = self.number(environment::MEMORY_LIMIT).filter(|_| self.curve.is_some()).map(|x| Mark {
            label: format!("memory limit {}", text::bytes(x)),
            kind: MarkKind::Place,
            ..Mark::at(x)
        });
        knees.iter().enumerate().map(knee).chain(limit).collect()
    }
}

/// The widest band around a knee that is drawn, as a ratio of its ends.
const WIDEST_BAND: f64 = 4.0;

/// A plot, or what is missing for it.
pub(crate) enum Panel {
    Plot(Box<Plot>),
    /// The plot's title, and why there is none.
    Absent(&'static str, String),
}
