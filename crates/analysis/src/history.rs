//! A metric over revisions: runs of one experiment under the same conditions in the order of their
//! dates, kernels or revisions, and where the metric steps from one level to another.

use std::collections::{BTreeSet, HashMap};

use pagelab_experiment::build::estimate;
use pagelab_experiment::observation::{Better, Unit};
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{MetricId, Run, environment};

use crate::change_points::{MAX_POINTS, MIN_POINTS, change_points};
use crate::comparison::{COUNTED, PRACTICAL, SINGLE, shift};
use crate::stats::median;
use crate::{counts_instructions, deciding_metrics, headline_metrics};

/// What a point of a series is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// One run.
    #[default]
    Date,
    /// The runs on one release of the kernel, in the order of its numbers.
    Kernel,
    /// The runs of one revision, in the order of the first run of each.
    Revision,
}

/// A point of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The kernel's release or the revision; of a run by itself its name.
    pub label: String,
    /// The names of its runs.
    pub runs: Vec<String>,
    /// When the first of them began: RFC 3339, UTC.
    pub started: String,
}

/// A metric at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The median of all repetitions.
    pub median: f64,
    /// Its 95% interval; `None` below six repetitions.
    pub interval: Option<(f64, f64)>,
    /// The repetitions.
    pub n: usize,
}

/// A step from one level to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The index of the first point on the new level.
    pub at: usize,
    /// The medians of the points on the level before and on the new one.
    pub medians: (f64, f64),
    /// The change as a share of the level before; `None` of a level of 0.
    pub change: Option<f64>,
    /// Its 95% interval, where there are enough points.
    pub interval: Option<(f64, f64)>,
    /// Whether it is for the worse; `None` of a metric of which neither direction is better.
    pub worse: Option<bool>,
}

/// A metric over the points.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// A value for each point, where it was measured in this unit.
    pub values: Vec<Option<Value>>,
    /// The steps, the earliest first.
    pub steps: Vec<Step>,
}

/// Runs of one experiment under the same conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The experiment, target and conditions.
    pub name: String,
    /// The CPU, where it is part of the conditions.
    pub machine: Option<String>,
    /// The points.
    pub points: Vec<Point>,
    /// The metrics, the one that decides first.
    pub tracks: Vec<Track>,
    /// Whether every figure is exact, so that points differ by what changed and nothing else.
    pub exact: bool,
}

impl Series {
    /// The other metrics that have a step within one point of this one, with that step.
    pub fn with(&self, step: &Step) -> Vec<(&Track, &Step)> {
        let near = |track: &Track| track.steps.iter().position(|other| other.at.abs_diff(step.at) <= 1);
        let others = self.tracks.iter().skip(1);
        others.filter_map(|track| Some((track, &track.steps[near(track)?]))).collect()
    }

    /// Whether there are too few points for a step to be found.
    pub fn is_short(&self) -> bool {
        !self.exact && self.points.len() < MIN_POINTS
    }
}

/// Groups runs into series, in the order first seen. `only` selects the metrics, of which the first
/// decides; if it is empty, the deciding and headline metrics of the experiment are followed. Runs
/// without a complete repetition or without a value for `by` are left out.
pub fn series(runs: &[Run], by: By, only: &[String]) -> Vec<Series> {
    groups(runs, by).into_iter().map(|group| group.series(by, only)).collect()
}

/// The runs of a series whose change points are not computed yet.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    name: String,
    machine: Option<String>,
    runs: Vec<&'a Run>,
}

impl Group<'_> {
    /// The number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Computes the series; see [`series`].
    pub fn series(self, by: By, only: &[String]) -> Series {
        one(self.name, self.machine, self.runs, by, only)
    }
}

/// Groups the runs that have a complete repetition and a value for `by` into series, in the order
/// first seen.
pub fn groups(runs: &[Run], by: By) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<(String, Option<String>), usize> = HashMap::new();
    for run in runs.iter().filter(|run| run.done().next().is_some() && key(run, by).is_some()) {
        let place =
            *places.entry((run.header.series(), machine(run))).or_insert_with_key(|(name, machine)| {
                groups.push(Group { name: name.clone(), machine: machine.clone(), runs: Vec::new() });
                groups.len() - 1
            });
        groups[place].runs.push(run);
    }
    groups
}

