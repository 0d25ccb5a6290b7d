//! Two runs against each other, metric by metric.
//!
//! The sample is a repetition. For each metric: both medians, the change with its 95% interval, the
//! p value, the minimum detectable change, and a verdict. Repetitions that were performed in turn
//! are tested in pairs, so that what slows both sides of a pair counts for neither; others by their
//! ranks ([`Test`]). A change counts only when p is below [`ALPHA`], the interval excludes 0, and
//! the change is at least [`PRACTICAL`]. No repetition is ever left out.
//!
//! The experiment's primary metric is named beforehand and tested by itself. Of the probability of
//! a false alarm in the others the few headline metrics have four fifths ([`HEADLINE`]), all the
//! rest one fifth; within each the p values are corrected by Holm's method for their number.
//!
//! Two deterministic runs are not a matter of statistics: their differences are exact. Beside one
//! deterministic run the other side is tested against its figure by the sign test. Where both sides
//! repeat themselves to four digits, there is nothing to test either: a difference of [`REPEATED`]
//! or more is a change; of machines that count instructions, any of [`COUNTED`] or more that is
//! more than what the repetitions of a side are apart. Where one of these has a single repetition,
//! which shows no spread, a difference counts from [`SINGLE`] on.

pub mod caveats;
pub mod detectable;
mod line;
mod test;
#[cfg(test)]
mod tests;

use pagelab_experiment::observation::{Better, Unit};
use pagelab_experiment::{MetricId, Run};

pub use self::caveats::Caveat;
use self::caveats::caveats;
use self::line::unit_of;
pub use self::line::{ALPHA, Line, PRACTICAL, SINGLE, Verdict, WOKEN};
pub use self::test::{REPEATS, Test};
use crate::rank::holm;
use crate::rows::{TableComparison, changed_rows};
use crate::stats::median;
use crate::{counts_instructions, deciding_metrics, headline_metrics, primary_metric};

