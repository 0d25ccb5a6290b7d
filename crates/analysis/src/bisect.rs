//! One kernel judged against a good one by the medians of a metric, for `git bisect run`.

use pagelab_experiment::Run;

use crate::stats;

/// What a kernel's run says beside the good kernel's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The median of the judged run.
    pub after: f64,
    /// How much more that is than the good run's, in per cent.
    pub change: f64,
    /// Whether the metric grew by more than was allowed.
    pub bad: bool,
}

/// The median of a metric over a run's repetitions; none where it was not measured.
pub fn median(run: &Run, metric: &str) -> Option<f64> {
    stats::median(&run.values(metric))
}

/// Judges `run` against the median `before` of the good run; worse by more than `percent` is bad. None where the
/// metric was not measured.
pub fn judge(before: f64, run: &Run, metric: &str, percent: f64) -> Option<Judgement> {
    let after = median(run, metric)?;
    let change = (after / before - 1.0) * 100.0;
    Some(Judgement { after, change, bad: change > percent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runs::run;
    use pagelab_experiment::Experiment;

    #[test]
    fn worse_by_more_than_was_allowed_is_bad() {
        let mapanon = Experiment::Mapanon(Default::default());
        let seen = |values: &[f64]| run("a", mapanon.clone(), "host", &[("fault.anonymous", values)]);
        let before = median(&seen(&[100.0, 300.0, 200.0]), "fault.anonymous").unwrap();
        assert_eq!(before, 200.0);
        let judged = |after| judge(before, &seen(&[after]), "fault.anonymous", 1.0).unwrap();
        assert!(!judged(100.0).bad && !judged(201.0).bad && judged(203.0).bad);
        assert_eq!(judged(300.0), Judgement { after: 300.0, change: 50.0, bad: true });
        assert_eq!(judge(before, &seen(&[1.0]), "nothing", 1.0), None);
    }
}
