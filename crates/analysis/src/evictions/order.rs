//! The order of evictions in a run and in a model: Kendall's tau-b between the times at which both
//! evicted the same pages.
//!
//! Sources: M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945
//! (tau-b); J. M. G. Taylor, "Kendall's and Spearman's correlation coefficients in the presence of
//! a blocking variable", Biometrics 43, 1987 (pairs within blocks only); W. R. Knight, "A computer
//! method for calculating Kendall's tau with ungrouped data", Journal of the American Statistical
//! Association 61, 1966 (counting by merge sort).

/// No time.
const NONE: u32 = u32::MAX;

/// Matches the evictions of a run with those of a model. Two evictions match if they evict the same
/// page after the same reference to it.
#[derive(Debug)]
pub struct Matching {
    /// Each page's eviction in the run since its last reference: the block and the time.
    run: Vec<(u32, u32)>,
    /// The time of each page's eviction in the model since its last reference.
    model: Vec<u32>,
    /// Block, time in the run, time in the model.
    pairs: Vec<(u32, u32, u32)>,
}

impl Matching {
    /// Creates an empty matching for the pages `0..pages`.
    pub fn new(pages: u32) -> Self {
        let pages = pages as usize;
        Self { run: vec![(0, NONE); pages], model: vec![NONE; pages], pairs: Vec::new() }
    }

    /// Adds an eviction of the run in a block of time.
    pub fn run_evicts(&mut self, page: u32, block: u32, time: u32) {
        self.run[page as usize] = (block, time);
    }

    /// Adds an eviction of the model.
    pub fn model_evicts(&mut self, page: u32, time: u32) {
        self.model[page as usize] = time;
    }

    /// Matches the evictions of the page before its next reference.
    pub fn reference(&mut self, page: u32) {
        let (block, run) = std::mem::replace(&mut self.run[page as usize], (0, NONE));
        let model = std::mem::replace(&mut self.model[page as usize], NONE);
        if run != NONE && model != NONE {
            self.pairs.push((block, run, model));
        }
    }

    /// The matched evictions after the last reference: block, time in the run, time in the model.
    pub fn finish(mut self) -> Vec<(u32, u32, u32)> {
        (0..self.run.len() as u32).for_each(|page| self.reference(page));
        self.pairs
    }
}

/// Kendall's tau-b of the second and third values, over the pairs of rows with the same first value
/// (the block): concordant less discordant pairs, divided by the geometric mean of the numbers of
/// pairs that are not tied in the second and in the third value. `None` if all are tied.
pub fn tau_b(mut rows: Vec<(u32, u32, u32)>) -> Option<f64> {
    rows.sort_unstable();
    let (mut score, mut untied) = (0i64, [0u64; 2]);
    for block in rows.chunk_by(|a, b| a.0 == b.0) {
        let mut y: Vec<u32> = block.iter().map(|row| row.2).collect();
        let all = pairs(block.len());
        let same_x = tied(block.chunk_by(|a, b| a.1 == b.1).map(<[_]>::len));
        let same_both = tied(block.chunk_by(|a, b| a == b).map(<[_]>::len));
        let discordant = sort_counting(&mut y);
        let same_y = tied(y.chunk_by(|a, b| a == b).map(<[_]>::len));
        score += (all + same_both) as i64 - (same_x + same_y + 2 * discordant) as i64;
        untied[0] += all - same_x;
        untied[1] += all - same_y;
    }
    let [x, y] = untied.map(|count| count as f64);
    (x > 0.0 && y > 0.0).then(|| score as f64 / (x * y).sqrt())
}

fn pairs(count: usize) -> u64 {
    let count = count as u64;
    count * count.saturating_sub(1) / 2
}

/// Number of pairs within groups of these sizes.
fn tied(groups: impl Iterator<Item = usize>) -> u64 {
    groups.map(pairs).sum()
}

