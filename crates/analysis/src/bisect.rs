//! One kernel judged against a good one by the medians of a metric, for `git bisect run`; and how small a change
//! can be told, from repeated boots of the good kernel.

use pagelab_experiment::Run;
use pagelab_experiment::observation::{Better, Unit};

use crate::stats;

/// What boots of one kernel measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// A figure a repetition.
    pub values: Vec<f64>,
    /// Their unit.
    pub unit: Unit,
    better: Better,
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoVerdict {
    /// The metric has no figure.
    #[error("the run {0} measured no {1}{2}")]
    NotMeasured(String, String, String),
    /// The metric only describes.
    #[error(
        "{0} has no direction: neither a higher nor a lower value is better\nhint: name a metric that has one"
    )]
    NoDirection(String),
    /// Instructions cannot be held against nanoseconds.
    #[error(
        "the good kernel's figures are in {0:?}, the judged one's in {1:?}\nhint: use the same accel= for both"
    )]
    Units(Unit, Unit),
    /// What was allowed is less than what boots of the same kernel differ by.
    #[error("{0}% is not detectable: boots of the good kernel differ too much\nhint: allow at least {1}%")]
    TooFine(f64, f64),
}

/// What a kernel's run says beside the good kernel's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The median of the good side.
    pub before: f64,
    /// The median of the judged run.
    pub after: f64,
    /// How much more that is, in per cent; `None` of nothing.
    pub change: Option<f64>,
    /// Whether the metric is worse by more than was allowed.
    pub bad: bool,
}

/// Differences below this share of a figure are the rounding of its computation.
const ROUNDING: f64 = 1e-9;

impl Side {
    /// The figures of these runs, of which none need be there: `metric` of every repetition that counts.
    ///
    /// # Errors
    /// When there are none, or the metric has no direction.
    pub fn of(runs: &[&Run], metric: &str) -> Result<Self, NoVerdict> {
        let all = || runs.iter().flat_map(|run| run.done()).flat_map(|r| &r.observations.metrics);
        let known = all().find(|m| m.name == metric && m.value.is_some_and(f64::is_finite));
        let Some(known) = known else {
            let name = runs.first().map_or("", |run| &run.header.name).to_owned();
            let names = all().filter(|m| m.value.is_some()).map(|m| m.name.as_str());
            let meant = pagelab_experiment::declaration::closest(metric, names);
            let meant = meant.map_or_else(String::new, |name| format!(" (did you mean {name}?)"));
            return Err(NoVerdict::NotMeasured(name, metric.to_owned(), meant));
        };
        if known.better == Better::Neither {
            return Err(NoVerdict::NoDirection(metric.to_owned()));
        }
        let same = all().filter(|m| m.name == metric && m.unit == known.unit);
        let values = same.filter_map(|m| m.value).filter(|value| value.is_finite()).collect();
        Ok(Self { values, unit: known.unit, better: known.better })
    }

    fn median(&self) -> f64 {
        stats::median(&self.values).unwrap_or(f64::NAN)
    }

    /// The least change, in per cent, that is not the boots' own: twice what they are apart, for one boot stands on
    /// either side of a judgement. 0 where they are the same.
    pub fn detectable(&self) -> f64 {
        let low = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if high > low { 200.0 * (high - low) / self.median().abs() } else { 0.0 }
    }

    /// Judges another side against this one, the good one: worse by more than `percent` is bad.
    ///
    /// # Errors
    /// When the units differ, or `percent` is less than can be told.
    pub fn judge(&self, other: &Self, percent: f64) -> Result<Judgement, NoVerdict> {
        if self.unit != other.unit {
            return Err(NoVerdict::Units(self.unit, other.unit));
        }
        self.check(percent)?;
        let (before, after) = (self.median(), other.median());
        let worse = match self.better {
            Better::Higher => before - after,
            Better::Lower | Better::Neither => after - before,
        };
        // In one scale, and without a quotient: of nothing, anything worse is bad.
        let allowed = before.abs() * percent / 100.0;
        let bad = worse > allowed + ROUNDING * before.abs().max(after.abs());
        let change = (before != 0.0).then(|| (after - before) / before.abs() * 100.0);
        Ok(Judgement { before, after, change, bad })
    }

