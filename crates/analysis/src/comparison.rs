//! Two runs against each other, metric by metric.
//!
//! The sample is a repetition. For each metric: both medians, the change of the median with a 95 %
//! bootstrap interval, the Mann-Whitney p value corrected by Holm's method for the number of metrics,
//! the smallest change that the repetitions could have shown, and a verdict. A change counts only when
//! the corrected p is below [`ALPHA`], the interval excludes 0, and the change is at least
//! [`PRACTICAL`]. No repetition is ever left out.
//!
//! Where both sides repeat themselves to four digits (instruction counts, models), there is nothing to
//! test: a difference of [`DETERMINISTIC`] or more is a change.

use pagelab_experiment::Run;
use pagelab_experiment::observation::{Better, Unit};

use crate::rank::{holm, least_p, mann_whitney};
use crate::stats::{change_interval, drift, median, robust_deviation};

/// The probability of a false alarm over all metrics together.
pub const ALPHA: f64 = 0.05;
/// Changes below this share of the baseline are of no practical interest.
pub const PRACTICAL: f64 = 0.01;
/// Changes from this share on count between sides that repeat themselves.
pub const DETERMINISTIC: f64 = 0.005;

/// What became of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It changed for the better.
    Better,
    /// It changed for the worse.
    Worse,
    /// It changed; neither direction is better.
    Changed,
    /// No difference was seen.
    NoDifference,
    /// So few repetitions cannot show any difference; this many on each side could.
    TooFew(usize),
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Changed => "changed",
            Self::NoDifference => "no difference seen",
            Self::TooFew(_) => "too few repetitions to say",
        }
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
    /// Its 95 % interval; `None` with fewer than two repetitions on a side.
    pub interval: Option<(f64, f64)>,
    /// The corrected p value; `None` between sides that repeat themselves.
    pub p: Option<f64>,
    /// The smallest change, as a share, that would have been seen four times in five.
    pub visible: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The baseline's name and the other's.
    pub names: (String, String),
    /// The metrics that both have.
    pub lines: Vec<Line>,
    /// What spoils the comparison, in sentences.
    pub warnings: Vec<String>,
}

impl Comparison {
    /// The metrics that became worse by more than `percent` of the baseline.
    pub fn worse_by(&self, percent: f64) -> Vec<&Line> {
        let beyond = |line: &&Line| {
            line.verdict == Verdict::Worse && line.change.is_none_or(|change| change.abs() * 100.0 > percent)
        };
        self.lines.iter().filter(beyond).collect()
    }
}

/// Whether the values agree to four significant digits.
fn repeats_itself(values: &[f64]) -> bool {
    let Some(middle) = median(values) else { return false };
    values.len() >= 2 && values.iter().all(|v| (v - middle).abs() <= middle.abs() * 0.5e-3)
}