/// Sorts the values and returns the number of pairs that were in descending order.
fn sort_counting(values: &mut [u32]) -> u64 {
    let mut count = 0;
    let mut merged = Vec::with_capacity(values.len());
    let mut width = 1;
    while width < values.len() {
        for part in values.chunks_mut(2 * width) {
            let (mut left, mut right) = part.split_at(width.min(part.len()));
            merged.clear();
            while let (Some(&a), Some(&b)) = (left.first(), right.first()) {
                if b < a {
                    count += left.len() as u64;
                    merged.push(b);
                    right = &right[1..];
                } else {
                    merged.push(a);
                    left = &left[1..];
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
            part.copy_from_slice(&merged);
        }
        width *= 2;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    /// The definition: every pair of rows in one block.
    fn naive(rows: &[(u32, u32, u32)]) -> Option<f64> {
        let (mut score, mut x, mut y) = (0.0, 0.0, 0.0);
        let sign = |order: Ordering| f64::from(order as i8);
        for (n, a) in rows.iter().enumerate() {
            for b in rows[..n].iter().filter(|b| a.0 == b.0) {
                let (first, second) = (sign(a.1.cmp(&b.1)), sign(a.2.cmp(&b.2)));
                score += first * second;
                x += first.abs();
                y += second.abs();
            }
        }
        (x > 0.0 && y > 0.0).then(|| score / f64::sqrt(x * y))
    }

    fn close(a: Option<f64>, b: Option<f64>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-12,
            (a, b) => a == b,
        }
    }

    #[test]
    fn a_page_referenced_between_two_evictions_matches_neither() {
        let mut matching = Matching::new(3);
        matching.run_evicts(0, 0, 5);
        matching.reference(0);
        matching.model_evicts(0, 7);
        matching.run_evicts(1, 2, 8);
        matching.model_evicts(1, 9);
        matching.reference(1);
        assert_eq!(matching.finish(), [(2, 8, 9)]);
    }

    #[test]
    fn ties_have_no_order() {
        // Four values: 2 pairs tied in x of 6, none in y.
        let rows = vec![(0, 1, 1), (0, 1, 2), (0, 2, 3), (0, 2, 4)];
        assert!(close(tau_b(rows), Some(4.0 / f64::sqrt(4.0 * 6.0))));
        assert_eq!(tau_b(vec![(0, 1, 1), (0, 1, 2)]), None);
        assert_eq!(tau_b(vec![(0, 1, 1), (1, 2, 2)]), None, "one row in each block");
        assert_eq!(tau_b(Vec::new()), None);
    }

    proptest! {
        #[test]
        fn tau_is_the_naive_sum_over_pairs(
            rows in proptest::collection::vec((0u32..3, 0u32..12, 0u32..12), 0..80),
        ) {
            prop_assert!(close(tau_b(rows.clone()), naive(&rows)), "{:?}", rows);
        }

        #[test]
        fn tau_is_bounded_and_symmetric_and_changes_sign_with_the_order(
            rows in proptest::collection::vec((0u32..3, 0u32..50, 0u32..50), 2..80),
        ) {
            let tau = tau_b(rows.clone());
            prop_assert!(tau.is_none_or(|tau| (-1.0 - 1e-12..=1.0 + 1e-12).contains(&tau)));
            let swapped = rows.iter().map(|&(block, x, y)| (block, y, x)).collect();
            prop_assert!(close(tau, tau_b(swapped)));
            let reversed = rows.iter().map(|&(block, x, y)| (block, x, 100 - y)).collect();
            prop_assert!(close(tau.map(|tau| -tau), tau_b(reversed)));
        }

        #[test]
        fn an_increasing_map_keeps_the_order(
            rows in proptest::collection::vec((0u32..3, 0u32..50), 3..80),
        ) {
            let same: Vec<_> = rows.iter().map(|&(block, x)| (block, x, 3 * x + 7)).collect();
            prop_assert!(tau_b(same).is_none_or(|tau| (tau - 1.0).abs() < 1e-12));
        }
    }
}