fn one(name: String, machine: Option<String>, mut runs: Vec<&Run>, by: By, only: &[String]) -> Series {
    runs.sort_by(|a, b| a.header.started.cmp(&b.header.started));
    let mut points: Vec<(String, Vec<&Run>)> = Vec::new();
    for run in runs {
        let Some(key) = key(run, by) else { continue };
        match points.iter_mut().find(|(known, _)| *known == key && by != By::Date) {
            Some((_, members)) => members.push(run),
            None => points.push((key, vec![run])),
        }
    }
    if by == By::Kernel {
        points.sort_by_key(|(release, _)| numbers(release));
    }
    points.drain(..points.len().saturating_sub(MAX_POINTS));
    let exact = points.iter().flat_map(|(_, runs)| runs).all(|run| run.header.deterministic);
    let counted = points.iter().flat_map(|(_, runs)| runs).all(|run| counts_instructions(run));
    let tracks =
        wanted(&points, only).into_iter().filter_map(|metric| track(&metric, &points, exact, counted));
    Series {
        name,
        machine,
        tracks: tracks.collect(),
        exact: exact || counted,
        points: points
            .into_iter()
            .map(|(label, runs)| Point {
                label,
                started: runs[0].header.started.clone(),
                runs: runs.iter().map(|run| run.header.name.clone()).collect(),
            })
            .collect(),
    }
}

/// The point that a run belongs to; `None` if its environment has no such entry.
fn key(run: &Run, by: By) -> Option<String> {
    let fact = |key: &str| run.done().find_map(|r| r.observations.environment.get(key)).cloned();
    match by {
        By::Date => Some(run.header.name.clone()),
        By::Kernel => fact(environment::KERNEL_RELEASE),
        By::Revision => fact(environment::REVISION),
    }
}

/// The CPU of runs whose figures depend on it.
fn machine(run: &Run) -> Option<String> {
    let fact = |key: &str| run.done().find_map(|r| r.observations.environment.get(key));
    if counts_instructions(run) || matches!(run.header.target.kind, TargetKind::Model(_)) {
        return None;
    }
    let model = fact(environment::CPU_MODEL)?;
    Some(fact(environment::CPU_COUNT).map_or_else(|| model.clone(), |count| format!("{count} × {model}")))
}

/// A version's numbers in order, so that 6.12 is after 6.1.
fn numbers(release: &str) -> (Vec<u64>, String) {
    let digits = release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    (digits.collect(), release.to_owned())
}

/// The metrics to follow, the one that decides first.
fn wanted(points: &[(String, Vec<&Run>)], only: &[String]) -> Vec<String> {
    if !only.is_empty() {
        return only.to_vec();
    }
    let runs = || points.iter().flat_map(|(_, runs)| runs);
    let Some(first) = runs().next() else { return Vec::new() };
    let experiment = &first.header.experiment;
    let measured = |metric: MetricId| runs().any(|run| !run.values(metric).is_empty());
    let (deciding, _) = deciding_metrics(experiment, measured);
    let all = deciding.into_iter().chain(headline_metrics(experiment).iter().copied());
    let mut known = BTreeSet::new();
    all.filter(|metric| known.insert(metric.name)).map(|metric| metric.name.to_owned()).collect()
}

