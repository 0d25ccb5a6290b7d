//! The Mann-Whitney test, exact wherever that is affordable, and Holm's correction.
//!
//! Sources: H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is
//! stochastically larger than the other", 1947; S. Holm, "A simple sequentially rejective multiple
//! test procedure", 1979. The exact distribution is that of the permutations of the observed mid-ranks,
//! so ties are exact as well.

use statrs::distribution::{ContinuousCDF, Normal};

/// Up to this many values on both sides together the distribution is counted exactly.
pub const EXACT: usize = 60;

/// The two-sided p value of the hypothesis that both sides come from one distribution. `None` when a
/// side is empty or a value is no number.
///
/// Above `EXACT` values: the normal approximation with corrections for ties and continuity.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|v| v.is_nan()) {
        return None;
    }
    let ranks = doubled_ranks(a, b);
    let observed: u64 = ranks[..a.len()].iter().sum();
    if ranks.len() <= EXACT {
        return Some(exact(&ranks, a.len(), observed));
    }
    let (n, m) = (a.len() as f64, b.len() as f64);
    let total = n + m;
    let ties: f64 = tie_sizes(a, b).iter().map(|&t| t * t * t - t).sum();
    let variance = n * m / 12.0 * ((total + 1.0) - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return Some(1.0);
    }
    let distance = (observed as f64 / 2.0 - n * (total + 1.0) / 2.0).abs() - 0.5;
    Some(two_sided_normal(distance.max(0.0) / variance.sqrt()))
}

/// The smallest p value that `n` against `m` values without ties can give.
pub fn least_p(n: usize, m: usize) -> f64 {
    let ways: f64 = (1..=m).map(|i| (n + i) as f64 / i as f64).product();
    (2.0 / ways).min(1.0)
}

/// The two-sided p value of the hypothesis that the median of `values` is `figure`: the sign test. Values
/// equal to it say nothing; `None` without values or when one is no number.
///
/// Source: W. J. Dixon and A. M. Mood, "The statistical sign test", Journal of the American Statistical
/// Association 41, 1946.
pub fn sign_test(values: &[f64], figure: f64) -> Option<f64> {
    if values.is_empty() || figure.is_nan() || values.iter().any(|v| v.is_nan()) {
        return None;
    }
    let above = values.iter().filter(|&&v| v > figure).count();
    let below = values.iter().filter(|&&v| v < figure).count();
    let (n, k) = (above + below, above.min(below));
    let mut term = 0.5f64.powi(n as i32);
    let mut tail = 0.0;
    for i in 0..=k {
        tail += term;
        term *= (n - i) as f64 / (i + 1) as f64;
    }
    Some((2.0 * tail).min(1.0))
}

/// The smallest p value that the sign test of `n` values can give.
pub fn least_sign_p(n: usize) -> f64 {
    (2.0 * 0.5f64.powi(n as i32)).min(1.0)
}

/// P(|Z| ≥ z) of the standard normal distribution.
pub fn two_sided_normal(z: f64) -> f64 {
    let normal = Normal::standard();
    (2.0 * normal.sf(z)).min(1.0)
}

/// Twice the mid-rank of each value, those of `a` first: whole numbers.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<u64> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    mid_ranks(&all)
}

/// Twice the mid-rank of each value: whole numbers.
pub(crate) fn mid_ranks(all: &[f64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&i, &j| all[i].total_cmp(&all[j]));
    let mut ranks = vec![0; all.len()];
    let mut start = 0;
    while start < order.len() {
        let mut end = start;
        while end < order.len() && all[order[end]] == all[order[start]] {
            end += 1;
        }
        // Ranks start+1 … end have the mean (start + 1 + end) / 2.
        for &i in &order[start..end] {
            ranks[i] = (start + 1 + end) as u64;
        }
        start = end;
    }
    ranks
}

fn tie_sizes(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_by(f64::total_cmp);
    all.chunk_by(|x, y| x == y).map(|group| group.len() as f64).collect()
}

/// How many of the sorted differences of a value of one side from one of the other an interval of probability
/// 1 − `level` leaves out at either end. `None` where so few values give no such interval.
pub fn left_out(n: usize, m: usize, level: f64) -> Option<usize> {
    if n + m > EXACT {
        let (n, m) = (n as f64, m as f64);
        let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
        let reach = Normal::standard().inverse_cdf(1.0 - level / 2.0);
        return Some((n * m / 2.0 - reach * deviation).floor().max(0.0) as usize);
    }
    let ranks: Vec<u64> = (1..=(n + m) as u64).collect();
    // The smallest sum is that of the first n ranks.
    left_out_of(&choices(&ranks, n)[n * (n + 1) / 2..], level)
}

/// The last place up to which these ways, of all, have no more than half of `level`.
pub(crate) fn left_out_of(ways: &[f64], level: f64) -> Option<usize> {
    let all: f64 = ways.iter().sum();
    let mut sum = 0.0;
    let within = ways.iter().take_while(|&way| {
        sum += way;
        sum <= all * level / 2.0
    });
    within.count().checked_sub(1)
}

/// The share of all choices of `n` of the ranks whose sum is at least as far from the mean as
/// `observed`: counted by the number of choices for each sum.
fn exact(ranks: &[u64], n: usize, observed: u64) -> f64 {
    let total: u64 = ranks.iter().sum();
    let row = choices(ranks, n);
    // Twice the mean of the sum is 2 · n · total / N; compare without fractions.
    let count = ranks.len() as i64;
    let distance = |sum: u64| (sum as i64 * count - n as i64 * total as i64).abs();
    let far = distance(observed);
    let all: f64 = row.iter().sum();
    let extreme: f64 =
        row.iter().enumerate().filter(|(sum, _)| distance(*sum as u64) >= far).map(|(_, w)| w).sum();
    (extreme / all).min(1.0)
}

