//! Ordinary least squares for the few parameters that the fits of this crate have, by Householder
//! reflections (G. H. Golub, "Numerical methods for solving linear least squares problems",
//! Numerische Mathematik 7, 1965).

/// A solved problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// One coefficient for each column.
    pub coefficients: Vec<f64>,
    /// The sum of squared residuals.
    pub rss: f64,
    /// For each coefficient the diagonal of (AᵀA)⁻¹: its variance for residuals of variance 1.
    pub variance: Vec<f64>,
}

/// The coefficients that bring Σ (row · coefficients − y)² to its minimum.
///
/// `None` with fewer rows than columns, with columns that depend on each other, and with values that
/// are no numbers.
pub fn least_squares(rows: &[Vec<f64>], y: &[f64]) -> Option<Solution> {
    let (n, p) = (rows.len(), rows.first()?.len());
    if n < p || y.len() != n || rows.iter().any(|row| row.len() != p) {
        return None;
    }
    let mut a = rows.to_vec();
    let mut b = y.to_vec();
    for k in 0..p {
        let length = |from: usize, a: &[Vec<f64>]| (from..n).map(|i| a[i][k] * a[i][k]).sum::<f64>().sqrt();
        let whole = length(0, rows);
        let norm = length(k, &a);
        // A column that the earlier ones explain to the last digits; also catches NaN.
        if norm.is_nan() || norm <= 1e-10 * whole || whole == 0.0 {
            return None;
        }
        let head = if a[k][k] > 0.0 { -norm } else { norm };
        let mut v: Vec<f64> = (k..n).map(|i| a[i][k]).collect();
        v[0] -= head;
        let square: f64 = v.iter().map(|x| x * x).sum();
        #[allow(clippy::needless_range_loop, reason = "columns of a row-wise matrix")]
        for column in k..p {
            let dot: f64 = v.iter().enumerate().map(|(i, x)| x * a[k + i][column]).sum();
            let scale = 2.0 * dot / square;
            v.iter().enumerate().for_each(|(i, x)| a[k + i][column] -= scale * x);
        }
        let dot: f64 = v.iter().enumerate().map(|(i, x)| x * b[k + i]).sum();
        let scale = 2.0 * dot / square;
        v.iter().enumerate().for_each(|(i, x)| b[k + i] -= scale * x);
    }
    let mut coefficients = vec![0.0; p];
    for k in (0..p).rev() {
        let known: f64 = (k + 1..p).map(|j| a[k][j] * coefficients[j]).sum();
        coefficients[k] = (b[k] - known) / a[k][k];
    }
    let rss = b[p..].iter().map(|r| r * r).sum();
    let finite = coefficients.iter().all(|c: &f64| c.is_finite());
    finite.then(|| Solution { variance: inverse_diagonal(&a, p), coefficients, rss })
}

/// The diagonal of (RᵀR)⁻¹ for the upper triangle R: the squared row lengths of R⁻¹.
fn inverse_diagonal(r: &[Vec<f64>], p: usize) -> Vec<f64> {
    let mut sums = vec![0.0; p];
    for column in 0..p {
        let mut x = vec![0.0; p];
        for k in (0..=column).rev() {
            let known: f64 = (k + 1..=column).map(|j| r[k][j] * x[j]).sum();
            x[k] = (if k == column { 1.0 } else { 0.0 } - known) / r[k][k];
            sums[k] += x[k] * x[k];
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Anscombe's first set ("Graphs in Statistical Analysis", 1973): y = 3.00 + 0.500 x, standard
    /// errors 1.125 and 0.118, residual sum of squares 13.763.
    #[test]
    fn anscombe() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let rows: Vec<_> = x.iter().map(|&x| vec![1.0, x]).collect();
        let fit = least_squares(&rows, &y).unwrap();
        assert!((fit.coefficients[0] - 3.0001).abs() < 1e-4 && (fit.coefficients[1] - 0.5001).abs() < 1e-4);
        assert!((fit.rss - 13.763).abs() < 1e-3, "{}", fit.rss);
        let errors: Vec<f64> = fit.variance.iter().map(|v| (v * fit.rss / 9.0).sqrt()).collect();
        assert!((errors[0] - 1.125).abs() < 1e-3 && (errors[1] - 0.118).abs() < 1e-3, "{errors:?}");
    }

    #[test]
    fn what_has_no_answer() {
        assert_eq!(least_squares(&[], &[]), None);
        assert_eq!(least_squares(&[vec![1.0, 2.0]], &[1.0]), None);
        assert_eq!(least_squares(&[vec![1.0, 2.0], vec![2.0, 4.0], vec![3.0, 6.0]], &[1.0, 2.0, 4.0]), None);
        assert_eq!(least_squares(&[vec![f64::NAN], vec![1.0]], &[1.0, 2.0]), None);
    }

    proptest! {
        #[test]
        fn exact_lines_are_found(a in -100.0..100.0, b in -100.0..100.0, n in 3usize..20) {
            let (a, b): (f64, f64) = (a, b);
            let rows: Vec<_> = (0..n).map(|i| vec![1.0, i as f64]).collect();
            let y: Vec<f64> = (0..n).map(|i| a + b * i as f64).collect();
            let fit = least_squares(&rows, &y).unwrap();
            prop_assert!((fit.coefficients[0] - a).abs() < 1e-7 && (fit.coefficients[1] - b).abs() < 1e-7);
            prop_assert!(fit.rss < 1e-12 * (1.0 + a * a + b * b) * n as f64);
        }
    }
}
