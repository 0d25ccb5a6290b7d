//! References by Zipf's law.

use crate::rng::Rng;

/// The page of rank `r` (from 1) has the weight `r^-exponent`. Ranks are given to pages by a
/// Fisher-Yates shuffle of `0..pages` with a generator started at `seed`; the same generator then
/// draws each reference: `u` = [`Rng::unit`] times the sum of all weights, and the first rank whose
/// cumulative weight is above `u`. Powers are `libm::pow`, sums run from rank 1 up.
pub fn zipf(pages: u32, references: usize, exponent: f64, seed: u64) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    let mut page_of_rank: Vec<u32> = (0..pages).collect();
    rng.shuffle(&mut page_of_rank);
    let mut total = 0.0;
    let cumulative: Vec<f64> = (1..=pages)
        .map(|rank| {
            total += libm::pow(f64::from(rank), -exponent);
            total
        })
        .collect();
    (0..references)
        .map(|_| {
            let u = rng.unit() * total;
            let rank = cumulative.partition_point(|&c| c <= u);
            page_of_rank[rank.min(pages as usize - 1)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::zipf;

    #[test]
    fn counts_follow_the_law() {
        let mut counts = vec![0u32; 100];
        for page in zipf(100, 1_000_000, 1.0, 1) {
            counts[page as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let harmonic: f64 = (1..=100).map(|r| 1.0 / f64::from(r)).sum();
        for (rank, &count) in counts.iter().enumerate().take(20) {
            let expected = 1_000_000.0 / (rank as f64 + 1.0) / harmonic;
            assert!((f64::from(count) / expected - 1.0).abs() < 0.03, "rank {}", rank + 1);
        }
    }

    #[test]
    fn exponent_zero_is_uniform() {
        let mut counts = [0u32; 10];
        for page in zipf(10, 100_000, 0.0, 2) {
            counts[page as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)));
    }
}
