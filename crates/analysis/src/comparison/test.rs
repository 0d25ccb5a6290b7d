//! The tests of a comparison: p values, and the estimates and intervals that belong to them.
//!
//! An interval holds the changes that the test would not reject (Hodges and Lehmann, "Estimates of location based on
//! rank tests", 1963): it leaves out 0 exactly where p is below 5%, ties aside, and the estimate of the change lies
//! within it. Where all values are positive they are compared on a logarithmic scale, so that a change is a ratio.

use pagelab_experiment::{Run, build};

use super::line::{ALPHA, Line};
use crate::is_deterministic;
use crate::rank::{self, least_p, least_sign_p, mann_whitney, sign_test};
use crate::signed_rank::{self, signed_rank};
use crate::stats::median;

/// How the sides of a line are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Repetitions in pairs, each performed in turn with its counterpart: Wilcoxon's signed-rank test.
    Pairs,
    /// Both sides vary: the Mann-Whitney test.
    Ranks,
    /// The baseline is one exact figure, or the other side is: the sign test.
    Sign {
        /// Whether it is the baseline.
        baseline_exact: bool,
    },
    /// Both sides count instructions, and one has a single count: there is nothing to test.
    Counts,
    /// Both sides are exact.
    Exact,
}

impl Test {
    /// The test of two runs; `in_pairs`: their repetitions were performed in turn.
    pub(super) fn of(baseline: &Run, other: &Run, in_pairs: bool) -> Self {
        match (is_deterministic(baseline), is_deterministic(other)) {
            (true, true) => Self::Exact,
            (false, false) if in_pairs => Self::Pairs,
            (false, false) => Self::Ranks,
            (baseline_exact, _) => Self::Sign { baseline_exact },
        }
    }

    /// The same for `n` repetitions at this level: so few pairs can never reach it, where their ranks may.
    pub(super) fn at(self, n: usize, level: f64) -> Self {
        match self {
            Self::Pairs if least_sign_p(n) >= level => Self::Ranks,
            test => test,
        }
    }

    /// The same between sides that count instructions.
    pub(super) fn of_counts(self, line: &Line) -> Self {
        let sides = [&line.baseline, &line.other];
        let single = sides.iter().any(|values| values.len() == 1);
        let agree = sides.iter().all(|values| values.len() == 1 || repeats_itself(values));
        match self {
            Self::Pairs | Self::Ranks if single && agree && !line.is_longest() => Self::Counts,
            test => test,
        }
    }

    /// The same of the sides in the other order.
    pub(super) fn swapped(self) -> Self {
        match self {
            Self::Sign { baseline_exact } => Self::Sign { baseline_exact: !baseline_exact },
            test => test,
        }
    }

