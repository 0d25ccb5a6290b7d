//! One metric of both sides of a comparison.

use pagelab_experiment::metrics::Statistic;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{MetricId, Run};

use super::test::Test;

/// The probability of a false alarm over all metrics together.
pub const ALPHA: f64 = 0.05;
/// Changes below this share of the baseline are of no practical interest.
pub const PRACTICAL: f64 = 0.01;

/// The smallest change that counts, as a share of the baseline, between guests that count
/// instructions where a side has one repetition. Boots of one kernel differed by up to 0.27% in
/// short runs (3,000 references), and none of twenty pairs of boots by 0.5% (`scripts/words`).
pub const SINGLE: f64 = 0.005;
/// The largest difference of a count between boots of one kernel: a kernel thread may run once more
/// on either side.
pub const WOKEN: f64 = 2.0;

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
    /// One count on a side, and no more of a difference than boots of one kernel have.
    WithinBoots,
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
    /// Whether boots of one kernel can differ as much: by less than [`SINGLE`] of the baseline, or
    /// by a kernel thread that woke at another moment.
    pub(super) fn is_within_boots(&self) -> bool {
        let difference = (self.medians.1 - self.medians.0).abs();
        let woken = self.unit == Unit::Count && difference <= WOKEN;
        let floor = self.spread().max(SINGLE);
        difference == 0.0 || woken || self.change.is_some_and(|change| change.abs() < floor)
    }

    /// Whether the figure is a maximum, which includes a timer tick in one boot and none in
    /// another.
    pub(super) fn is_longest(&self) -> bool {
        let statistic = MetricId::find(&self.name).map(|metric| metric.statistic);
        self.unit == Unit::Instructions && statistic == Some(Statistic::Max)
    }

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
