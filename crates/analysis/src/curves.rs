//! Miss ratio curves: the memory beyond which misses cost little, their knees, and how far each is from the optimum.

use pagelab_experiment::ColumnId;
use pagelab_experiment::experiments::Curve;
use pagelab_experiment::observation::Table;
use pagelab_experiment::tables::curve;
use pagelab_model::paging::Costs;
use serde::Serialize;

use crate::knee;

/// A knee is told where the curve falls at least so many times as steeply before it as behind it.
const STEEPER: f64 = 2.0;
/// Knees looked for, at most.
const MAX_KNEES: usize = 3;
/// The share of the program's time that misses may take without being worth more memory.
pub const BEARABLE: f64 = 0.01;
/// Misses that take a greater share of the program's time are too many, whatever their number; and a knee where they
/// take half of that is no size to choose.
pub const USELESS: f64 = 1.0;
/// The smallest change that makes a knee, as a power of two: 19 % of what misses cost.
const EFFECT: f64 = 0.25;

/// What is known of the program that a curve is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Program {
    /// References of its stream.
    pub references: u64,
    /// Different pages, of which each is missed once whatever the memory is.
    pub pages: u64,
    /// What a miss costs, ns.
    pub miss: f64,
    /// Run time without misses in ns; NaN if unknown.
    pub time: f64,
}

impl Program {
    /// What `about` tells of it. Where the cost of a miss is not known it is that of a major fault on a machine of
    /// today ([`Costs::TODAY`]); where the time is not, each reference takes 1 ns, as it does for models of `command`.
    /// The number of references in a recording through a window does not estimate the time.
    pub fn of(about: &Curve) -> Self {
        let Costs { major, seek, transfer, .. } = Costs::TODAY;
        Self {
            references: about.references,
            pages: about.pages,
            miss: about.miss_cost.unwrap_or((major + seek + transfer) as f64),
            time: about.program_time.unwrap_or(match about.through_window {
                true => f64::NAN,
                false => about.references as f64,
            }),
        }
    }

    /// Misses per second of its time that more memory would avoid, at this miss ratio.
    pub fn misses_per_second(&self, ratio: f64) -> f64 {
        (ratio * self.references as f64 - self.pages as f64).max(0.0) / self.time * 1e9
    }

    /// The misses per second that are borne: they take [`BEARABLE`] of its time.
    pub fn bearable(&self) -> f64 {
        BEARABLE / self.miss * 1e9
    }

    /// The share of its time that misses take at this miss ratio; 1: as much again.
    pub fn cost(&self, ratio: f64) -> f64 {
        self.misses_per_second(ratio) * self.miss / 1e9
    }

    /// The smallest memory of a table `curve`, bytes, from which on misses are bearable; `None` where they never are,
    /// or the references are not known.
    pub fn enough(&self, table: &Table) -> Option<f64> {
        let mut points = points(table);
        points.sort_by(|one, other| other.0.total_cmp(&one.0));
        let bears = |point: &&(f64, f64)| self.misses_per_second(point.1) <= self.bearable();
        points.iter().take_while(bears).last().filter(|_| self.is_known()).map(|point| point.0)
    }

    /// Whether its run time is known or estimated.
    pub fn is_timed(&self) -> bool {
        self.time.is_finite()
    }

    fn is_known(&self) -> bool {
        self.references > 0 && self.miss > 0.0 && self.time > 0.0
    }
}

/// A size beyond which more memory helps much less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurveKnee {
    /// Bytes of memory.
    pub size: f64,
    /// The share of the program's time that misses take there.
    pub cost: f64,
}

/// Memory in bytes and the miss ratio, where both are known.
fn points(table: &Table) -> Vec<(f64, f64)> {
    let (Some(sizes), Some(ratios)) = (table.numbers(curve::SIZE), table.numbers(curve::RATIO)) else {
        return Vec::new();
    };
    let known = sizes.iter().zip(ratios);
    known.filter_map(|(size, ratio)| Some((size.filter(|&size| size > 0.0)?, (*ratio)?))).collect()
}

