//! The figures of a sweep over workers.

use super::Figure;
use crate::metrics;

/// First, best and last of the throughputs at these numbers of workers.
pub fn throughputs(points: &[(u32, f64)]) -> [Figure; 4] {
    let best = points.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    [
        (metrics::THROUGHPUT_FIRST, points.first().map(|p| p.1)),
        (metrics::THROUGHPUT_BEST, best.map(|p| p.1)),
        (metrics::THROUGHPUT_BEST_WORKERS, best.map(|p| f64::from(p.0))),
        (metrics::THROUGHPUT_LAST, points.last().map(|p| p.1)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_need_not_be_the_last() {
        let found = throughputs(&[(1, 5.0), (2, 9.0), (4, 7.0)]).map(|(_, value)| value);
        assert_eq!(found, [Some(5.0), Some(9.0), Some(2.0), Some(7.0)]);
        assert_eq!(throughputs(&[]).map(|(_, value)| value), [None; 4]);
    }
}
