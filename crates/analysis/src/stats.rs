//! Order statistics and trends.

use pagelab_experiment::{MetricId, Run};

/// The median of `values`; `None` when empty or one is no number.
pub fn median(values: &[f64]) -> Option<f64> {
    sorted(values).map(|sorted| median_of_sorted(&sorted))
}

/// The median of a metric over the repetitions that count.
pub(crate) fn middle(run: &Run, metric: MetricId) -> Option<f64> {
    median(&run.values(metric))
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
    fn a_trend_is_seen_and_its_absence_too() {
        let up: Vec<f64> = (0..10).map(f64::from).collect();
        let (tau, p) = drift(&up).unwrap();
        assert_eq!(tau, 1.0);
        assert!(p < 0.001);
        assert!(drift(&[3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]).unwrap().1 > 0.3);
    }
}