/// The knees of a table `curve`: where the broken stick through the logarithm of what misses cost, against that of
/// memory, falls less than half as steeply as before. Costs below [`BEARABLE`] are alike, and so are those above [`USELESS`], so
/// nothing there is a knee.
pub fn knees(table: &Table, program: &Program) -> Vec<CurveKnee> {
    if !program.is_known() {
        return Vec::new();
    }
    let of = |(size, ratio): (f64, f64)| {
        let cost = program.cost(ratio).min(USELESS);
        (size.log2(), (1.0 + cost / BEARABLE).log2())
    };
    let (x, y): (Vec<f64>, Vec<f64>) = points(table).into_iter().map(of).unzip();
    let Some(fit) = knee::knees(&x, &y, MAX_KNEES, EFFECT) else { return Vec::new() };
    let flattens = |knee: &&knee::Knee| {
        let (before, after) = knee.slopes;
        before < 0.0 && -before >= STEEPER * (-after).max(0.0)
    };
    let told = |knee: &knee::Knee| CurveKnee {
        size: knee.at.exp2(),
        cost: (BEARABLE * (fit.at(knee.at).exp2() - 1.0)).max(0.0),
    };
    fit.knees.iter().filter(flattens).map(told).filter(|knee| knee.cost < USELESS / 2.0).collect()
}

/// Whether a policy of this name is the offline optimum.
pub fn is_optimum(name: &str) -> bool {
    name == "opt"
}

/// How many more misses, as a share of the optimum's, a curve has at each of its sizes; none where the optimum was not
/// computed at that size.
pub fn beyond(one: &Table, optimum: &Table) -> Vec<Option<f64>> {
    let numbers = |table: &Table, column: ColumnId| table.numbers(column).unwrap_or_default().to_vec();
    let (its_sizes, its) = (numbers(optimum, curve::FRAMES), numbers(optimum, curve::MISSES));
    let of = |frames: Option<f64>| {
        let row = its_sizes.iter().position(|&size| size.is_some() && size == frames)?;
        its.get(row).copied().flatten().filter(|&misses| misses > 0.0)
    };
    let gap = |(frames, misses): (Option<f64>, Option<f64>)| Some(misses? / of(frames)? - 1.0);
    numbers(one, curve::FRAMES).into_iter().zip(numbers(one, curve::MISSES)).map(gap).collect()
}

