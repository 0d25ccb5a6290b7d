//! References by Zipf's law.

use super::{Generator, each};
use crate::progress::{Progress, Stopped};
use crate::rng::Rng;

/// The page of rank `r` (from 1) has the weight `r^-exponent`. Ranks are given to pages by a
/// Fisher-Yates shuffle of `0..pages` with a generator started at `seed`; the same generator then
/// draws each reference: `u` = [`Rng::unit`] times the sum of all weights, and the first rank whose
/// cumulative weight is above `u`. Powers are `libm::pow`, sums run from rank 1 up.
///
/// # Errors
/// [`Stopped`] where `progress` ends it.
pub fn zipf(pages: u32, exponent: f64, seed: u64, progress: Progress) -> Result<Generator, Stopped> {
    let mut rng = Rng::new(seed);
    let mut page_of_rank: Vec<u32> = (0..pages).collect();
    rng.shuffle(&mut page_of_rank, progress)?;
    let mut total = 0.0;
    let cumulative: Vec<f64> = (1..=pages)
        .map(|rank| {
            total += libm::pow(f64::from(rank), -exponent);
            total
        })
        .collect();
    let ranks = Ranks::new(cumulative, total);
    let draw = move || page_of_rank[ranks.find(rng.unit() * total).min(pages as usize - 1)];
    Ok(each(std::iter::repeat_with(draw)))
}

/// Cumulative weights with a table of where to begin: H.-C. Chen and Y. Asau, "On generating random
/// variates from an empirical distribution", AIIE Transactions 6(2), 1974.
struct Ranks {
    cumulative: Vec<f64>,
    /// For each of equal parts of the sum, the first rank (from 0) whose cumulative weight is above the
    /// part's beginning.
    guide: Vec<u32>,
    /// Parts for each unit of weight.
    parts: f64,
}

impl Ranks {
    fn new(cumulative: Vec<f64>, total: f64) -> Self {
        let parts = cumulative.len() as f64 / total;
        let mut rank = 0;
        let guide = (0..=cumulative.len())
            .map(|part| {
                while rank < cumulative.len() && cumulative[rank] <= part as f64 / parts {
                    rank += 1;
                }
                rank as u32
            })
            .collect();
        Self { cumulative, guide, parts }
    }

    /// The first rank (from 0) whose cumulative weight is above `u`; as many as there are where none is.
    fn find(&self, u: f64) -> usize {
        let part = ((u * self.parts) as usize).min(self.guide.len() - 2);
        let mut rank = self.guide[part] as usize;
        let end = self.guide[part + 1] as usize;
        // Rounding may put `u` just outside its part.
        while rank > 0 && self.cumulative[rank - 1] > u {
            rank -= 1;
        }
        rank += self.cumulative[rank..end.max(rank)].partition_point(|&c| c <= u);
        while rank < self.cumulative.len() && self.cumulative[rank] <= u {
            rank += 1;
        }
        rank
    }
}

#[cfg(test)]
mod tests {
    use super::super::list;
    use super::*;
    use crate::progress::unwatched;
    use proptest::prelude::*;

    #[test]
    fn counts_follow_the_law() {
        let mut counts = vec![0u32; 100];
        for page in list(zipf(100, 1.0, 1, &mut unwatched).unwrap(), 1_000_000) {
            counts[page as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let harmonic: f64 = (1..=100).map(|r| 1.0 / f64::from(r)).sum();
        for (rank, &count) in counts.iter().enumerate().take(20) {
            let expected = 1_000_000.0 / (rank as f64 + 1.0) / harmonic;
            assert!((f64::from(count) / expected - 1.0).abs() < 0.03, "rank {}", rank + 1);
        }
    }

    proptest! {
        #[test]
        fn the_guide_finds_what_a_search_of_all_finds(
            weights in proptest::collection::vec(0.0..10.0f64, 1..200),
            places in proptest::collection::vec(0.0..1.0f64, 1..50),
        ) {
            let mut total = 1e-9;
            let cumulative: Vec<f64> = weights.iter().map(|w| { total += w; total }).collect();
            let ranks = Ranks::new(cumulative.clone(), total);
            let edges = cumulative.iter().flat_map(|&c| [c, c.next_down(), c.next_up()]);
            for u in places.iter().map(|p| p * total).chain(edges).chain([0.0, total]) {
                prop_assert_eq!(ranks.find(u), cumulative.partition_point(|&c| c <= u));
            }
        }
    }

    #[test]
    fn exponent_zero_is_uniform() {
        let mut counts = [0u32; 10];
        for page in list(zipf(10, 0.0, 2, &mut unwatched).unwrap(), 100_000) {
            counts[page as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)));
    }
}
