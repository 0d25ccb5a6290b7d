//! Two runs against each other, metric by metric.
//!
//! The sample is a repetition. For each metric: both medians, the change of the median with a 95 %
//! bootstrap interval, the Mann-Whitney p value, the minimum detectable change, and a verdict. A change
//! counts only when p is below [`ALPHA`], the interval excludes 0, and the change is at least
//! [`PRACTICAL`]. No repetition is ever left out. The experiment's primary metric is named beforehand and
//! tested by itself; the others are corrected by Holm's method for their number.
//!
//! Two deterministic runs are not a matter of statistics: their differences are exact. Beside one
//! deterministic run the other side is tested against its figure by the sign test. Where both sides
//! repeat themselves to four digits (instruction counts), there is nothing to test either: a difference
//! of [`REPEATED`] or more is a change.

use pagelab_experiment::observation::{Better, Unit};
use pagelab_experiment::{Origin, Run};

use crate::rank::{holm, least_p, least_sign_p, mann_whitney, sign_test};
use crate::rows::{TableComparison, changed_rows};
use crate::stats::{change_interval, deviation, drift, median};
use crate::{is_deterministic, primary_metric};

/// The probability of a false alarm over all metrics together.
pub const ALPHA: f64 = 0.05;
/// Changes below this share of the baseline are of no practical interest.
pub const PRACTICAL: f64 = 0.01;
/// Changes from this share on count between sides that repeat themselves.
pub const REPEATED: f64 = 0.005;
/// Changes below this share are none: they print as 0.0 %.
const NOTHING: f64 = 0.0005;

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
    /// Change of the median as a share of the baseline's; `None` when that is 0.
    pub change: Option<f64>,
    /// Its 95 % interval; `None` with fewer than two repetitions on a side, and of exact differences.
    pub interval: Option<(f64, f64)>,
    /// The p value, corrected but for the primary metric; `None` of exact differences and between sides
    /// that repeat themselves.
    pub p: Option<f64>,
    /// The minimum detectable change: the smallest factor above 1, up or down, that the test would find four
    /// times in five.
    pub detectable: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// What spoils a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Caveat {
    /// The experiments differ: the baseline's and the other's command line.
    Experiments(String, String),
    /// One side has its times in instructions; they are left out.
    Units,
    /// The entry of the environment of this name differs: the baseline's and the other's.
    Environment(&'static str, String, String),
    /// The runs were not interleaved.
    NotInterleaved,
    /// The clocks of this run's machine are suspect, for this reason.
    Clock(String, String),
    /// In this run a share of the processors' time was stolen.
    Steal(String, f64),
    /// The machine was busy when this run began: load average and processors.
    Busy(String, f64, f64),
    /// This metric of this run drifts over the repetitions.
    Drift(String, String),
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The run's name.
    pub run: String,
    /// Its target, a kernel by its file's name.
    pub target: String,
    /// Its repetitions that count.
    pub n: usize,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The baseline.
    pub baseline: Side,
    /// The other side.
    pub other: Side,
    /// Whether both sides are deterministic, so that differences are exact.
    pub exact: bool,
    /// The metric that decides: the first of those that were asked for, else the primary one of the
    /// baseline's experiment.
    pub primary: Option<String>,
    /// The metrics that both have.
    pub lines: Vec<Line>,
    /// The rows that differ of the tables with named rows.
    pub tables: Vec<TableComparison>,
    /// What spoils the comparison.
    pub caveats: Vec<Caveat>,
}