/// The names without their parameters where that tells them apart.
pub fn short_names(names: &[&str]) -> Vec<String> {
    let base = |name: &str| name.split([':', ',']).next().unwrap_or_default().to_owned();
    let several = |short: &str| names.iter().filter(|name| base(name) == short).count() > 1;
    names
        .iter()
        .map(|name| Some(base(name)).filter(|short| !several(short)).unwrap_or((*name).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(points: &[(f64, f64)]) -> Table {
        let column = |column: ColumnId, of: &dyn Fn(&(f64, f64)) -> f64| {
            column.of(points.iter().map(|point| Some(of(point))).collect())
        };
        Table {
            name: curve::TABLE.name.to_owned(),
            columns: vec![
                column(curve::SIZE, &|p| p.0 * 4096.0),
                column(curve::FRAMES, &|p| p.0),
                column(curve::MISSES, &|p| p.1 * 1000.0),
                column(curve::RATIO, &|p| p.1),
            ],
        }
    }

    /// 100 million references in a tenth of a second, to no page more than once for free: a miss costs 80 µs.
    const PROGRAM: Program = Program { references: 100_000_000, pages: 0, miss: 80_000.0, time: 1e8 };

    #[test]
    fn a_recording_through_a_window_has_no_knee_and_no_need_without_a_program_time() {
        let table = table(&[(1.0, 0.9), (2.0, 0.8), (4.0, 0.5), (8.0, 0.01), (16.0, 0.01)]);
        let about = Curve { references: 1000, pages: 10, through_window: true, ..Curve::default() };
        let program = Program::of(&about);
        assert!(
            !program.is_timed() && program.enough(&table).is_none() && knees(&table, &program).is_empty()
        );
        let timed = Program::of(&Curve { program_time: Some(1e9), ..about });
        assert!(timed.is_timed() && timed.enough(&table).is_some());
    }

    #[test]
    fn a_knee_is_where_the_cost_flattens_and_not_where_it_steepens() {
        // From 64 times the program's time a factor of two for each doubling, until 2^10 pages.
        let ratio = |cost: f64| cost * PROGRAM.time / PROGRAM.miss / PROGRAM.references as f64;
        let falls = |n: i32| (f64::from(1 << n), ratio(64.0 * 0.5f64.powi(n.min(10))));
        let points: Vec<_> = (0..18).map(falls).collect();
        let found = knees(&table(&points), &PROGRAM);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((900.0..1150.0).contains(&(found[0].size / 4096.0)), "{found:?}");
        assert!((found[0].cost - 0.0625).abs() < 0.02, "{found:?}");
        let drops = |n: i32| (f64::from(1 << n), ratio(0.9 * 0.25f64.powi((n - 8).max(0))));
        let drops: Vec<_> = (0..12).map(drops).collect();
        assert_eq!(knees(&table(&drops), &PROGRAM), [], "it steepens at 2^8, and never flattens");
    }

    #[test]
    fn knees_far_below_the_memory_that_suffices_are_not_named() {
        // A program of 40 MiB whose inner loops fit in 29 and 96 KiB, and whose misses then still
        // cost eight times its own time until all of it fits.
        let sizes = (0..28).map(|n| 1.6f64.powi(n).ceil());
        let ratio = |pages: f64| match pages * 4.0 {
            kib if kib < 29.0 => 0.3,
            kib if kib < 96.0 => 0.05,
            kib if kib < 40_960.0 => 1e-4,
            _ => 0.0,
        };
        let points: Vec<_> = sizes.map(|pages| (pages, ratio(pages))).collect();
        let table = table(&points);
        let found = knees(&table, &PROGRAM);
        assert!(found.iter().all(|knee| knee.size > 20.0 * 1024.0 * 1024.0), "{found:?}");
        assert!(!found.is_empty());
        let first = points.iter().find(|point| point.1 == 0.0).unwrap();
        assert_eq!(PROGRAM.enough(&table), Some(first.0 * 4096.0));
        // A miss that costs nothing to speak of needs no memory, and a program of unknown length tells none.
        assert_eq!(Program { miss: 1e-3, ..PROGRAM }.enough(&table), Some(4096.0));
        assert_eq!(Program { references: 0, ..PROGRAM }.enough(&table), None);
        assert_eq!(knees(&table, &Program { time: 0.0, ..PROGRAM }), []);
    }

    #[test]
    fn first_references_are_no_misses_that_memory_avoids() {
        let program = Program { pages: 1000, ..PROGRAM };
        assert!(program.misses_per_second(1e-5) < 1e-6);
        assert!((program.misses_per_second(3e-5) - 20_000.0).abs() < 1e-6);
        assert!((program.bearable() - 125.0).abs() < 1e-9);
        assert!((program.cost(3e-5) - 1.6).abs() < 1e-9);
    }

    #[test]
    fn the_gap_is_the_optimums_at_the_same_size() {
        let (lru, opt) = (table(&[(1.0, 0.9), (2.0, 0.6), (3.0, 0.5)]), table(&[(1.0, 0.9), (2.0, 0.4)]));
        let gaps = beyond(&lru, &opt);
        assert_eq!((gaps[0], gaps[2]), (Some(0.0), None));
        assert!((gaps[1].unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn parameters_are_told_where_two_policies_differ_in_them() {
        assert_eq!(short_names(&["s3-fifo:small=0.1,ghost=0.9", "lru"]), ["s3-fifo", "lru"]);
        assert_eq!(short_names(&["2q:kin=0.1", "2q:kin=0.2"]), ["2q:kin=0.1", "2q:kin=0.2"]);
    }
}
