//! The knees of `vmtest`: where they are, and what is there.
//!
//! The curve is the time of a read against the active virtual memory, both as logarithms, so that a
//! knee is where the cost begins to grow (or to level off) in proportion. [`crate::knee`] finds the
//! knees and their intervals; each is then named by what the machine has there:
//!
//! - a TLB's reach, entries × page size; or that of a modelled Sun-4's pmegs;
//! - the size of a first- or second-level cache: a read touches one line in each page, always at the
//!   same place in it, so only that part of the sets is used, and a cache holds as many such lines as
//!   it has pages' worth of bytes. A third-level cache spreads its lines over all sets by a hash, and
//!   holds one line for each of 64 times as many bytes (with pages of 4 KiB and lines of 64 bytes);
//! - the segment of one process, from which on there are several processes;
//! - the memory limit, where major faults begin with the knee.
//!
//! A name needs its size within the knee's interval, widened by one step of the sweep to either side
//! (a knee is not known better than the sweep looks), and the counters to agree: no major faults below
//! a hardware knee, major faults past the limit's. What nothing explains stays without a name.

use pagelab_experiment::environment;
use pagelab_experiment::experiments::Vmtest;
use pagelab_experiment::observation::{Observations, Table};
use pagelab_experiment::tables::vmtest;
use pagelab_experiment::{ColumnId, Run};

use serde::Serialize;

use crate::knee::{self, Fit};

/// Knees looked for, at most.
const MAX_KNEES: usize = 5;
/// The widest interval of a knee that is told, as a ratio of its ends: of one that may be anywhere within
/// more than three doublings nothing is known.
const WIDEST: f64 = 8.0;
/// The smallest change of the time of a read that makes a knee, as a ratio; and where the noise is
/// not known, with one repetition of few sizes.
const EFFECT: (f64, f64) = (1.1, 1.5);
/// From so many sizes on the fit's residuals tell the noise.
const MIN_SIZES_FOR_NOISE: usize = 8;
/// Major faults for each million reads from which on memory is said to be short: at some 50 µs a fault
/// and 5 ns a read they then take a tenth as long as the reads.
const FAULTING: f64 = 10.0;

/// Bytes of a cache line on every machine that has a third-level cache to speak of.
const LINE: f64 = 64.0;

/// What is at a knee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The reach of the first-level data TLB.
    FirstTlb,
    /// The reach of the second-level TLB.
    SecondTlb,
    /// The reach of a Sun-4's translation memory.
    Pmegs,
    /// The cache of this level.
    Cache(u8),
    /// From here on there are several processes.
    Processes,
    /// The memory limit.
    Limit,
}

/// A knee of the curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// Active virtual memory there, bytes.
    pub at: f64,
    /// The 95% interval, bytes.
    pub interval: (f64, f64),
    /// Growth of the time of a read for each doubling of memory, before and after: 1 = none, 2 = it
    /// doubles too.
    pub growth: (f64, f64),
    /// What is there, and at how many bytes; `None`: nothing known explains it.
    pub cause: Option<(Cause, f64)>,
}

/// The curve and its knees.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Active virtual memory in bytes, and the time of a read there in ns: the smallest of the
    /// repetitions, as Irlam gives it.
    pub points: Vec<(f64, f64)>,
    /// The broken stick through the points, at its ends and its knees, in the same units.
    pub fit: Vec<(f64, f64)>,
    /// The knees, ascending; `None`: too few sizes to look for any.
    pub knees: Option<Vec<Knee>>,
}

impl Curve {
    /// The first knee past which reads are dearer because memory is short.
    pub fn limit(&self) -> Option<&Knee> {
        self.knees.iter().flatten().find(|knee| matches!(knee.cause, Some((Cause::Limit, _))))
    }
}

