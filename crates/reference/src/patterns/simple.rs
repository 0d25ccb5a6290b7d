//! Sweeps, uniform choice, and a working set that moves.

use super::{Generator, each};
use crate::rng::Rng;

/// Reference `i` is to page `i mod pages`.
pub fn linear(pages: u32) -> Generator {
    each((0..pages).cycle())
}

/// Each reference is to a page drawn by [`Rng::below`] from a generator started at `seed`.
pub fn uniform(pages: u32, seed: u64) -> Generator {
    let mut rng = Rng::new(seed);
    each(std::iter::repeat_with(move || rng.below(u64::from(pages)) as u32))
}

/// A working set of `w = max(1, ⌊share · pages⌋)` consecutive pages whose first page moves evenly
/// from 0 to `pages − w`: at reference `i` of `n` it is `⌊i · (pages − w) / max(1, n − 1)⌋`. Within
/// the window a page is drawn by [`Rng::below`].
pub fn drift(pages: u32, references: u64, share: f64, seed: u64) -> Generator {
    let window = ((f64::from(pages) * share) as u64).clamp(1, u64::from(pages));
    let way = u128::from(u64::from(pages) - window);
    let last = u128::from(references.max(2) - 1);
    let mut rng = Rng::new(seed);
    each((0..references).map(move |i| {
        let first = (u128::from(i) * way / last) as u64;
        (first + rng.below(window)) as u32
    }))
}

#[cfg(test)]
mod tests {
    use super::super::list;
    use super::*;

    #[test]
    fn linear_wraps() {
        assert_eq!(list(linear(3), 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn drift_starts_at_the_first_page_and_ends_at_the_last() {
        let list = list(drift(1000, 10_000, 0.1, 5), 10_000);
        assert!(list[..100].iter().all(|&p| p < 110));
        assert!(list[9_900..].iter().all(|&p| p >= 890));
    }
}