impl Comparison {
    /// The metric of this name.
    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }

    /// The primary metric's line, where both sides measured it.
    pub fn main(&self) -> Option<&Line> {
        self.line(self.primary.as_deref()?)
    }

    /// Of `metrics`, those that became worse by more than `percent` of the baseline, beyond doubt.
    pub fn worse_by(&self, percent: f64, metrics: &[&str]) -> Vec<&Line> {
        let beyond = |line: &&Line| {
            metrics.contains(&line.name.as_str())
                && line.verdict == Verdict::Worse
                && line.change.is_none_or(|change| change.abs() * 100.0 > percent)
        };
        self.lines.iter().filter(beyond).collect()
    }

    /// Whether a side that is not deterministic has but one repetition, so that nothing can be tested.
    pub fn untested(&self) -> bool {
        let single = self.lines.iter().all(|line| line.interval.is_none());
        !self.exact && single && self.repetitions_needed().is_some()
    }

    /// How many repetitions on each side could tell, where there are too few.
    pub fn repetitions_needed(&self) -> Option<usize> {
        let needed = self.lines.iter().filter_map(|line| match line.verdict {
            Verdict::Inconclusive(needed) => Some(needed),
            _ => None,
        });
        needed.max()
    }
}

/// Every other run against the first, by these metrics; by all where none is named.
pub fn against_first(runs: &[&Run], metrics: &[String]) -> Vec<Comparison> {
    match runs {
        [first, others @ ..] => others.iter().map(|other| compare_by(first, other, metrics)).collect(),
        [] => Vec::new(),
    }
}

/// Whether the values agree to four significant digits.
fn repeats_itself(values: &[f64]) -> bool {
    let Some(middle) = median(values) else { return false };
    values.len() >= 2 && values.iter().all(|v| (v - middle).abs() <= middle.abs() * 0.5e-3)
}

/// How the sides of a comparison are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// Both sides vary.
    Ranks,
    /// The baseline is one exact figure, or the other side is.
    Sign { baseline_exact: bool },
    /// Both sides are exact.
    Exact,
}

impl Test {
    fn of(baseline: &Run, other: &Run) -> Self {
        match (is_deterministic(baseline), is_deterministic(other)) {
            (true, true) => Self::Exact,
            (false, false) => Self::Ranks,
            (baseline_exact, _) => Self::Sign { baseline_exact },
        }
    }

    fn p(self, line: &Line) -> Option<f64> {
        match self {
            Self::Exact => None,
            Self::Sign { baseline_exact: true } => sign_test(&line.other, line.medians.0),
            Self::Sign { baseline_exact: false } => sign_test(&line.baseline, line.medians.1),
            Self::Ranks if repeats_itself(&line.baseline) && repeats_itself(&line.other) => None,
            Self::Ranks => mann_whitney(&line.baseline, &line.other),
        }
    }

    fn interval(self, line: &Line) -> Option<(f64, f64)> {
        match self {
            Self::Exact => None,
            Self::Sign { baseline_exact: true } => change_interval(&[line.medians.0; 2], &line.other, 1),
            Self::Sign { baseline_exact: false } => change_interval(&line.baseline, &[line.medians.1; 2], 1),
            Self::Ranks => change_interval(&line.baseline, &line.other, 1),
        }
    }

    /// The smallest p value that `n` against `m` repetitions can give.
    fn least_p(self, n: usize, m: usize) -> f64 {
        match self {
            Self::Exact => 0.0,
            Self::Sign { baseline_exact: true } => least_sign_p(m),
            Self::Sign { baseline_exact: false } => least_sign_p(n),
            Self::Ranks => least_p(n, m),
        }
    }
}

/// Compares `other` with `baseline` by all metrics.
pub fn compare(baseline: &Run, other: &Run) -> Comparison {
    compare_by(baseline, other, &[])
}