/// The headline metrics' part of it among the metrics that are not primary.
pub const HEADLINE: f64 = 0.8;
/// Changes from this share on count between sides that repeat themselves, and do not count
/// instructions: there it may be by chance.
pub const REPEATED: f64 = 0.005;
/// The same between machines that count instructions: boots of one kernel that differ in nothing
/// that matters were seen 0.01% apart.
pub const COUNTED: f64 = 0.0005;
/// Changes below this share are none: they print as 0.0%.
pub const NOTHING: f64 = 0.0005;

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
    /// The metrics that decide: the first of those that were asked for, else those of the
    /// baseline's experiment ([`deciding_metrics`]).
    pub deciding: Vec<String>,
    /// The primary metric of the experiment, where it was not measured on both sides and another
    /// decides.
    pub not_measured: Option<String>,
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

    /// The first metric that decides.
    pub fn primary(&self) -> Option<&str> {
        self.deciding.first().map(String::as_str)
    }

    /// The line of the metric that decided, where both sides measured it: the first that differs,
    /// else the first.
    pub fn main(&self) -> Option<&Line> {
        let mut lines = self.deciding.iter().filter_map(|name| self.line(name));
        let differing = lines.clone().find(|line| line.verdict.differs());
        differing.or_else(|| lines.next())
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

    /// The metrics outside `judged` that became worse by more than `percent` of the baseline,
    /// beyond doubt, the largest change first.
    pub fn unjudged_worse_by(&self, percent: f64, judged: &[&str]) -> Vec<&Line> {
        let others: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        let others: Vec<&str> = others.into_iter().filter(|name| !judged.contains(name)).collect();
        let mut worse = self.worse_by(percent, &others);
        let size = |line: &Line| line.change.map_or(f64::INFINITY, f64::abs);
        worse.sort_by(|a, b| size(b).total_cmp(&size(a)));
        worse
    }

    /// Whether no metric has a verdict, because a side that is not deterministic has too few
    /// repetitions for a test.
    pub fn untested(&self) -> bool {
        let untested = self.lines.iter().all(|line| line.interval.is_none() && !line.verdict.differs());
        !self.exact && untested && !self.of_single_counts() && self.repetitions_needed().is_some()
    }

    /// Whether a side that counts instructions has but one repetition, so that changes are held
    /// against [`SINGLE`].
    pub fn of_single_counts(&self) -> bool {
        self.lines.iter().any(|line| line.test == Test::Counts)
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

/// Compares `other` with `baseline` by all metrics.
pub fn compare(baseline: &Run, other: &Run) -> Comparison {
    compare_by(baseline, other, &[])
}

/// Compares every other run with the first by the primary and the headline metrics of its
/// experiment, whose p values are corrected together, so that all of them may decide.
pub fn headlines_against_first(runs: &[&Run]) -> Vec<Comparison> {
    let [first, others @ ..] = runs else { return Vec::new() };
    let experiment = &first.header.experiment;
    let names = primary_metric(experiment).into_iter().chain(headline_metrics(experiment).iter().copied());
    let names: Vec<String> = names.map(|metric| metric.name.to_owned()).collect();
    others.iter().map(|other| compare_in(first, other, &names, true)).collect()
}

/// Compares `other` with `baseline` by these metrics, of which the first decides; by all where none
/// is named.
pub fn compare_by(baseline: &Run, other: &Run, metrics: &[String]) -> Comparison {
    compare_in(baseline, other, metrics, false)
}

/// `together`: the p values of all metrics are corrected for their number, the primary one's
/// included.
fn compare_in(baseline: &Run, other: &Run, metrics: &[String], together: bool) -> Comparison {
    let test = Test::of(baseline, other, in_pairs(baseline, other));
    let of_both = metrics_of_both(baseline, other);
    let measured = |metric: MetricId| of_both.iter().any(|(name, ..)| metric == **name);
    let name = |metric: MetricId| metric.name.to_owned();
    let (deciding, not_measured) = match metrics.first() {
        Some(asked) => (vec![asked.clone()], None),
        None => {
            let (deciding, missing) = deciding_metrics(&baseline.header.experiment, measured);
            (deciding.into_iter().map(name).collect(), missing.map(name))
        }
    };
    let headline = headline_metrics(&baseline.header.experiment);
    let counted = counts_instructions(baseline) && counts_instructions(other);
    let family = |name: &str| match () {
        () if together => Family::Headline,
        () if deciding.iter().any(|deciding| deciding == name) => Family::Primary,
        () if headline.iter().any(|metric| metric == name) => Family::Headline,
        () => Family::Rest,
    };
    let wanted = |name: &String| metrics.is_empty() || metrics.contains(name);
    let shared = of_both.into_iter().filter(|(name, ..)| wanted(name));
    let mut lines: Vec<(Family, Better, Line)> = Vec::new();
    for (name, unit, better) in shared {
        let (a, b) = (baseline.values_named(&name), other.values_named(&name));
        let (Some(of_a), Some(of_b)) = (median(&a), median(&b)) else { continue };
        let line = Line {
            change: None,
            interval: None,
            test,
            medians: (of_a, of_b),
            name,
            unit,
            baseline: a,
            other: b,
            p: None,
            detectable: None,
            verdict: Verdict::NoDifference,
        };
        lines.push((family(&line.name), better, line));
    }
    let both =
        [Family::Headline, Family::Rest].iter().all(|of| lines.iter().any(|(family, ..)| family == of));
    for of in [Family::Primary, Family::Headline, Family::Rest] {
        let part = if both { of.part() } else { 1.0 };
        let mut members: Vec<_> = lines.iter_mut().filter(|(family, ..)| *family == of).collect();
        let varying = members.iter().filter(|(.., line)| test.p(line).is_some()).count();
        let level = ALPHA * part / varying.max(1) as f64;
        for (_, _, line) in &mut members {
            line.test = match line.test {
                Test::Pairs if line.baseline.len() != line.other.len() => Test::Ranks,
                test => test.at(line.baseline.len(), level),
            };
            if counted {
                line.test = line.test.of_counts(line);
            }
            line.p = line.test.p(line);
            (line.change, line.interval) = line.test.change(line);
        }
        let mut corrected =
            holm(&members.iter().filter_map(|(.., line)| line.p).collect::<Vec<_>>()).into_iter();
        for (_, better, line) in members {
            line.p = line.p.and_then(|_| corrected.next()).map(|p| (p / part).min(1.0));
            let floor = if counted { line.spread().max(COUNTED) } else { REPEATED };
            line.verdict = verdict(line, *better, level, floor);
            line.detectable = match line.verdict {
                Verdict::Inconclusive(_) => None,
                _ => detectable::factor(line, line.test, level),
            };
        }
    }
    let lines: Vec<Line> = lines.into_iter().map(|(.., line)| line).collect();
    let side = |run: &Run| Side {
        run: run.header.name.clone(),
        target: run.header.target.brief(),
        n: run.done().count(),
    };
    Comparison {
        baseline: side(baseline),
        other: side(other),
        exact: test == Test::Exact,
        deciding,
        not_measured,
        caveats: caveats(baseline, other, &lines, test),
        tables: changed_rows(baseline, other),
        lines,
    }
}

/// The change from `before` to `after` as a share, and its 95% interval, for values that were not
/// measured in pairs.
pub(crate) fn shift(before: &[f64], after: &[f64]) -> (Option<f64>, Option<(f64, f64)>) {
    let (Some(of_before), Some(of_after)) = (median(before), median(after)) else { return (None, None) };
    let line = Line {
        name: String::new(),
        unit: Unit::Count,
        baseline: before.to_vec(),
        other: after.to_vec(),
        medians: (of_before, of_after),
        change: None,
        interval: None,
        test: Test::Ranks,
        p: None,
        detectable: None,
        verdict: Verdict::NoDifference,
    };
    line.test.change(&line)
}

/// Metrics that are corrected together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Primary,
    Headline,
    Rest,
}

impl Family {
    /// Its part of the probability of a false alarm, where both headline metrics and others are
    /// compared.
    fn part(self) -> f64 {
        match self {
            Self::Primary => 1.0,
            Self::Headline => HEADLINE,
            Self::Rest => 1.0 - HEADLINE,
        }
    }
}

/// Whether each repetition of one run was performed in turn with that of the same number of the
/// other.
fn in_pairs(baseline: &Run, other: &Run) -> bool {
    let numbers = |run: &Run| run.done().map(|repetition| repetition.number).collect::<Vec<_>>();
    baseline.header.batch == other.header.batch && numbers(baseline) == numbers(other)
}

/// The metrics that both runs measured in the same unit, in the baseline's order.
fn metrics_of_both(baseline: &Run, other: &Run) -> Vec<(String, Unit, Better)> {
    let mut list: Vec<(String, Unit, Better)> = Vec::new();
    for metric in baseline.done().flat_map(|r| &r.observations.metrics) {
        let known = list.iter().any(|(name, ..)| *name == metric.name);
        if !known
            && unit_of(other, &metric.name) == Some(metric.unit)
            && !other.values_named(&metric.name).is_empty()
            && !baseline.values_named(&metric.name).is_empty()
        {
            list.push((metric.name.clone(), metric.unit, metric.better));
        }
    }
    list
}

/// `floor`: the share of the baseline that counts as a change where there is nothing to test.
fn verdict(line: &Line, better: Better, level: f64, floor: f64) -> Verdict {
    let changed = |change: f64| match better {
        Better::Neither => Verdict::Changed,
        Better::Lower if change < 0.0 => Verdict::Better,
        Better::Higher if change > 0.0 => Verdict::Better,
        _ => Verdict::Worse,
    };
    let difference = line.medians.1 - line.medians.0;
    let test = line.test;
    if test == Test::Exact {
        return if difference == 0.0 { Verdict::Equal } else { changed(difference) };
    }
    if test == Test::Counts {
        return if line.is_within_boots() { Verdict::WithinBoots } else { changed(difference) };
    }
    let Some(p) = line.p else {
        return match line.change {
            Some(change) if change.abs() >= floor => changed(change),
            None if difference != 0.0 => changed(difference),
            _ => Verdict::NoDifference,
        };
    };
    if difference == 0.0 || line.change.is_some_and(|change| change.abs() < NOTHING) {
        return Verdict::NoDifference;
    }
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
