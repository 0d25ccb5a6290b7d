//! Where a series of figures steps from one level to another.
//!
//! E-divisive with permutation tests (Matteson and James, "A nonparametric approach for multiple
//! change point analysis of multivariate data", Journal of the American Statistical Association
//! 109, 2014), with the exponent 1. MongoDB and Apache Otava watch their benchmarks with it. A
//! split maximises the energy distance of its sides; it counts if few permutations of the segment
//! reach the same.
//!
//! The test assumes that the figures of one level are exchangeable. A machine whose speed drifts
//! violates this: the drift is reported as steps.

use pagelab_reference::rng::Rng;

/// The fewest figures on each side of a step: one or two outliers are no level.
const MIN_SIDE: usize = 3;
/// The probability of a false step in a series that has none.
const LEVEL: f64 = 0.02;
/// The fewest figures in which a step can be found: with fewer, more than 2% of all permutations
/// separate two levels just as well.
pub const MIN_POINTS: usize = 9;
/// The permutations of a segment.
const PERMUTATIONS: usize = 499;
/// The most figures: the newest of more are looked at.
pub const MAX_POINTS: usize = 1000;
/// Fixed, so that the same figures always give the same answer.
const SEED: u64 = 1;

/// The first index of each new level, ascending; empty with fewer than [`MIN_POINTS`] figures.
///
/// `values` are finite and in the order of measurement. Takes O(n²) time per permutation.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    let mut found = Vec::new();
    let newest = values.len().saturating_sub(MAX_POINTS)..values.len();
    let mut segments = vec![newest];
    let mut rng = Rng::new(SEED);
    while let Some(segment) = segments.pop() {
        let part = &values[segment.clone()];
        if let Some((at, divergence)) = split(part)
            && is_significant(part, divergence, &mut rng)
        {
            let at = segment.start + at;
            found.push(at);
            segments.extend([segment.start..at, at..segment.end]);
        }
    }
    found.sort_unstable();
    found
}

/// The split whose sides are farthest apart, and their scaled energy distance. The second side ends
/// where the distance is greatest, so that a level between two equal ones is seen.
fn split(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    if n < 2 * MIN_SIDE {
        return None;
    }
    // Sums of the distances between the first i and the first j figures.
    let width = n + 1;
    let mut sums = vec![0.0; width * width];
    for i in 0..n {
        let mut row = 0.0;
        for j in 0..n {
            row += (values[i] - values[j]).abs();
            sums[(i + 1) * width + j + 1] = sums[i * width + j + 1] + row;
        }
    }
    let sum = |i: usize, j: usize| sums[i * width + j];
    let pairs = |count: usize| (count * (count - 1)) as f64 / 2.0;
    let mut best: Option<(usize, f64)> = None;
    for at in MIN_SIDE..=n - MIN_SIDE {
        let left = sum(at, at) / 2.0 / pairs(at);
        for end in at + MIN_SIDE..=n {
            let right = (sum(end, end) - 2.0 * sum(at, end) + sum(at, at)) / 2.0 / pairs(end - at);
            let between = (sum(at, end) - sum(at, at)) / (at * (end - at)) as f64;
            let scale = (at * (end - at)) as f64 / end as f64;
            let scaled = scale * (2.0 * between - left - right);
            if best.is_none_or(|(_, most)| scaled > most) {
                best = Some((at, scaled));
            }
        }
    }
    best
}