/// Compares `other` with `baseline`.
pub fn compare(baseline: &Run, other: &Run) -> Comparison {
    let mut lines = Vec::new();
    let mut raw = Vec::new();
    for (name, unit, better) in metrics_of_both(baseline, other) {
        let (a, b) = (baseline.values(&name), other.values(&name));
        let (Some(of_a), Some(of_b)) = (median(&a), median(&b)) else { continue };
        let deterministic = repeats_itself(&a) && repeats_itself(&b);
        let p = if deterministic { None } else { mann_whitney(&a, &b) };
        raw.push((better, p));
        lines.push(Line {
            change: (of_a != 0.0).then(|| of_b / of_a - 1.0),
            interval: change_interval(&a, &b, 1),
            medians: (of_a, of_b),
            name,
            unit,
            baseline: a,
            other: b,
            p,
            visible: None,
            verdict: Verdict::NoDifference,
        });
    }
    let tested: Vec<f64> = raw.iter().filter_map(|&(_, p)| p).collect();
    let mut corrected = holm(&tested).into_iter();
    for (line, (better, p)) in lines.iter_mut().zip(raw) {
        line.p = p.and_then(|_| corrected.next());
        line.visible = visible(line, tested.len());
        line.verdict = verdict(line, better, tested.len());
    }
    let names = (baseline.header.name.clone(), other.header.name.clone());
    let warnings = warnings(baseline, other, &lines);
    Comparison { names, lines, warnings }
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

/// The smallest change that the test would have found with a power of 80 %: the normal approximation
/// for two medians, with the efficiency 3/π of a rank test, at Holm's strictest level. An estimate; it
/// says whether «no difference seen» means much.
fn visible(line: &Line, tests: usize) -> Option<f64> {
    use statrs::distribution::{ContinuousCDF, Normal};
    let (n, m) = (line.baseline.len() as f64, line.other.len() as f64);
    if line.p.is_none() || n < 3.0 || m < 3.0 || line.medians.0 == 0.0 {
        return None;
    }
    let (a, b) = (robust_deviation(&line.baseline)?, robust_deviation(&line.other)?);
    let deviation = ((a * a + b * b) / 2.0).sqrt();
    let normal = Normal::standard();
    let reach = normal.inverse_cdf(1.0 - ALPHA / tests.max(1) as f64 / 2.0) + normal.inverse_cdf(0.8);
    let efficiency = std::f64::consts::PI / 3.0;
    Some(reach * deviation * (efficiency * (1.0 / n + 1.0 / m)).sqrt() / line.medians.0.abs())
}

fn verdict(line: &Line, better: Better, tests: usize) -> Verdict {
    let changed = |change: f64| match better {
        Better::Neither => Verdict::Changed,
        Better::Lower if change < 0.0 => Verdict::Better,
        Better::Higher if change > 0.0 => Verdict::Better,
        _ => Verdict::Worse,
    };
    let difference = line.medians.1 - line.medians.0;
    let Some(p) = line.p else {
        return match line.change {
            Some(change) if change.abs() >= DETERMINISTIC => changed(change),
            None if difference != 0.0 => changed(difference),
            _ => Verdict::NoDifference,
        };
    };
    let (n, m) = (line.baseline.len(), line.other.len());
    let level = ALPHA / tests.max(1) as f64;
    if least_p(n, m) >= level {
        let needed = (2..).find(|&n| least_p(n, n) < level).unwrap_or(usize::MAX);
        return Verdict::TooFew(needed);
    }
    if p >= ALPHA {
        return Verdict::NoDifference;
    }
    match (line.change, line.interval) {
        (Some(change), Some((low, high))) if change.abs() >= PRACTICAL && (low > 0.0 || high < 0.0) => {
            changed(change)
        }
        // From nothing to something: there is no share of 0.
        (None, _) if difference != 0.0 => changed(difference),
        _ => Verdict::NoDifference,
    }
}

/// The environment's entries that must agree for a comparison to be about the setting alone.
const SAME: &[(&str, &str)] = &[
    ("page.size", "page sizes"),
    ("cpu.model", "processors"),
    ("cpu.count", "numbers of processors"),
    ("memory.total", "memories"),
    ("clock.source", "clocks"),
];

/// A share of stolen time from here on spoils a run.
const STEAL: f64 = 0.02;

fn warnings(baseline: &Run, other: &Run, lines: &[Line]) -> Vec<String> {
    let mut list = Vec::new();
    if baseline.header.experiment != other.header.experiment {
        list.push(format!(
            "the experiments differ: {} against {}",
            baseline.header.experiment, other.header.experiment
        ));
    }
    let units = |run: &Run| unit_of(run, "time.elapsed");
    if let (Some(a), Some(b)) = (units(baseline), units(other))
        && a != b
    {
        list.push("one side has its times in instructions: they are left out".to_owned());
    }
    for (key, what) in SAME {
        let of = |run: &Run| run.done().find_map(|r| r.observations.environment.get(*key).cloned());
        if let (Some(a), Some(b)) = (of(baseline), of(other))
            && a != b
        {
            list.push(format!("the {what} differ: {a} against {b}"));
        }
    }
    if baseline.header.batch != other.header.batch {
        list.push(
            "the runs were not interleaved: whatever changed on the machine between them counts as well (run both sides in one command with --on)".to_owned(),
        );
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
            list.push(format!("{name}: {reason}"));
        }
        if steal > STEAL {
            list.push(format!(
                "{name}: up to {:.1} % of the processors' time was stolen by other guests",
                steal * 100.0
            ));
        }
        if load > processors {
            list.push(format!(
                "{name}: the machine was busy when it began (load {load:.1} on {processors:.0} processors)"
            ));
        }
    }
    for line in lines {
        for (name, values) in [(&baseline.header.name, &line.baseline), (&other.header.name, &line.other)] {
            // One test among many: stricter than 5 %.
            if line.name == "time.elapsed" && drift(values).is_some_and(|(_, p)| p < 0.01) {
                list.push(format!("{name}: {} drifts over the repetitions", line.name));
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
        assert!(compared.warnings.iter().any(|text| text.contains("instructions")));
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
        assert_eq!(line.verdict, Verdict::TooFew(4));
        assert_eq!(line.verdict.words(), "too few repetitions to say");
        assert_eq!(one(Better::Lower, vec![100.0], vec![150.0]).verdict, Verdict::TooFew(4));
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
        assert_eq!(comparison.worse_by(10.0).iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), ["slow"]);
        assert!(comparison.worse_by(60.0).is_empty());
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
        }
        let mut a = a;
        a.repetitions[0].observations.environment.insert("page.size".into(), "4096".into());
        let warnings = compare(&a, &b).warnings.join("\n");
        for wanted in ["page sizes differ", "not interleaved", "8.0 % of the processors"] {
            assert!(warnings.contains(wanted), "{warnings}");
        }
    }
}