/// The curve of a run of `vmtest`; `None` of another experiment or without sizes.
pub fn of_run(run: &Run) -> Option<Curve> {
    let parameters = run.header.experiment.parameters::<Vmtest>()?;
    let done: Vec<&Observations> = run
        .repetitions
        .iter()
        .filter(|r| r.outcome == pagelab_experiment::Outcome::Done)
        .map(|r| &r.observations)
        .collect();
    let first = done.first()?;
    let tables: Vec<&Table> = done.iter().filter_map(|seen| seen.table(vmtest::TABLE)).collect();
    let number = |name: &str| first.environment.get(name).and_then(|v| v.parse::<f64>().ok());
    let page = number(environment::PAGE_SIZE).unwrap_or(4096.0);
    // Models of large pages say what an entry is for; a machine's entries are those for base pages.
    let entry = number(environment::TLB_PAGE).unwrap_or(page);
    let geometry: Vec<(Cause, f64)> = [
        (Cause::FirstTlb, number(environment::TLB_L1D).map(|entries| entries * entry)),
        (Cause::SecondTlb, number(environment::TLB_L2).map(|entries| entries * entry)),
        (Cause::Pmegs, number(environment::PMEGS_REACH)),
        (Cause::Cache(1), number(environment::CACHE_L1D)),
        (Cause::Cache(2), number(environment::CACHE_L2)),
        (Cause::Cache(3), number(environment::CACHE_L3).map(|bytes| bytes / LINE * page)),
        (Cause::Processes, Some(parameters.process_size.bytes(page as u64) as f64)),
        (Cause::Limit, number(environment::MEMORY_LIMIT)),
    ]
    .into_iter()
    .filter_map(|(cause, at)| Some((cause, at?)))
    .collect();
    of_tables(&tables, &geometry)
}

/// The curve of the tables `vmtest` of several repetitions: what disturbs a run makes it slower.
fn of_tables(tables: &[&Table], geometry: &[(Cause, f64)]) -> Option<Curve> {
    let sizes = tables.first()?.numbers(vmtest::SIZE)?.to_vec();
    let across = |column: ColumnId, row: usize| -> Option<f64> {
        let values = tables.iter().filter_map(|t| *t.numbers(column)?.get(row)?);
        values.min_by(f64::total_cmp)
    };
    let rows: Vec<(f64, f64, f64)> = (0..sizes.len())
        .filter_map(|row| {
            let (size, time) = (sizes[row]?, across(vmtest::ACCESS_MEAN, row)?);
            let faulting = across(vmtest::FAULTS_MAJOR, row)? * 1e6 / across(vmtest::READS, row)?;
            (size > 0.0 && time > 0.0).then_some((size, time, faulting))
        })
        .collect();
    let x: Vec<f64> = rows.iter().map(|r| r.0.log2()).collect();
    let y: Vec<f64> = rows.iter().map(|r| r.1.log2()).collect();
    let points = rows.iter().map(|r| (r.0, r.1)).collect();
    rows.first()?;
    let effect = match noise(tables) {
        Some(noise) => EFFECT.0.log2().max(2.0 * noise),
        None if rows.len() < MIN_SIZES_FOR_NOISE => EFFECT.1.log2(),
        None => EFFECT.0.log2(),
    };
    let Some(fit) = knee::knees(&x, &y, MAX_KNEES, effect) else {
        return Some(Curve { points, fit: Vec::new(), knees: None });
    };
    let known = fit.knees.iter().filter(|found| found.interval.1 - found.interval.0 <= WIDEST.log2());
    let mut knees: Vec<Knee> = known.map(|found| named(found, &fit, &rows, geometry)).collect();
    // A thing is at one knee: the nearest of those that it could explain.
    for (cause, at) in geometry {
        let distance = |knee: &Knee| (knee.at / at).log2().abs();
        let mut claiming: Vec<&mut Knee> =
            knees.iter_mut().filter(|k| k.cause.as_ref().is_some_and(|c| c.0 == *cause)).collect();
        claiming.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        claiming.into_iter().skip(1).for_each(|knee| knee.cause = None);
    }
    if let Some(short) = shortage(&rows, effect, geometry)
        && !knees.iter().any(|knee| (knee.at / short.at).log2().abs() <= 1.0)
    {
        knees.push(short);
        knees.sort_by(|a, b| a.at.total_cmp(&b.at));
        // The fit is of a line without this knee.
        return Some(Curve { points, fit: Vec::new(), knees: Some(knees) });
    }
    let ends = (x[0], x[x.len() - 1]);
    let corners = std::iter::once(ends.0).chain(fit.knees.iter().map(|k| k.at)).chain([ends.1]);
    let fit = corners.map(|at| (at.exp2(), fit.at(at).exp2())).collect();
    Some(Curve { points, fit, knees: Some(knees) })
}

