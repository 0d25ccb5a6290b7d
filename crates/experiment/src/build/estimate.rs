//! The median of some measurements with its interval.

/// A median and its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// The median of `values` and its interval by order statistics, which holds for any distribution (W. J. Conover,
/// "Practical Nonparametric Statistics", 1999, section 3.2). `None` below six values, which have no such interval, and
/// where one is no number.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let n = values.len();
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let left_out = left_out(n, 0.05)?;
    let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
    Some(Estimate { median, low: sorted[left_out], high: sorted[n - 1 - left_out] })
}

/// How many of `n` sorted values an interval of probability 1 − `level` about their median leaves out at either end.
/// `None` where so few values give no such interval.
pub fn left_out(n: usize, level: f64) -> Option<usize> {
    // How probable it is that the median lies beyond so many of the values: on a logarithmic scale, for the terms of
    // many are very small.
    let (mut choices, mut tail) = (0.0, 0.0);
    for k in 0..=n / 2 {
        tail += (choices - n as f64 * std::f64::consts::LN_2).exp();
        if tail > level / 2.0 {
            return k.checked_sub(1);
        }
        choices += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables' ranks: of 6 values the 1st and 6th, of 25 the 8th and 18th, of 100 the 40th and 61st.
    #[test]
    fn tabulated_ranks() {
        let of = |n: u32| estimate(&(1..=n).map(f64::from).collect::<Vec<_>>());
        let ranks = |n| of(n).map(|e| (e.low, e.median, e.high));
        assert_eq!(ranks(5), None);
        assert_eq!(ranks(6), Some((1.0, 3.5, 6.0)));
        assert_eq!(ranks(25), Some((8.0, 13.0, 18.0)));
        assert_eq!(ranks(100), Some((40.0, 50.5, 61.0)));
        assert_eq!(estimate(&[f64::NAN; 9]), None);
        assert_eq!([5, 8, 10].map(|n| left_out(n, 0.05)), [None, Some(0), Some(1)]);
    }
}