/// Compares `other` with `baseline` by these metrics, of which the first decides; by all where none is
/// named.
pub fn compare_by(baseline: &Run, other: &Run, metrics: &[String]) -> Comparison {
    let test = Test::of(baseline, other);
    let own = || primary_metric(&baseline.header.experiment).map(str::to_owned);
    let primary = metrics.first().cloned().or_else(own);
    let mut lines = Vec::new();
    let mut directions = Vec::new();
    let wanted = |name: &String| metrics.is_empty() || metrics.contains(name);
    for (name, unit, better) in metrics_of_both(baseline, other).into_iter().filter(|(name, ..)| wanted(name))
    {
        let (a, b) = (baseline.values(&name), other.values(&name));
        let (Some(of_a), Some(of_b)) = (median(&a), median(&b)) else { continue };
        let mut line = Line {
            change: (of_a != 0.0).then(|| of_b / of_a - 1.0),
            interval: None,
            medians: (of_a, of_b),
            name,
            unit,
            baseline: a,
            other: b,
            p: None,
            detectable: None,
            verdict: Verdict::NoDifference,
        };
        line.interval = test.interval(&line);
        line.p = test.p(&line);
        lines.push(line);
        directions.push(better);
    }
    let is_primary = |line: &Line| primary.as_deref() == Some(line.name.as_str());
    let others: Vec<f64> = lines.iter().filter(|line| !is_primary(line)).filter_map(|line| line.p).collect();
    let mut corrected = holm(&others).into_iter();
    for (line, better) in lines.iter_mut().zip(directions) {
        let tests = if is_primary(line) { 1 } else { others.len().max(1) };
        if !is_primary(line) {
            line.p = line.p.and_then(|_| corrected.next());
        }
        line.verdict = verdict(line, better, test, tests);
        line.detectable = match line.verdict {
            Verdict::Inconclusive(_) => None,
            _ => detectable(line, test, tests),
        };
    }
    let side = |run: &Run| Side {
        run: run.header.name.clone(),
        target: run.header.target.brief(),
        n: run.done().count(),
    };
    Comparison {
        baseline: side(baseline),
        other: side(other),
        exact: test == Test::Exact,
        primary,
        caveats: caveats(baseline, other, &lines, test),
        tables: changed_rows(baseline, other),
        lines,
    }
}

/// The unit in which a run has a metric.
fn unit_of(run: &Run, name: &str) -> Option<Unit> {
    run.done().flat_map(|r| &r.observations.metrics).find(|metric| metric.name == name).map(|m| m.unit)
}

/// The metrics that both runs measured in the same unit, in the baseline's order.
fn metrics_of_both(baseline: &Run, other: &Run) -> Vec<(String, Unit, Better)> {
    let mut list: Vec<(String, Unit, Better)> = Vec::new();
    for metric in baseline.done().flat_map(|r| &r.observations.metrics) {
        let known = list.iter().any(|(name, ..)| *name == metric.name);
        if !known
            && unit_of(other, &metric.name) == Some(metric.unit)
            && !other.values(&metric.name).is_empty()
            && !baseline.values(&metric.name).is_empty()
        {
            list.push((metric.name.clone(), metric.unit, metric.better));
        }
    }
    list
}

/// The smallest change that the test would find with a power of 80 %: the normal approximation for the
/// logarithm of the ratio of two medians, with the efficiency of the test (3/π of a rank test, 2/π of the
/// sign test), at Holm's strictest level. The same whichever side is the baseline. As a factor above 1.
fn detectable(line: &Line, test: Test, tests: usize) -> Option<f64> {
    use std::f64::consts::PI;

    use statrs::distribution::{ContinuousCDF, Normal};
    line.p?;
    // The variance of a side's median on a logarithmic scale; nothing of an exact side.
    let variance = |values: &[f64], exact: bool| match exact {
        true => Some(0.0),
        false if values.len() < 3 || values.iter().any(|&v| v <= 0.0) => None,
        false => {
            let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
            Some(deviation(&logs)?.powi(2) / values.len() as f64)
        }
    };
    let (exact, efficiency) = match test {
        Test::Exact => return None,
        Test::Ranks => ((false, false), PI / 3.0),
        Test::Sign { baseline_exact } => ((baseline_exact, !baseline_exact), PI / 2.0),
    };
    let both = variance(&line.baseline, exact.0)? + variance(&line.other, exact.1)?;
    let normal = Normal::standard();
    let reach = normal.inverse_cdf(1.0 - ALPHA / tests as f64 / 2.0) + normal.inverse_cdf(0.8);
    Some((reach * (efficiency * both).sqrt()).exp())
}

