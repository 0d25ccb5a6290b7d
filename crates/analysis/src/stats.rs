//! Order statistics, and the bootstrap of a change of medians.

use pagelab_reference::rng::Rng;

/// Resamples of a bootstrap: the ends of a 95 % interval then lie within about a hundredth of its
/// width of their limit.
const RESAMPLES: usize = 4000;

/// The median of `values`; `None` when empty or one is no number.
pub fn median(values: &[f64]) -> Option<f64> {
    sorted(values).map(|sorted| median_of_sorted(&sorted))
}

/// The values in ascending order; `None` when empty or one is no number.
pub fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|v| v.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// The median absolute deviation from the median, times 1.4826: the standard deviation of a normal
/// distribution with the same. `None` when empty.
pub fn robust_deviation(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    Some(1.4826 * median(&deviations)?)
}

/// The greater of the robust deviation and the standard deviation: neither ties nor stragglers hide noise.
/// `None` with fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let standard = (squares / (values.len() - 1) as f64).sqrt();
    Some(robust_deviation(values)?.max(standard))
}

/// The 95 % percentile-bootstrap interval of median(b) / median(a) − 1, resampling both sides. `None`
/// with fewer than two values on a side, or when a resampled median of `a` is 0.
///
/// Source: B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13. The
/// resamples follow from `seed`, so the same data give the same interval.
pub fn change_interval(a: &[f64], b: &[f64], seed: u64) -> Option<(f64, f64)> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let mut rng = Rng::new(seed);
    let mut changes = Vec::with_capacity(RESAMPLES);
    let (mut of_a, mut of_b) = (vec![0.0; a.len()], vec![0.0; b.len()]);
    for _ in 0..RESAMPLES {
        let base = resampled_median(a, &mut of_a, &mut rng);
        if base == 0.0 {
            return None;
        }
        changes.push(resampled_median(b, &mut of_b, &mut rng) / base - 1.0);
    }
    changes.sort_by(f64::total_cmp);
    let at = |share: f64| changes[((RESAMPLES - 1) as f64 * share).round() as usize];
    Some((at(0.025), at(0.975)))
}

fn resampled_median(from: &[f64], into: &mut [f64], rng: &mut Rng) -> f64 {
    for value in into.iter_mut() {
        *value = from[rng.below(from.len() as u64) as usize];
    }
    into.sort_by(f64::total_cmp);
    median_of_sorted(into)
}

/// Kendall's τ of the values against their order, and its two-sided p value by the normal
/// approximation (no correction for ties): a drift over the repetitions. `None` below 6 values.
///
/// Source: H. B. Mann, "Nonparametric tests against trend", Econometrica 13, 1945.
pub fn drift(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len();
    if n < 6 {
        return None;
    }
    let mut score = 0i64;
    for (i, a) in values.iter().enumerate() {
        score += values[i + 1..].iter().map(|b| (b > a) as i64 - (b < a) as i64).sum::<i64>();
    }
    let count = n as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    let continuity = (score.abs() - 1).max(0) as f64;
    Some((
        score as f64 / (count * (count - 1.0) / 2.0),
        crate::rank::two_sided_normal(continuity / deviation),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[1.0, 2.0, 10.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN, 1.0]), None);
    }

    #[test]
    fn the_bootstrap_interval_holds_the_change_and_is_the_same_every_time() {
        let a: Vec<f64> = (0..12).map(|i| 100.0 + f64::from(i % 5)).collect();
        let b: Vec<f64> = a.iter().map(|v| v * 1.10).collect();
        let (low, high) = change_interval(&a, &b, 1).unwrap();
        assert!(low < 0.10 && 0.10 < high && high - low < 0.08, "{low} {high}");
        assert_eq!(change_interval(&a, &b, 1), Some((low, high)));
        assert_eq!(change_interval(&[0.0, 0.0], &[1.0, 1.0], 1), None);
    }

    #[test]
    fn a_trend_is_seen_and_its_absence_too() {
        let up: Vec<f64> = (0..10).map(f64::from).collect();
        let (tau, p) = drift(&up).unwrap();
        assert_eq!(tau, 1.0);
        assert!(p < 0.001);
        assert!(drift(&[3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]).unwrap().1 > 0.3);
    }
}
