//! Miss ratio curves: their knees, and how far each is from the optimum.

use pagelab_experiment::ColumnId;
use pagelab_experiment::observation::Table;
use pagelab_experiment::tables::curve;
use serde::Serialize;

use crate::knee;

/// A knee is told where the curve falls at least so many times as steeply before it as behind it.
const STEEPER: f64 = 2.0;
/// Knees looked for, at most.
const MOST: usize = 3;
/// The smallest change of the miss ratio that makes a knee.
const EFFECT: f64 = 0.01;

/// A size beyond which more memory helps much less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurveKnee {
    /// Bytes of memory.
    pub size: f64,
    /// The miss ratio there.
    pub ratio: f64,
}

/// The knees of a table `curve`: where the broken stick through the miss ratio against the logarithm of memory falls
/// less than half as steeply as before.
pub fn knees(table: &Table) -> Vec<CurveKnee> {
    let (Some(sizes), Some(ratios)) = (table.numbers(curve::SIZE), table.numbers(curve::RATIO)) else {
        return Vec::new();
    };
    let points: Vec<(f64, f64)> = sizes
        .iter()
        .zip(ratios)
        .filter_map(|(size, ratio)| Some((size.filter(|&size| size > 0.0)?.log2(), (*ratio)?)))
        .collect();
    let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    let Some(fit) = knee::knees(&x, &y, MOST, EFFECT) else { return Vec::new() };
    let flattens = |knee: &&knee::Knee| {
        let (before, after) = knee.slopes;
        before < 0.0 && -before >= STEEPER * (-after).max(0.0)
    };
    let told = |knee: &knee::Knee| CurveKnee { size: knee.at.exp2(), ratio: fit.at(knee.at).clamp(0.0, 1.0) };
    fit.knees.iter().filter(flattens).map(told).collect()
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

    #[test]
    fn a_knee_is_where_the_curve_flattens_and_not_where_it_steepens() {
        let falls = |at: usize| {
            move |n: usize| {
                (f64::from(1 << n), if n < at { 1.0 - 0.1 * n as f64 } else { 1.0 - 0.1 * at as f64 })
            }
        };
        let points: Vec<_> = (0..12).map(falls(6)).collect();
        let found = knees(&table(&points));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            (found[0].size / 4096.0 - 64.0).abs() < 1.0 && (found[0].ratio - 0.4).abs() < 0.01,
            "{found:?}"
        );
        let drops: Vec<_> = (0..12)
            .map(|n| (f64::from(1 << n), if n < 8 { 1.0 } else { 1.0 - 0.2 * (n - 8) as f64 }))
            .collect();
        assert_eq!(knees(&table(&drops)), [], "it steepens at 2^8, and never flattens");
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
