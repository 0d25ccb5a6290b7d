//! One metric of both sides of a comparison.

use pagelab_experiment::Run;
use pagelab_experiment::observation::Unit;

use super::test::Test;

/// The probability of a false alarm over all metrics together.
pub const ALPHA: f64 = 0.05;
/// Changes below this share of the baseline are of no practical interest.
pub const PRACTICAL: f64 = 0.01;

/// What became of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It changed for the better.
    Better,
    /// It changed for the worse.
    Worse,
    /// It changed; neither direction is better.
    Changed,
    /// Both sides are deterministic and have the same figure.
    Equal,
    /// No significant difference.
    NoDifference,
    /// So few repetitions cannot show any difference; this many on each side could.
    Inconclusive(usize),
}

impl Verdict {
    /// Whether the metric differs beyond doubt.
    pub fn differs(self) -> bool {
        matches!(self, Self::Better | Self::Worse | Self::Changed)
    }
}

/// One metric of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The metric.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// The baseline's values, a repetition each.
    pub baseline: Vec<f64>,
    /// The other side's.
    pub other: Vec<f64>,
    /// The medians.
    pub medians: (f64, f64),
    /// The change as a share of the baseline: the middle of what its repetitions and the other side's differ by
    /// (Hodges and Lehmann); `None` of a baseline of 0.
    pub change: Option<f64>,
    /// Its 95% interval; `None` with too few repetitions for one, and of exact differences.
    pub interval: Option<(f64, f64)>,
    /// How it was tested.
    pub test: Test,
    /// The p value, corrected but for the primary metric; `None` of exact differences and between sides
    /// that repeat themselves.
    pub p: Option<f64>,
    /// The minimum detectable change: the smallest factor above 1, up or down, that the same comparison would find
    /// four times in five.
    pub detectable: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Line {
    /// What the repetitions of a side are apart at most, as a share of its median.
    pub(super) fn spread(&self) -> f64 {
        let of = |values: &[f64], median: f64| {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if high > low { (high - low) / median.abs() } else { 0.0 }
        };
        of(&self.baseline, self.medians.0).max(of(&self.other, self.medians.1))
    }
}

/// The unit in which a run has a metric.
pub(super) fn unit_of(run: &Run, name: &str) -> Option<Unit> {
    run.done().flat_map(|r| &r.observations.metrics).find(|metric| metric.name == name).map(|m| m.unit)
}