fn track(metric: &str, points: &[(String, Vec<&Run>)], exact: bool, counted: bool) -> Option<Track> {
    let newest = points.iter().rev().flat_map(|(_, runs)| runs.iter().rev());
    let figures = newest.flat_map(|run| run.done()).flat_map(|r| &r.observations.metrics);
    let (unit, better) = figures.filter(|m| m.name == metric).map(|m| (m.unit, m.better)).next()?;
    let value = |runs: &[&Run]| {
        let figures = runs.iter().flat_map(|run| run.done()).flat_map(|r| &r.observations.metrics);
        let of = figures.filter(|m| m.name == metric && m.unit == unit).filter_map(|m| m.value);
        let values: Vec<f64> = of.filter(|value| value.is_finite()).collect();
        let interval = estimate(&values).map(|estimate| (estimate.low, estimate.high));
        Some(Value { median: median(&values)?, interval, n: values.len() })
    };
    let values: Vec<Option<Value>> = points.iter().map(|(_, runs)| value(runs)).collect();
    let measured: Vec<usize> = (0..values.len()).filter(|&at| values[at].is_some()).collect();
    let medians: Vec<f64> = values.iter().flatten().map(|value| value.median).collect();
    let found = match (exact, counted) {
        (true, _) => levels(&medians, 0.0),
        (_, true) => levels(&medians, SINGLE),
        _ => change_points(&scaled(&medians)),
    };
    let floor = if exact {
        0.0
    } else if counted {
        COUNTED
    } else {
        PRACTICAL
    };
    let steps = steps(&medians, found, floor, better);
    let steps = steps.into_iter().map(|step| Step { at: measured[step.at], ..step }).collect();
    Some(Track { metric: metric.to_owned(), unit, better, values, steps })
}

/// Positive figures on a logarithmic scale, so that a step is a ratio.
fn scaled(values: &[f64]) -> Vec<f64> {
    if values.iter().all(|&value| value > 0.0) {
        values.iter().map(|value| value.ln()).collect()
    } else {
        values.to_vec()
    }
}

/// The places where exact figures change by more than `share`.
fn levels(values: &[f64], share: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut begin = 0;
    for at in 1..values.len() {
        let level = median(&values[begin..at]).unwrap_or_default();
        if (values[at] - level).abs() > share * level.abs() {
            found.push(at);
            begin = at;
        }
    }
    found
}

/// The steps at these places that are larger than `floor`. Removing a step joins two levels and
/// changes its neighbours, so the smallest goes first.
fn steps(values: &[f64], mut found: Vec<usize>, floor: f64, better: Better) -> Vec<Step> {
    loop {
        let ends: Vec<usize> =
            std::iter::once(0).chain(found.iter().copied()).chain([values.len()]).collect();
        let steps: Vec<Step> = ends
            .windows(3)
            .filter_map(|part| {
                let (before, after) = (&values[part[0]..part[1]], &values[part[1]..part[2]]);
                let medians = (median(before)?, median(after)?);
                let (change, interval) = shift(before, after);
                let grew = medians.1 > medians.0;
                let worse = match better {
                    Better::Neither => None,
                    Better::Lower => Some(grew),
                    Better::Higher => Some(!grew),
                };
                Some(Step { at: part[1], medians, change, interval, worse })
            })
            .collect();
        let size = |step: &Step| step.change.map_or(f64::INFINITY, f64::abs);
        let smallest = steps.iter().min_by(|a, b| size(a).total_cmp(&size(b)));
        match smallest {
            Some(step) if size(step) < floor => {
                let at = step.at;
                found.retain(|other| *other != at);
            }
            _ => return steps,
        }
    }
}

#[cfg(test)]
mod tests {
    use pagelab_experiment::Experiment;
    use pagelab_experiment::experiments::Command;
    use proptest::prelude::*;

    use super::*;
    use crate::test_runs::run;

    /// A run that began on this day, with this elapsed time and CPU time.
    fn dated(day: usize, facts: &[(&str, &str)], elapsed: &[f64], cpu: &[f64]) -> Run {
        let experiment = Experiment::Command(Command::new(vec!["sort".to_owned()]));
        let figures = [("time.elapsed", elapsed), ("time.cpu", cpu)];
        let mut run = run(&format!("day-{day}"), experiment, "host", &figures);
        run.header.started = format!("2026-{:02}-{:02}T00:00:00Z", 1 + day / 28, 1 + day % 28);
        for repetition in &mut run.repetitions {
            let facts = facts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            repetition.observations.environment.extend(facts);
        }
        run
    }

    fn wobble(day: usize) -> f64 {
        1.0 + 0.002 * ((day * 7919) % 11) as f64
    }

    /// Twenty days, the last eight of which take this much longer.
    fn stepped(by: f64) -> Vec<Run> {
        let time = |day: usize| wobble(day) * if day >= 12 { 1.0 + by } else { 1.0 };
        let days = 0..20;
        days.map(|day| dated(day, &[], &[time(day) * 1e9, time(day) * 1.001e9], &[time(day) * 9e8; 2]))
            .collect()
    }

