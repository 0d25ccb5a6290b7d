//! The curve of any policy by miniature simulation: the policy itself, on a sample of the pages and with the same share of
//! the frames.
//!
//! Source: C. Waldspurger, T. Saemundsson, I. Ahmad and N. Park, "Cache modeling and optimization using miniature
//! simulations", USENIX ATC 2017. Pages are sampled by their hash as in [`super::shards`], with the same correction for
//! hot pages (references that were expected and not sampled count as hits) and the same standard error from eight groups
//! of pages; it leaves out the error that the smaller number of frames makes. Sizes at which fewer than
//! [`TRUSTED`] frames would be simulated have no figure: the authors found errors to grow below
//! that.

use std::collections::HashMap;

use super::shards::{GROUPS, TRUSTED, spread_of};
use super::shards::{Hashed, Threshold};
use crate::policy::PolicyKind;
use crate::policy::opt::NextUse;

/// The sampled references of a stream that is fed page by page; page numbers need not be dense. 4 bytes a sampled
/// reference, some 40 a sampled page.
#[derive(Debug)]
pub struct Miniature {
    threshold: Threshold,
    ids: HashMap<u64, u32>,
    /// The group of each sampled page.
    groups: Vec<u8>,
    sampled: Vec<u32>,
    references: u64,
}

impl Miniature {
    /// Nothing sampled yet: this share of the pages (above 0, up to 1) will be.
    pub fn new(rate: f64, seed: u64) -> Self {
        Self {
            threshold: Threshold::new(rate, seed),
            ids: HashMap::new(),
            groups: Vec::new(),
            sampled: Vec::new(),
            references: 0,
        }
    }

    /// Takes the next references.
    pub fn take(&mut self, pages: &[u64]) {
        self.references += pages.len() as u64;
        for &page in pages {
            let Some(Hashed { group, .. }) = self.threshold.sampled(page) else { continue };
            let next = self.ids.len() as u32;
            let id = *self.ids.entry(page).or_insert(next);
            if id == next {
                self.groups.push(group as u8);
            }
            self.sampled.push(id);
        }
    }

    /// The bytes that the sample takes, at most.
    pub fn bytes(&self) -> u64 {
        const A_PAGE: u64 = 80;
        A_PAGE * self.ids.len() as u64 + 8 * self.sampled.len() as u64
    }

    /// Pages in the sample.
    pub fn sampled_pages(&self) -> usize {
        self.ids.len()
    }

    /// What a policy that [needs the future](PolicyKind::needs_future) must be given.
    pub fn future(&self) -> NextUse {
        NextUse::of(self.ids.len() as u32, &self.sampled)
    }

    /// The miss ratio of a policy with so many frames (of the whole, not of the sample) and its standard error; `None`
    /// where too few frames would be simulated, or nothing was taken.
    ///
    /// # Panics
    /// When the policy needs the future, and it is not given.
    pub fn miss_ratio(&self, kind: &PolicyKind, frames: u32, future: Option<&NextUse>) -> Option<(f64, f64)> {
        let rate = self.threshold.rate();
        let scaled = (f64::from(frames) * rate).round();
        if (rate < 1.0 && scaled < f64::from(TRUSTED)) || self.references == 0 {
            return None;
        }
        let mut policy = kind.build(self.ids.len() as u32, scaled as u32, future);
        let mut misses = [0_u64; GROUPS];
        for &id in &self.sampled {
            misses[usize::from(self.groups[id as usize])] += u64::from(!policy.reference(id));
        }
        let weights = misses.map(|count| count as f64 / rate);
        let n = self.references as f64;
        Some(((weights.iter().sum::<f64>() / n).clamp(0.0, 1.0), spread_of(&weights) / n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::replay;
    use pagelab_reference::{Pattern, Stream};
    use proptest::prelude::*;

    fn sample(stream: &Stream, rate: f64) -> Miniature {
        let mut miniature = Miniature::new(rate, 1);
        let pages: Vec<u64> = stream.references().iter().map(|&page| u64::from(page) << 20).collect();
        pages.chunks(1000).for_each(|chunk| miniature.take(chunk));
        miniature
    }

    proptest! {
        #[test]
        fn sampling_every_page_is_exact(seed: u64, pages in 1u64..300, n in 1u64..3000, frames in 1u32..300) {
            let stream = Pattern::Zipf(0.8).stream(pages, n, seed).unwrap();
            let miniature = sample(&stream, 1.0);
            let future = miniature.future();
            for name in ["opt", "clock", "arc", "s3-fifo"] {
                let kind: PolicyKind = name.parse().unwrap();
                let (ratio, _) = miniature.miss_ratio(&kind, frames, Some(&future)).unwrap();
                let exact = replay(&stream, &kind, frames).miss_ratio().unwrap();
                prop_assert!((ratio - exact).abs() < 1e-9, "{}: {} and {}", name, ratio, exact);
            }
        }
    }

    #[test]
    fn sampled_policies_are_near_the_whole() {
        let stream = Pattern::Zipf(0.8).stream(100_000, 1_000_000, 11).unwrap();
        let miniature = sample(&stream, 0.05);
        let future = miniature.future();
        for name in ["opt", "fifo", "sieve", "lirs", "2q"] {
            let kind: PolicyKind = name.parse().unwrap();
            assert_eq!(miniature.miss_ratio(&kind, 1000, Some(&future)), None);
            for frames in [5_000, 25_000, 75_000] {
                let (ratio, error) = miniature.miss_ratio(&kind, frames, Some(&future)).unwrap();
                let difference = (ratio - replay(&stream, &kind, frames).miss_ratio().unwrap()).abs();
                assert!(
                    difference < 0.015 + 3.0 * error && error < 0.05,
                    "{name} {frames}: {difference} off with an error of {error}"
                );
            }
        }
    }
}