    /// The test's usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pairs => "signed-rank",
            Self::Ranks => "mann-whitney",
            Self::Sign { .. } => "sign",
            Self::Counts => "counts",
            Self::Exact => "exact",
        }
    }

    /// The two-sided p value; `None` where there is nothing to test.
    pub(super) fn p(self, line: &Line) -> Option<f64> {
        match self {
            Self::Counts | Self::Exact => None,
            Self::Sign { baseline_exact: true } => sign_test(&line.other, line.medians.0),
            Self::Sign { baseline_exact: false } => sign_test(&line.baseline, line.medians.1),
            Self::Pairs | Self::Ranks if repeats_itself(&line.baseline) && repeats_itself(&line.other) => {
                None
            }
            Self::Pairs => signed_rank(&differences(&Scale::of(line), line)),
            Self::Ranks => mann_whitney(&line.baseline, &line.other),
        }
    }

    /// The smallest p value that `n` against `m` repetitions can give.
    pub(super) fn least_p(self, n: usize, m: usize) -> f64 {
        match self {
            Self::Counts | Self::Exact => 0.0,
            Self::Sign { baseline_exact: true } => least_sign_p(m),
            Self::Sign { baseline_exact: false } | Self::Pairs => least_sign_p(n),
            Self::Ranks => least_p(n, m),
        }
    }

    /// The change as a share of the baseline, and its 95% interval; `None`: there is no share of 0, and so few
    /// repetitions have no interval.
    pub(super) fn change(self, line: &Line) -> (Option<f64>, Option<(f64, f64)>) {
        let (before, after) = line.medians;
        let scale = Scale::of(line);
        let exact = (before != 0.0).then(|| after / before - 1.0);
        let varying = match self {
            Self::Counts | Self::Exact => return (exact, None),
            Self::Sign { baseline_exact: true } => line.other.len(),
            Self::Sign { baseline_exact: false } => line.baseline.len(),
            Self::Pairs | Self::Ranks => line.baseline.len().min(line.other.len()),
        };
        if varying < 2 {
            return (exact, None);
        }
        let (a, b) = (scale.values(&line.baseline), scale.values(&line.other));
        let effects = self.effects(&a, &b);
        // What is never negative cannot get less by more than all of it, though a difference of two values can be
        // more than their medians.
        let never_negative = line.baseline.iter().chain(&line.other).all(|&v| v >= 0.0);
        let least = if never_negative { -1.0 } else { f64::NEG_INFINITY };
        let share = |effect: f64| scale.share(effect, before).map(|share| share.max(least));
        let change = median(&effects).and_then(share);
        let ends = self.left_out(a.len(), b.len(), ALPHA);
        let ends = ends.and_then(|k| Some((share(effects[k])?, share(effects[effects.len() - 1 - k])?)));
        (change.or(exact), ends)
    }

    /// What the values differ by, ascending: the middle of them is the estimate, and an interval goes from one of
    /// them to another.
    pub(super) fn effects(self, a: &[f64], b: &[f64]) -> Vec<f64> {
        let mut effects: Vec<f64> = match self {
            Self::Pairs => {
                let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
                let means = apart.iter().enumerate();
                means.flat_map(|(i, x)| apart[i..].iter().map(move |y| (x + y) / 2.0)).collect()
            }
            Self::Sign { baseline_exact: true } => b.iter().map(|b| b - a[0]).collect(),
            Self::Sign { baseline_exact: false } => a.iter().map(|a| b[0] - a).collect(),
            Self::Ranks | Self::Counts | Self::Exact => {
                a.iter().flat_map(|a| b.iter().map(move |b| b - a)).collect()
            }
        };
        effects.sort_by(f64::total_cmp);
        effects
    }

    /// How many of the effects of `n` against `m` values an interval of probability 1 − `level` leaves out at either
    /// end.
    pub(super) fn left_out(self, n: usize, m: usize, level: f64) -> Option<usize> {
        match self {
            Self::Pairs => signed_rank::left_out(n, level),
            Self::Ranks => rank::left_out(n, m, level),
            Self::Sign { baseline_exact: true } => build::left_out(m, level),
            Self::Sign { baseline_exact: false } => build::left_out(n, level),
            Self::Counts | Self::Exact => None,
        }
    }
}

/// Values agree to four significant digits if none differs from their median by more than this
/// share of it.
pub const REPEATS: f64 = 0.5e-3;

/// Whether the values agree to four significant digits.
fn repeats_itself(values: &[f64]) -> bool {
    let Some(middle) = median(values) else { return false };
    values.len() >= 2 && values.iter().all(|v| (v - middle).abs() <= middle.abs() * REPEATS)
}

/// The scale on which values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Logarithmic,
    Plain,
}

impl Scale {
    pub(super) fn of(line: &Line) -> Self {
        let positive = line.baseline.iter().chain(&line.other).all(|&v| v > 0.0);
        if positive { Self::Logarithmic } else { Self::Plain }
    }

    pub(super) fn values(self, values: &[f64]) -> Vec<f64> {
        match self {
            Self::Logarithmic => values.iter().map(|v| v.ln()).collect(),
            Self::Plain => values.to_vec(),
        }
    }

    /// An effect on this scale as a share of the baseline.
    fn share(self, effect: f64, baseline: f64) -> Option<f64> {
        match self {
            Self::Logarithmic => Some(effect.exp_m1()),
            Self::Plain => (baseline != 0.0).then(|| effect / baseline.abs()),
        }
    }
}

fn differences(scale: &Scale, line: &Line) -> Vec<f64> {
    let (a, b) = (scale.values(&line.baseline), scale.values(&line.other));
    a.iter().zip(&b).map(|(a, b)| b - a).collect()
}