fn verdict(line: &Line, better: Better, test: Test, tests: usize) -> Verdict {
    let changed = |change: f64| match better {
        Better::Neither => Verdict::Changed,
        Better::Lower if change < 0.0 => Verdict::Better,
        Better::Higher if change > 0.0 => Verdict::Better,
        _ => Verdict::Worse,
    };
    let difference = line.medians.1 - line.medians.0;
    if test == Test::Exact {
        return if difference == 0.0 { Verdict::Equal } else { changed(difference) };
    }
    let Some(p) = line.p else {
        return match line.change {
            Some(change) if change.abs() >= REPEATED => changed(change),
            None if difference != 0.0 => changed(difference),
            _ => Verdict::NoDifference,
        };
    };
    if difference == 0.0 || line.change.is_some_and(|change| change.abs() < NOTHING) {
        return Verdict::NoDifference;
    }
    let level = ALPHA / tests as f64;
    if test.least_p(line.baseline.len(), line.other.len()) >= level {
        let needed = (2..).find(|&n| test.least_p(n, n) < level).unwrap_or(usize::MAX);
        return Verdict::Inconclusive(needed);
    }
    if p >= ALPHA {
        return Verdict::NoDifference;
    }
    match (line.change, line.interval) {
        (Some(change), Some((low, high))) if change.abs() >= PRACTICAL && (low > 0.0 || high < 0.0) => {
            changed(change)
        }
        // From nothing to something: there is no share of 0.
        (None, _) => changed(difference),
        _ => Verdict::NoDifference,
    }
}

/// The environment's entries that must agree for a comparison to be about the setting alone.
const SAME: &[&str] = &["page.size", "cpu.model", "cpu.count", "memory.total", "clock.source", "guest.qemu"];

/// Entries that must agree unless the user asked for the difference, with the word that the name of a condition
/// which asks for it contains. A kernel chooses them itself, by its version and by how much memory it finds.
const SAME_UNLESS_ASKED: &[(&str, &str)] =
    &[("thp.enabled", "thp"), ("mglru.enabled", "lru_gen"), ("swap.compressor", "comp_algorithm")];

/// A share of stolen time from here on spoils a run.
const STEAL: f64 = 0.02;