/// The knee between the last size without major faults and the first with them, where all smaller sizes are without, all
/// greater ones with them and slower by `effect` (of logarithms to base 2): times beyond the memory scatter so much that
/// few sizes have no significant fit. Its interval is the step of the sweep.
fn shortage(rows: &[(f64, f64, f64)], effect: f64, geometry: &[(Cause, f64)]) -> Option<Knee> {
    let from = rows.iter().position(|row| row.2 >= FAULTING).filter(|from| *from > 0)?;
    let (before, after) = rows.split_at(from);
    let slowest = before.iter().map(|row| row.1).fold(0.0, f64::max);
    let fastest = after.iter().map(|row| row.1).fold(f64::INFINITY, f64::min);
    if after.iter().any(|row| row.2 < FAULTING) || (fastest / slowest).log2() < effect {
        return None;
    }
    let growth = |rows: &[(f64, f64, f64)]| {
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        if first.0 < last.0 { ((last.1 / first.1).log2() / (last.0 / first.0).log2()).exp2() } else { 1.0 }
    };
    let interval = (before[from - 1].0, after[0].0);
    let limit = geometry
        .iter()
        .find(|(cause, at)| *cause == Cause::Limit && (interval.0 / 2.0..=interval.1 * 2.0).contains(at));
    Some(Knee {
        at: (interval.0 * interval.1).sqrt(),
        interval,
        growth: (growth(before), growth(&rows[from - 1..])),
        cause: limit.cloned(),
    })
}