/// The number of choices of `n` of the ranks for each sum.
fn choices(ranks: &[u64], n: usize) -> Vec<f64> {
    let width = ranks.iter().sum::<u64>() as usize + 1;
    // ways[k · width + s]: choices of k ranks with sum s.
    let mut ways = vec![0.0f64; (n + 1) * width];
    ways[0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        let rank = rank as usize;
        for k in (1..=n.min(seen + 1)).rev() {
            for sum in (rank..width).rev() {
                ways[k * width + sum] += ways[(k - 1) * width + sum - rank];
            }
        }
    }
    ways.split_off(n * width)
}

/// Holm's step-down correction: the p values, in the same order, valid together.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut corrected = vec![0.0; p.len()];
    let mut worst = 0.0f64;
    for (step, &i) in order.iter().enumerate() {
        worst = worst.max((p[i] * (p.len() - step) as f64).min(1.0));
        corrected[i] = worst;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(p: Option<f64>, expected: f64) {
        let p = p.unwrap();
        assert!((p - expected).abs() < 1e-9 * expected.max(1e-3), "{p} instead of {expected}");
    }

    /// Fully separated sides: exactly 2 in the number of ways to choose; the case that a library's exact
    /// path got wrong. 2/C(12,6) and 2/C(13,6).
    #[test]
    fn separated_sides() {
        let low = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let high = [11.0, 12.0, 13.0, 14.0, 15.0, 16.0];
        let higher = [11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0];
        close(mann_whitney(&low, &high), 2.0 / 924.0);
        close(mann_whitney(&low, &higher), 2.0 / 1716.0);
        close(mann_whitney(&higher, &low), 2.0 / 1716.0);
        close(Some(least_p(6, 6)), 2.0 / 924.0);
    }

    /// Counted by hand: {1, 3} against {2, 4}: rank sums of the six choices 3 4 5 5 6 7; the observed 4
    /// is 1 from the mean 5, as are 3, 6 and 7 or further: 4 of 6.
    #[test]
    fn a_case_by_hand() {
        close(mann_whitney(&[1.0, 3.0], &[2.0, 4.0]), 4.0 / 6.0);
        // A tie: {1, 2} against {2, 3}: doubled mid-ranks 2 5 5 8; sums 7 7 10 10 13 13: 4 of 6.
        close(mann_whitney(&[1.0, 2.0], &[2.0, 3.0]), 4.0 / 6.0);
        close(mann_whitney(&[5.0; 8], &[5.0; 9]), 1.0);
    }

    /// U = 1 of 5 against 4 (values 1 2 3 4 6 and 5 7 8 9): the exact tables' 2 · 2 / C(9,4).
    #[test]
    fn a_tabulated_case() {
        close(mann_whitney(&[1.0, 2.0, 3.0, 4.0, 6.0], &[5.0, 7.0, 8.0, 9.0]), 4.0 / 126.0);
    }

    /// The tables' critical values at 5%, two-sided: U of 5 and 5 is 2, of 8 and 8 is 13.
    #[test]
    fn tabulated_critical_values() {
        assert_eq!([3, 4, 5, 8].map(|n| left_out(n, n, 0.05)), [None, Some(0), Some(2), Some(13)]);
        let (exact, approximate) = (left_out(30, 30, 0.05).unwrap(), left_out(31, 30, 0.05).unwrap());
        assert!(approximate > exact && approximate < exact + 20, "{exact} {approximate}");
    }

    #[test]
    fn the_approximation_meets_the_exact_count() {
        let a: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 31)).collect();
        let b: Vec<f64> = (0..30).map(|i| f64::from(i * 11 % 37) + 4.0).collect();
        let exact = mann_whitney(&a, &b).unwrap();
        let larger: Vec<f64> = b.iter().copied().chain([14.5]).collect();
        let approximate = mann_whitney(&a, &larger).unwrap();
        assert!((exact - approximate).abs() < 0.03, "{exact} {approximate}");
    }

    /// One of eight on the other side: 2 · (1 + 8) / 256.
    #[test]
    fn signs_by_hand() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        close(sign_test(&values, 1.5), 18.0 / 256.0);
        close(sign_test(&values, 0.0), least_sign_p(8));
        close(sign_test(&values, 4.5), 1.0);
        close(sign_test(&[5.0, 5.0], 5.0), 1.0);
        assert_eq!(sign_test(&[], 5.0), None);
    }

    #[test]
    fn holm_by_hand() {
        let corrected = holm(&[0.01, 0.04, 0.03]);
        for (p, expected) in corrected.iter().zip([0.03, 0.06, 0.06]) {
            assert!((p - expected).abs() < 1e-12);
        }
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn sides_are_alike_and_p_is_a_probability(
            a in proptest::collection::vec(0u8..20, 1..9), b in proptest::collection::vec(0u8..20, 1..9),
        ) {
            let a: Vec<f64> = a.into_iter().map(f64::from).collect();
            let b: Vec<f64> = b.into_iter().map(f64::from).collect();
            let p = mann_whitney(&a, &b).unwrap();
            prop_assert!(p > 0.0 && p <= 1.0);
            prop_assert!((p - mann_whitney(&b, &a).unwrap()).abs() < 1e-12);
        }
    }
}
