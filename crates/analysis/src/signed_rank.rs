//! Wilcoxon's signed-rank test of pairs, exact wherever that is affordable.
//!
//! Source: F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945. The exact
//! distribution is that of the signs of the observed mid-ranks, so ties are exact as well; pairs without a difference
//! say nothing and are left out.

use crate::rank::{mid_ranks, two_sided_normal};

/// Up to this many pairs the distribution is counted exactly.
pub const EXACT: usize = 100;

/// The two-sided p value of the hypothesis that the differences lie about 0. `None` when there are none or one is no
/// number.
pub fn signed_rank(differences: &[f64]) -> Option<f64> {
    if differences.is_empty() || differences.iter().any(|d| d.is_nan()) {
        return None;
    }
    let differences: Vec<f64> = differences.iter().copied().filter(|&d| d != 0.0).collect();
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let ranks = mid_ranks(&sizes);
    let total: u64 = ranks.iter().sum();
    let above: u64 = differences.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    // Sums are symmetric about the middle.
    let lower = above.min(total - above);
    if ranks.len() <= EXACT {
        let ways = sums(&ranks);
        let tail: f64 = ways[..=lower as usize].iter().sum();
        return Some((2.0 * tail / ways.iter().sum::<f64>()).min(1.0));
    }
    // Ranks are doubled: so is the deviation.
    let variance = ranks.iter().map(|&rank| (rank as f64).powi(2)).sum::<f64>() / 4.0;
    let distance = (total as f64 / 2.0 - lower as f64 - 1.0).max(0.0);
    Some(two_sided_normal(distance / variance.sqrt()))
}

/// How many of the sorted means of two differences (each with itself too) an interval of probability 1 − `level` leaves
/// out at either end. `None` where so few pairs give no such interval.
pub fn left_out(pairs: usize, level: f64) -> Option<usize> {
    if pairs > EXACT {
        let (n, normal) = (pairs as f64, statrs::distribution::Normal::standard());
        let reach = statrs::distribution::ContinuousCDF::inverse_cdf(&normal, 1.0 - level / 2.0);
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return Some((n * (n + 1.0) / 4.0 - reach * deviation).floor() as usize);
    }
    let ranks: Vec<u64> = (1..=pairs as u64).collect();
    crate::rank::left_out_of(&sums(&ranks), level)
}

/// The number of choices of signs for each sum of the ranks with a positive one.
fn sums(ranks: &[u64]) -> Vec<f64> {
    let mut ways = vec![0.0; ranks.iter().sum::<u64>() as usize + 1];
    ways[0] = 1.0;
    for &rank in ranks {
        for sum in (rank as usize..ways.len()).rev() {
            ways[sum] += ways[sum - rank as usize];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(p: Option<f64>, expected: f64) {
        let p = p.unwrap();
        assert!((p - expected).abs() < 1e-12, "{p} instead of {expected}");
    }

    /// All of one sign: 2 of 2^n. One against, the smallest: sums 0 and 1, so 4 of 2^n.
    #[test]
    fn cases_by_hand() {
        close(signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 2.0 / 64.0);
        close(Some(crate::rank::least_sign_p(6)), 2.0 / 64.0);
        close(signed_rank(&[-1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 4.0 / 64.0);
        // A tie of the smallest, one against: doubled ranks 3 3 6 8; sums up to 3: none, either of the two.
        close(signed_rank(&[-1.0, 1.0, 2.0, 3.0]), 6.0 / 16.0);
        close(signed_rank(&[0.0, 0.0]), 1.0);
        assert_eq!((signed_rank(&[]), signed_rank(&[f64::NAN])), (None, None));
    }

    /// The tables' critical values: of 6 pairs 0, of 8 pairs 3, of 10 pairs 8 at 5% two-sided.
    #[test]
    fn tabulated_critical_values() {
        assert_eq!([5, 6, 8, 10].map(|n| left_out(n, 0.05)), [None, Some(0), Some(3), Some(8)]);
        let (exact, approximate) = (left_out(100, 0.05).unwrap(), left_out(101, 0.05).unwrap());
        assert!(approximate > exact && approximate < exact + 60, "{exact} {approximate}");
    }

    proptest! {
        #[test]
        fn p_is_a_probability_and_knows_no_direction(
            differences in proptest::collection::vec(-20i32..20, 1..12),
        ) {
            let differences: Vec<f64> = differences.into_iter().map(f64::from).collect();
            let p = signed_rank(&differences).unwrap();
            prop_assert!(p > 0.0 && p <= 1.0);
            let other: Vec<f64> = differences.iter().map(|d| -d).collect();
            prop_assert!((p - signed_rank(&other).unwrap()).abs() < 1e-12);
        }
    }
}