    /// Whether a change of `percent` can be told at all.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check(&self, percent: f64) -> Result<(), NoVerdict> {
        if percent < self.detectable() { Err(NoVerdict::TooFine(percent, self.told())) } else { Ok(()) }
    }

    /// [`Side::detectable`] as a person would write it: two digits, upwards.
    pub fn told(&self) -> f64 {
        let detectable = self.detectable();
        if detectable == 0.0 {
            return 0.0;
        }
        let digits = 10_f64.powi(1 - detectable.log10().floor() as i32);
        (detectable * digits).ceil() / digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runs::run;
    use pagelab_experiment::Experiment;

    fn seen(metric: &str, values: &[f64]) -> Run {
        run("a", Experiment::Mapanon(Default::default()), "host", &[(metric, values)])
    }

    fn side(metric: &str, values: &[f64]) -> Side {
        Side::of(&[&seen(metric, values)], metric).unwrap()
    }

    /// Whether `after` is bad against `before` where so many per cent are allowed.
    fn bad(metric: &str, before: f64, after: f64, percent: f64) -> bool {
        side(metric, &[before]).judge(&side(metric, &[after]), percent).unwrap().bad
    }

    #[test]
    fn worse_by_more_than_was_allowed_is_bad_in_the_metrics_own_direction() {
        let lower = "fault.anonymous";
        assert!(
            !bad(lower, 200.0, 100.0, 1.0) && !bad(lower, 200.0, 201.0, 1.0) && bad(lower, 200.0, 203.0, 1.0)
        );
        let higher = "forks.rate";
        assert!(
            !bad(higher, 200.0, 300.0, 1.0)
                && !bad(higher, 200.0, 199.0, 1.0)
                && bad(higher, 200.0, 197.0, 1.0)
        );
        let judged = side(lower, &[100.0]).judge(&side(lower, &[150.0, 140.0, 160.0]), 1.0).unwrap();
        assert_eq!(judged, Judgement { before: 100.0, after: 150.0, change: Some(50.0), bad: true });
    }

    #[test]
    fn exactly_what_was_allowed_is_not_bad_by_rounding() {
        for before in [0.1, 0.3, 1.0, 3.0, 7.7, 100.0, 4846.2, 1e9 + 0.1] {
            for percent in [0.1, 0.7, 1.0, 3.3, 10.0, 30.0] {
                let at = |share: f64| before * (1.0 + percent * share / 100.0);
                assert!(!bad("fault.anonymous", before, at(1.0), percent), "{before} + {percent}%");
                assert!(bad("fault.anonymous", before, at(1.001), percent), "{before} + {percent}%");
                let less = before * (1.0 - percent / 100.0);
                assert!(!bad("forks.rate", before, less, percent), "{before} - {percent}%");
            }
        }
    }

    #[test]
    fn zero_and_nan_are_not_percentages() {
        let nothing = side("faults.major", &[0.0]);
        let judged = nothing.judge(&side("faults.major", &[0.0]), 1.0).unwrap();
        assert_eq!((judged.change, judged.bad), (None, false), "0 against 0");
        assert!(nothing.judge(&side("faults.major", &[5.0]), 1.0).unwrap().bad, "5 against 0");
        let run = seen("faults.major", &[f64::NAN]);
        assert!(matches!(Side::of(&[&run], "faults.major"), Err(NoVerdict::NotMeasured(..))));
    }

    #[test]
    fn unjudgeable_runs_give_the_reason() {
        let run = seen("fault.anonymous", &[1.0]);
        let mistyped = Side::of(&[&run], "fault.anonymus").unwrap_err().to_string();
        assert!(
            mistyped.contains("measured no fault.anonymus (did you mean fault.anonymous?)"),
            "{mistyped}"
        );
        assert_eq!(
            Side::of(&[&seen("pages.present", &[1.0])], "pages.present"),
            Err(NoVerdict::NoDirection("pages.present".into()))
        );
        let mut counted = seen("fault.anonymous", &[1.0]);
        counted.repetitions[0].observations.metrics[0].unit = Unit::Instructions;
        let counted = Side::of(&[&counted], "fault.anonymous").unwrap();
        let apart = side("fault.anonymous", &[1.0]).judge(&counted, 1.0);
        assert_eq!(apart, Err(NoVerdict::Units(Unit::Nanoseconds, Unit::Instructions)));
    }

    #[test]
    fn a_threshold_below_what_boots_differ_by_is_refused() {
        let good = side("fault.anonymous", &[1000.0, 1002.0, 1001.0]);
        assert!((good.detectable() - 0.3996).abs() < 1e-4, "{}", good.detectable());
        assert_eq!(good.check(0.2), Err(NoVerdict::TooFine(0.2, 0.4)));
        assert_eq!(good.check(0.4), Ok(()));
        let same = side("fault.anonymous", &[1000.0, 1000.0]);
        assert_eq!((same.check(0.0), same.told()), (Ok(()), 0.0));
    }
}