/// The standard deviation of the logarithm of a time of a read between repetitions: the median of
/// the sizes'.
fn noise(tables: &[&Table]) -> Option<f64> {
    let times: Vec<&[Option<f64>]> = tables.iter().filter_map(|t| t.numbers(vmtest::ACCESS_MEAN)).collect();
    let deviation = |row: usize| {
        let logs: Vec<f64> = times.iter().filter_map(|t| Some((*t.get(row)?)?.log2())).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        (n >= 2.0).then(|| (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
    };
    let mut all: Vec<f64> = (0..times.first()?.len()).filter_map(deviation).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

fn named(found: &knee::Knee, fit: &Fit, rows: &[(f64, f64, f64)], geometry: &[(Cause, f64)]) -> Knee {
    // The step of the sweep about the knee.
    let above = rows.partition_point(|r| r.0.log2() <= found.at).clamp(1, rows.len() - 1);
    let step = rows[above].0.log2() - rows[above - 1].0.log2();
    let (low, high) = (found.interval.0 - step, found.interval.1 + step);
    let next = fit.knees.iter().map(|k| k.at).find(|&at| at > found.at).unwrap_or(f64::INFINITY);
    let faulting_before = rows.iter().filter(|r| r.0.log2() < found.at - step / 2.0).any(|r| r.2 >= FAULTING);
    let faulting_after = rows
        .iter()
        .filter(|r| r.0.log2() > found.at && r.0.log2() <= next.max(found.at + 2.0 * step))
        .any(|r| r.2 >= FAULTING);
    let dearer = found.slopes.1 > found.slopes.0;
    let fits = |cause: &Cause| match cause {
        Cause::Limit => dearer && faulting_after && !faulting_before,
        Cause::Processes => !faulting_after && !faulting_before,
        _ => dearer && !faulting_after && !faulting_before,
    };
    let near = geometry.iter().filter(|(cause, at)| (low..=high).contains(&at.log2()) && fits(cause));
    let cause = near.min_by(|a, b| (a.1.log2() - found.at).abs().total_cmp(&(b.1.log2() - found.at).abs()));
    Knee {
        at: found.at.exp2(),
        interval: (found.interval.0.exp2(), found.interval.1.exp2()),
        growth: (found.slopes.0.exp2(), found.slopes.1.exp2()),
        cause: cause.cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::observation::Values;

    /// A machine of known geometry: 2 ns in the first-level TLB's reach of 256 KiB, growing to a
    /// plateau, and a cliff past 64 MiB with major faults.
    fn table(limit: f64) -> Table {
        let sizes: Vec<f64> = (0..23).map(|n| 65536.0 * 2f64.powf(f64::from(n) / 2.0)).collect();
        let time = |size: f64| {
            let tlb: f64 = if size > 262_144.0 { (size / 262_144.0).log2().min(4.0) } else { 0.0 };
            let swap = if size > limit { 10.0 + 3.0 * (size / limit).log2() } else { 0.0 };
            (1.0 + tlb + swap).exp2()
        };
        let column = |column: ColumnId, values: Vec<f64>| column.of(values.into_iter().map(Some).collect());
        Table {
            name: vmtest::TABLE.name.into(),
            columns: vec![
                column(vmtest::SIZE, sizes.clone()),
                column(vmtest::ACCESS_MEAN, sizes.iter().map(|&s| time(s)).collect()),
                column(
                    vmtest::FAULTS_MAJOR,
                    sizes.iter().map(|&s| if s > limit { 500.0 } else { 0.0 }).collect(),
                ),
                column(vmtest::READS, vec![10_000.0; sizes.len()]),
            ],
        }
    }

    #[test]
    fn knees_are_named_by_what_is_there_or_not_at_all() {
        let limit = f64::from(60 << 20);
        let geometry =
            [(Cause::FirstTlb, 262_144.0), (Cause::Cache(2), f64::from(1 << 20)), (Cause::Limit, limit)];
        let curve = of_tables(&[&table(limit)], &geometry).unwrap();
        let knees = curve.knees.as_ref().unwrap();
        let named: Vec<&Cause> = knees.iter().filter_map(|k| k.cause.as_ref().map(|c| &c.0)).collect();
        assert_eq!(named, [&Cause::FirstTlb, &Cause::Limit], "{knees:#?}");
        let at = curve.limit().unwrap();
        assert!((at.at / limit).log2().abs() < 0.6, "{at:?}");
        // The plateau's beginning at 4 MiB is a knee without a cause.
        assert!(knees.iter().any(|k| k.cause.is_none() && (k.at / f64::from(4 << 20)).log2().abs() < 0.5));
        let unknown = of_tables(&[&table(limit)], &[]).unwrap();
        assert!(unknown.knees.unwrap().iter().all(|k| k.cause.is_none()));
    }

    /// A table of these sizes in MiB and times in ns.
    fn short(points: &[(f64, f64)]) -> Table {
        let mut table = table(1e12);
        for (column, value) in table.columns.iter_mut().zip([
            &(|p: &(f64, f64)| p.0 * 1048576.0) as &dyn Fn(&(f64, f64)) -> f64,
            &|p| p.1,
            &|p| if p.1 > 100.0 { 500.0 } else { 0.0 },
            &|_| 10_000.0,
        ]) {
            column.values = Values::Number(points.iter().map(|p| Some(value(p))).collect());
        }
        table
    }

    #[test]
    fn few_sizes_have_a_knee_where_the_time_jumps_and_a_flat_curve_none() {
        let jump = short(&[(4.0, 10.6), (8.0, 10.9), (16.0, 12.0), (24.0, 480.0), (32.0, 626.0)]);
        let curve = of_tables(&[&jump], &[(Cause::Limit, f64::from(16 << 20))]).unwrap();
        assert!(curve.limit().is_some(), "{curve:#?}");
        let pmegs = [(2.0, 1.13), (16.0, 1.13), (20.0, 24.0), (24.0, 28.5), (28.0, 31.7)];
        for points in [&pmegs[..], &pmegs[..4]] {
            let curve = of_tables(&[&short(points)], &[]).unwrap();
            assert!(!curve.knees.as_ref().unwrap().is_empty(), "{curve:#?}");
        }
        // Beyond the memory times scatter: faults say where it ends.
        let scattered = short(&[(4.0, 6.9), (8.0, 5.4), (16.0, 254.0), (24.0, 101.0), (32.0, 941.0)]);
        let curve = of_tables(&[&scattered], &[(Cause::Limit, f64::from(16 << 20))]).unwrap();
        let mib = f64::from(1 << 20);
        assert_eq!(curve.limit().unwrap().interval, (8.0 * mib, 16.0 * mib), "{curve:#?}");
        assert_eq!(curve.knees.as_ref().unwrap().len(), 1);
        let time = |n: usize| 1.13 - 0.01 * (n % 2) as f64;
        let flat: Vec<_> = (1..17).map(|n| (2.0 * n as f64, time(n))).collect();
        assert_eq!(of_tables(&[&short(&flat)], &[]).unwrap().knees, Some(Vec::new()));
        let few = of_tables(&[&short(&pmegs[..3])], &[]).unwrap();
        assert_eq!((few.points.len(), few.knees), (3, None), "three points tell nothing");
    }

    #[test]
    fn a_limit_without_faults_is_no_cause() {
        let mut quiet = table(f64::from(60 << 20));
        quiet.columns[2].values = Values::Number(vec![Some(0.0); 23]);
        let curve = of_tables(&[&quiet], &[(Cause::Limit, f64::from(60 << 20))]).unwrap();
        assert!(curve.limit().is_none());
    }
}