/// Whether at most [`LEVEL`] of the permutations have a split as good as this.
fn is_significant(values: &[f64], divergence: f64, rng: &mut Rng) -> bool {
    let allowed = (LEVEL * (PERMUTATIONS + 1) as f64) as usize;
    let mut shuffled = values.to_vec();
    // The observed order is one of the permutations.
    let mut reached = 1;
    // Sums in another order differ in their last digits.
    let enough = divergence * (1.0 - 1e-9);
    for _ in 0..PERMUTATIONS {
        if reached > allowed {
            break;
        }
        for last in (1..shuffled.len()).rev() {
            shuffled.swap(last, rng.below(last as u64 + 1) as usize);
        }
        reached += usize::from(split(&shuffled).is_some_and(|(_, other)| other >= enough));
    }
    divergence > 0.0 && reached <= allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures around 1 with normal noise; one in twenty is an outlier to the slow side.
    fn noisy(n: usize, noise: f64, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let uniform = |rng: &mut Rng| rng.below(1 << 53) as f64 / (1u64 << 53) as f64;
        (0..n)
            .map(|_| {
                let normal: f64 = (0..12).map(|_| uniform(&mut rng)).sum::<f64>() - 6.0;
                let slow = if rng.below(20) == 0 { 3.0 * noise * uniform(&mut rng) } else { 0.0 };
                1.0 + noise * normal + slow
            })
            .collect()
    }

    fn stepped(n: usize, at: usize, step: f64, noise: f64, seed: u64) -> Vec<f64> {
        let values = noisy(n, noise, seed).into_iter().enumerate();
        values.map(|(i, value)| if i < at { value } else { value * (1.0 + step) }).collect()
    }

    /// The distance as it is defined, pair by pair.
    fn by_definition(values: &[f64], at: usize) -> f64 {
        let (x, y) = values.split_at(at);
        let mean = |a: &[f64], b: &[f64]| {
            let all: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| (a - b).abs())).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        let within = |a: &[f64]| mean(a, a) * a.len() as f64 / (a.len() - 1) as f64;
        let (n, m) = (x.len() as f64, y.len() as f64);
        n * m / (n + m) * (2.0 * mean(x, y) - within(x) - within(y))
    }

    #[test]
    fn a_split_is_the_best_by_definition() {
        for seed in 0..20 {
            let values = stepped(25, 9, 0.05, 0.03, seed);
            let ends = |at: usize| (at + MIN_SIDE..=values.len()).map(move |end| (at, end));
            let all = (MIN_SIDE..=values.len() - MIN_SIDE).flat_map(ends);
            let all = all.map(|(at, end)| (at, by_definition(&values[..end], at)));
            let (at, most) = all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            let (found, scaled) = split(&values).unwrap();
            assert_eq!(found, at);
            assert!((scaled - most).abs() < 1e-9, "{scaled} {most}");
        }
    }

    #[test]
    fn steps_of_five_percent_are_found_where_they_are() {
        for n in [20, 50, 100] {
            let near = |seed: &u64| {
                let at = n / 4 + (*seed as usize * 7) % (n / 2);
                let found = change_points(&stepped(n, at, 0.05, 0.015, *seed));
                found.iter().any(|found| found.abs_diff(at) <= 1)
            };
            let found = (0..100).filter(near).count();
            assert!(found >= 90, "{found} of 100 steps in {n} figures");
        }
    }

    #[test]
    fn series_without_a_step_have_none() {
        for n in [20, 50, 100] {
            let stepping = (0..100).filter(|seed| !change_points(&noisy(n, 0.015, 1000 + seed)).is_empty());
            let false_steps = stepping.count();
            assert!(false_steps <= 5, "{false_steps} of 100 series of {n} figures");
        }
    }

    #[test]
    fn several_levels_are_told_apart_and_few_figures_are_none() {
        let levels = [noisy(12, 0.01, 1), noisy(12, 0.01, 2), noisy(12, 0.01, 3)];
        let values: Vec<f64> = levels
            .iter()
            .zip([1.0, 1.1, 1.0])
            .flat_map(|(level, by)| level.iter().map(move |v| v * by))
            .collect();
        assert_eq!(change_points(&values), [12, 24]);
        let halves = |n: usize| {
            (0..n).map(|i| i as f64 / 100.0 + if i < n / 2 { 1.0 } else { 2.0 }).collect::<Vec<_>>()
        };
        assert_eq!(change_points(&halves(MIN_POINTS)), [MIN_POINTS / 2]);
        assert_eq!(change_points(&halves(MIN_POINTS - 1)), [0; 0]);
        assert_eq!(change_points(&[1.0; 40]), [0; 0]);
        assert_eq!(change_points(&[]), [0; 0]);
    }

    #[test]
    fn one_and_two_outliers_are_no_level() {
        let mut values = noisy(30, 0.01, 5);
        values[11] = 1.5;
        values[12] = 1.6;
        assert_eq!(change_points(&values), [0; 0]);
        values[29] = 1.5;
        assert_eq!(change_points(&values), [0; 0]);
    }
}