    #[test]
    fn a_step_has_its_place_size_and_company() {
        let mut runs = stepped(0.05);
        runs.reverse();
        let [series] = series(&runs, By::Date, &[]).try_into().unwrap();
        assert_eq!(
            series.points.iter().map(|point| point.label.as_str()).take(2).collect::<Vec<_>>(),
            ["day-0", "day-1"]
        );
        let [step] = series.tracks[0].steps.as_slice() else { panic!("{:?}", series.tracks[0].steps) };
        assert_eq!((step.at, step.worse), (12, Some(true)));
        let (change, (low, high)) = (step.change.unwrap(), step.interval.unwrap());
        assert!(low < 0.05 && 0.05 < high && (change - 0.05).abs() < 0.01, "{change} {low} {high}");
        let with = series.with(step);
        assert_eq!(with.iter().map(|(track, _)| track.metric.as_str()).collect::<Vec<_>>(), ["time.cpu"]);
    }

    #[test]
    fn steps_below_what_matters_are_none() {
        let [series] = series(&stepped(0.0), By::Date, &[]).try_into().unwrap();
        assert_eq!(series.tracks[0].steps, []);
        let steps =
            steps(&[1.0, 1.0, 1.0, 1.005, 1.005, 1.005, 1.2, 1.2, 1.2], vec![3, 6], 0.01, Better::Lower);
        assert_eq!(steps.iter().map(|step| step.at).collect::<Vec<_>>(), [6]);
        assert_eq!(steps[0].medians, (1.0025, 1.2));
    }

    #[test]
    fn kernels_are_in_the_order_of_their_numbers_and_revisions_in_that_of_time() {
        let of = |day, release, revision| {
            dated(day, &[("kernel.release", release), ("revision", revision)], &[1e9], &[1e9])
        };
        let runs = [of(0, "6.12.1", "b"), of(1, "6.1.9", "a"), of(2, "6.12.1", "a"), of(3, "6.2.0-rc1", "c")];
        let labels = |by| {
            let [series] = series(&runs, by, &[]).try_into().unwrap();
            series.points.into_iter().map(|point| (point.label, point.runs.len())).collect::<Vec<_>>()
        };
        let named =
            |all: &[(&str, usize)]| all.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(labels(By::Kernel), named(&[("6.1.9", 1), ("6.2.0-rc1", 1), ("6.12.1", 2)]));
        assert_eq!(labels(By::Revision), named(&[("b", 1), ("a", 2), ("c", 1)]));
        let unknown = [dated(0, &[], &[1.0], &[1.0])];
        assert_eq!(series(&unknown, By::Revision, &[]), []);
    }

    #[test]
    fn other_machines_and_conditions_are_other_series() {
        let fast = dated(0, &[("cpu.model", "fast"), ("cpu.count", "2")], &[1.0], &[1.0]);
        let slow = dated(1, &[("cpu.model", "slow"), ("cpu.count", "2")], &[1.0], &[1.0]);
        let mut limited = slow.clone();
        limited.header.setting.apply("memory", "64M").unwrap();
        let all = series(&[fast, slow, limited], By::Date, &[]);
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].machine.as_deref(), Some("2 × fast"));
        assert!(all[0].is_short());
    }

    #[test]
    fn exact_figures_step_by_any_difference_and_counts_by_more_than_boots_do() {
        assert_eq!(levels(&[5.0, 5.0, 6.0, 6.0, 5.0], 0.0), [2, 4]);
        assert_eq!(levels(&[100.0, 100.2, 101.0, 101.1], SINGLE), [2]);
    }

    proptest! {
        #[test]
        fn every_step_parts_two_levels(values in proptest::collection::vec(0.5..2.0f64, 0..40)) {
            let found = change_points(&values);
            let steps = steps(&values, found.clone(), PRACTICAL, Better::Lower);
            prop_assert!(steps.len() <= found.len());
            prop_assert!(steps.windows(2).all(|two| two[0].at < two[1].at));
            prop_assert!(steps.iter().all(|step| 0 < step.at && step.at < values.len()));
        }
    }
}