fn caveats(baseline: &Run, other: &Run, lines: &[Line], test: Test) -> Vec<Caveat> {
    let mut list = Vec::new();
    if baseline.header.experiment != other.header.experiment {
        let text = |run: &Run| run.header.experiment.to_string();
        list.push(Caveat::Experiments(text(baseline), text(other)));
    }
    let units = |run: &Run| unit_of(run, "time.elapsed");
    if let (Some(a), Some(b)) = (units(baseline), units(other))
        && a != b
    {
        list.push(Caveat::Units);
    }
    let asked = |word: &str| {
        let conditions = [baseline, other].into_iter().flat_map(|run| &run.header.conditions);
        conditions.filter(|c| c.origin == Origin::Asked).any(|c| c.name.contains(word))
    };
    let unasked = SAME_UNLESS_ASKED.iter().filter(|(_, word)| !asked(word)).map(|(key, _)| key);
    for key in SAME.iter().chain(unasked) {
        let of = |run: &Run| run.done().find_map(|r| r.observations.environment.get(*key).cloned());
        if let (Some(a), Some(b)) = (of(baseline), of(other))
            && a != b
        {
            list.push(Caveat::Environment(key, a, b));
        }
    }
    // What a deterministic run sees does not depend on when it was performed.
    if test == Test::Ranks && baseline.header.batch != other.header.batch {
        list.push(Caveat::NotInterleaved);
    }
    for run in [baseline, other] {
        let entry = |key: &str| {
            run.done()
                .filter_map(move |r| r.observations.environment.get(key)?.parse::<f64>().ok())
                .fold(f64::NAN, f64::max)
        };
        let (steal, load, processors) = (entry("steal.share"), entry("load.1min"), entry("cpu.count"));
        let name = &run.header.name;
        let clock = run.done().find_map(|r| r.observations.environment.get("clock.verdict"));
        if let Some(reason) = clock.and_then(|word| word.strip_prefix("suspect: ")) {
            list.push(Caveat::Clock(name.clone(), reason.to_owned()));
        }
        if steal > STEAL {
            list.push(Caveat::Steal(name.clone(), steal));
        }
        if load > processors {
            list.push(Caveat::Busy(name.clone(), load, processors));
        }
    }
    for line in lines {
        for (name, values) in [(&baseline.header.name, &line.baseline), (&other.header.name, &line.other)] {
            // One test among many: stricter than 5 %.
            if line.name == "time.elapsed" && drift(values).is_some_and(|(_, p)| p < 0.01) {
                list.push(Caveat::Drift(name.clone(), line.name.clone()));
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::observation::{Metric, Observations};
    use pagelab_experiment::{Experiment, Outcome, Repetition, RunHeader, Setting, TargetSpec};
    use pagelab_reference::rng::Rng;

    fn run(name: &str, metrics: &[(&str, Better, Vec<f64>)]) -> Run {
        let repetitions = (0..metrics[0].2.len()).map(|n| Repetition {
            number: n as u32 + 1,
            started: String::new(),
            outcome: Outcome::Done,
            observations: Observations {
                metrics: metrics
                    .iter()
                    .map(|(name, better, values)| Metric {
                        name: (*name).into(),
                        unit: Unit::Count,
                        better: *better,
                        value: Some(values[n]),
                    })
                    .collect(),
                ..Observations::default()
            },
        });
        Run {
            id: 1,
            header: RunHeader {
                name: name.into(),
                batch: "b".into(),
                experiment: Experiment::Mapanon(Default::default()),
                target: TargetSpec::host(),
                setting: Setting::default(),
                conditions: Vec::new(),
                deterministic: false,
                started: String::new(),
                pagelab: String::new(),
            },
            repetitions: repetitions.collect(),
        }
    }

    fn noisy(seed: u64, n: usize, level: f64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..n).map(|_| level * (1.0 + 0.05 * (0..6).map(|_| rng.unit() - 0.5).sum::<f64>())).collect()
    }

    fn one(better: Better, a: Vec<f64>, b: Vec<f64>) -> Line {
        compare(&run("a", &[("m", better, a)]), &run("b", &[("m", better, b)])).lines.remove(0)
    }

    #[test]
    fn instructions_are_not_compared_with_nanoseconds() {
        let in_unit = |unit| {
            let mut run =
                run("a", &[("time.elapsed", Better::Lower, vec![1.0]), ("m", Better::Lower, vec![2.0])]);
            run.repetitions[0].observations.metrics[0].unit = unit;
            run
        };
        let compared = compare(&in_unit(Unit::Instructions), &in_unit(Unit::Nanoseconds));
        assert_eq!(compared.lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["m"]);
        assert!(compared.caveats.contains(&Caveat::Units));
        assert_eq!(compare(&in_unit(Unit::Nanoseconds), &in_unit(Unit::Nanoseconds)).lines.len(), 2);
    }

    #[test]
    fn a_real_change_has_its_direction() {
        let (a, b) = (noisy(1, 10, 100.0), noisy(2, 10, 130.0));
        assert_eq!(one(Better::Lower, a.clone(), b.clone()).verdict, Verdict::Worse);
        assert_eq!(one(Better::Higher, a.clone(), b.clone()).verdict, Verdict::Better);
        assert_eq!(one(Better::Neither, a.clone(), b.clone()).verdict, Verdict::Changed);
        let line = one(Better::Lower, b, a);
        assert_eq!(line.verdict, Verdict::Better);
        let (low, high) = line.interval.unwrap();
        assert!(low < line.change.unwrap() && line.change.unwrap() < high && high < 0.0);
    }

    #[test]
    fn too_few_repetitions_say_how_many_could() {
        let line = one(Better::Lower, noisy(1, 3, 100.0), noisy(2, 3, 200.0));
        assert_eq!(line.verdict, Verdict::Inconclusive(4));
        assert_eq!(line.detectable, None, "no change at all can be detected");
        assert_eq!(one(Better::Lower, vec![100.0], vec![150.0]).verdict, Verdict::Inconclusive(4));
    }

    #[test]
    fn sides_that_repeat_themselves_need_no_test() {
        let line = one(Better::Lower, vec![4647.6, 4647.6], vec![4680.0, 4680.1]);
        assert_eq!((line.verdict, line.p), (Verdict::Worse, None));
        assert_eq!(one(Better::Lower, vec![4647.6; 2], vec![4650.0; 2]).verdict, Verdict::NoDifference);
        assert_eq!(one(Better::Lower, vec![0.0; 2], vec![0.0; 2]).verdict, Verdict::NoDifference);
        assert_eq!(one(Better::Lower, vec![0.0; 2], vec![7.0; 2]).verdict, Verdict::Worse);
    }

    #[test]
    fn a_regression_beyond_the_limit_is_found_and_one_within_is_not() {
        const BOTH: [&str; 2] = ["slow", "same"];
        let comparison = compare(
            &run(
                "a",
                &[("slow", Better::Lower, noisy(1, 10, 100.0)), ("same", Better::Lower, noisy(2, 10, 50.0))],
            ),
            &run(
                "b",
                &[("slow", Better::Lower, noisy(3, 10, 125.0)), ("same", Better::Lower, noisy(4, 10, 50.0))],
            ),
        );
        assert_eq!(
            comparison.worse_by(10.0, &BOTH).iter().map(|l| l.name.as_str()).collect::<Vec<_>>(),
            ["slow"]
        );
        assert!(comparison.worse_by(60.0, &BOTH).is_empty());
        assert!(comparison.worse_by(10.0, &["same"]).is_empty(), "another metric decides");
    }

    /// A against A, 400 times with five metrics: fewer than one in twenty may raise any alarm.
    #[test]
    fn false_alarms_are_rarer_than_one_in_twenty() {
        let side = |seed: u64| {
            let metrics: Vec<_> = ["a", "b", "c", "d", "e"]
                .iter()
                .enumerate()
                .map(|(n, name)| (*name, Better::Lower, noisy(seed * 10 + n as u64, 8, 100.0)))
                .collect();
            run("x", &metrics)
        };
        let alarms = (0..400)
            .filter(|&i| {
                let comparison = compare(&side(2 * i + 1), &side(2 * i + 2));
                comparison.lines.iter().any(|l| !matches!(l.verdict, Verdict::NoDifference))
            })
            .count();
        assert!(alarms <= 20, "{alarms} of 400");
    }

    #[test]
    fn differences_that_spoil_are_named() {
        let a = run("a", &[("m", Better::Lower, noisy(1, 6, 1.0))]);
        let mut b = run("b", &[("m", Better::Lower, noisy(2, 6, 1.0))]);
        b.header.batch = "other".into();
        for r in &mut b.repetitions {
            r.observations.environment.insert("steal.share".into(), "0.08".into());
            r.observations.environment.insert("page.size".into(), "16384".into());
            r.observations.environment.insert("thp.enabled".into(), "always".into());
        }
        let mut a = a;
        a.repetitions[0].observations.environment.insert("thp.enabled".into(), "never".into());
        a.repetitions[0].observations.environment.insert("page.size".into(), "4096".into());
        let caveats = compare(&a, &b).caveats;
        for wanted in [
            Caveat::Environment("page.size", "4096".into(), "16384".into()),
            Caveat::Environment("thp.enabled", "never".into(), "always".into()),
            Caveat::NotInterleaved,
            Caveat::Steal("b".into(), 0.08),
        ] {
            assert!(caveats.contains(&wanted), "{wanted:?}: {caveats:?}");
        }
    }

    fn modelled(mut run: Run) -> Run {
        run.header.target = "model:lru".parse().unwrap();
        run.header.deterministic = true;
        run
    }

    #[test]
    fn deterministic_runs_differ_exactly() {
        let of = |value: f64| modelled(run("m", &[("m", Better::Lower, vec![value])]));
        let compared = compare(&of(1000.0), &of(1001.0));
        let line = &compared.lines[0];
        assert!(compared.exact);
        assert_eq!(
            (line.p, line.interval, line.detectable, line.verdict),
            (None, None, None, Verdict::Worse)
        );
        assert_eq!(compared.repetitions_needed(), None);
        assert_eq!(compare(&of(7.0), &of(7.0)).lines[0].verdict, Verdict::Equal);
        let mut later = of(7.0);
        later.header.batch = "later".into();
        assert_eq!(compare(&of(7.0), &later).caveats, []);
    }

    #[test]
    fn a_deterministic_side_is_one_figure_however_often_it_was_performed() {
        let host = |n| run("host", &[("m", Better::Lower, noisy(1, n, 200.0))]);
        let model = |n| modelled(run("model", &[("m", Better::Lower, vec![100.0; n])]));
        for repeated in [1, 8] {
            let line = compare(&host(8), &model(repeated)).lines.remove(0);
            assert_eq!(line.verdict, Verdict::Better);
            assert!((line.p.unwrap() - 2.0 / 256.0).abs() < 1e-12, "{line:?}");
        }
        assert_eq!(compare(&host(3), &model(8)).lines[0].verdict, Verdict::Inconclusive(6));
        assert_eq!(compare(&model(8), &host(8)).lines[0].verdict, Verdict::Worse);
    }

    #[test]
    fn what_can_be_detected_is_the_same_either_way_round() {
        let (a, b) = (noisy(1, 8, 100.0), noisy(2, 12, 300.0));
        let there = one(Better::Lower, a.clone(), b.clone()).detectable.unwrap();
        let back = one(Better::Lower, b.clone(), a.clone()).detectable.unwrap();
        assert!((there - back).abs() < 1e-12 && there > 1.0, "{there} {back}");
        // Noise of either side counts, and a side of which half is alike is not without noise.
        let loud: Vec<f64> = b.iter().map(|v| 300.0 + 3.0 * (v - 300.0)).collect();
        assert!(one(Better::Lower, a.clone(), loud).detectable.unwrap() > there);
        let tied = vec![100.0, 100.0, 100.0, 100.0, 100.0, 150.0, 50.0];
        assert!(one(Better::Lower, tied.clone(), tied).detectable.unwrap() > 1.1);
    }

    #[test]
    fn no_change_is_never_inconclusive() {
        let line = one(Better::Lower, vec![100.0, 90.0, 110.0], vec![100.04, 95.0, 104.0]);
        assert_eq!(line.verdict, Verdict::NoDifference);
        assert!(matches!(one(Better::Lower, vec![100.0], vec![101.0]).verdict, Verdict::Inconclusive(_)));
    }

    #[test]
    fn the_primary_metric_is_tested_by_itself() {
        let side = |name: &str, level: f64| {
            let metrics: Vec<_> = ["access.mean", "b", "c", "d", "e", "f"]
                .iter()
                .enumerate()
                .map(|(n, name)| (*name, Better::Lower, noisy(n as u64, 4, level)))
                .collect();
            run(name, &metrics)
        };
        let compared = compare(&side("a", 100.0), &side("b", 200.0));
        assert_eq!(compared.main().unwrap().verdict, Verdict::Worse);
        assert_eq!(compared.line("b").unwrap().verdict, Verdict::Inconclusive(5));
    }
}
