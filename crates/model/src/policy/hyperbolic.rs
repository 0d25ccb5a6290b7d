//! Hyperbolic caching: a page's priority is the number of its references divided by the time since it came in, and the
//! lowest of a random sample of the resident pages goes.
//!
//! Source: A. Blankstein, S. Sen and M. J. Freedman, "Hyperbolic caching: flexible caching for web applications", USENIX
//! ATC 2017: 64 pages a sample. Time is counted in references. Where no more pages are resident than a sample has, all are
//! looked at; of equal priorities the first drawn goes. The draws are from a seeded generator.

use super::Policy;
use pagelab_reference::rng::Rng;

const NOWHERE: u32 = u32::MAX;

/// A resident page.
#[derive(Clone, Copy, Debug)]
struct Frame {
    page: u32,
    references: u32,
    since: u64,
}

/// Hyperbolic caching on an array of frames; 4 bytes a page.
#[derive(Debug)]
pub struct Hyperbolic {
    /// The frame of each page.
    at: Vec<u32>,
    frames: Vec<Frame>,
    most: usize,
    sample: usize,
    now: u64,
    rng: Rng,
}

impl Hyperbolic {
    /// `frames` empty frames for the pages `0..pages`; `sample` (at least 1) of them are looked at, drawn from the seed
    /// given.
    pub fn new(pages: u32, frames: u32, sample: u32, seed: u64) -> Self {
        Self {
            at: vec![NOWHERE; pages as usize],
            frames: Vec::new(),
            most: frames as usize,
            sample: sample.max(1) as usize,
            now: 0,
            rng: Rng::new(seed),
        }
    }

    fn victim(&mut self) -> usize {
        let now = self.now;
        // References times the other's age: no division.
        let below = |a: &Frame, b: &Frame| {
            let (a, b) = ((a.references, now - b.since), (b.references, now - a.since));
            u64::from(a.0).saturating_mul(a.1) < u64::from(b.0).saturating_mul(b.1)
        };
        if self.most <= self.sample {
            let lower = |a, b| if below(&self.frames[b], &self.frames[a]) { b } else { a };
            return (0..self.frames.len()).reduce(lower).unwrap_or(0);
        }
        let mut least = self.rng.below(self.most as u64) as usize;
        let mut candidate = self.frames[least];
        let mut left = self.sample - 1;
        while left > 0 {
            // Two draws of 32 bits each; no place is more likely than another by more than one in 2^32 draws.
            let bits = self.rng.next_u64();
            for half in [bits >> 32, bits & u64::from(u32::MAX)].into_iter().take(left) {
                let other = ((half * self.most as u64) >> 32) as usize;
                let frame = self.frames[other];
                if below(&frame, &candidate) {
                    (least, candidate) = (other, frame);
                }
                left -= 1;
            }
        }
        least
    }
}

impl Policy for Hyperbolic {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        self.now += 1;
        let at = self.at[page as usize];
        if at != NOWHERE {
            let references = &mut self.frames[at as usize].references;
            *references = references.saturating_add(1);
            return true;
        }
        let new = Frame { page, references: 1, since: self.now };
        let at = if self.frames.len() < self.most {
            self.frames.push(new);
            self.frames.len() - 1
        } else {
            let at = self.victim();
            let gone = std::mem::replace(&mut self.frames[at], new);
            self.at[gone.page as usize] = NOWHERE;
            at
        };
        self.at[page as usize] = at as u32;
        false
    }

    fn grow(&mut self, pages: u32) {
        super::grow_with(&mut self.at, pages, NOWHERE);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.at[page as usize] != NOWHERE)
    }

    fn resident(&self) -> usize {
        self.frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Where all pages are looked at: the lowest priority of a list, in floating point.
        #[test]
        fn follows_its_definition(stream in streams(), frames in 1_usize..64) {
            let mut list: Vec<(u32, f64, usize)> = Vec::new();
            let step = |(now, &page): (usize, &u32)| {
                if let Some(one) = list.iter_mut().find(|one| one.0 == page) {
                    one.1 += 1.0;
                    return true;
                }
                let new = (page, 1.0, now);
                if list.len() < frames {
                    list.push(new);
                } else {
                    let priority = |one: &(u32, f64, usize)| one.1 / (now - one.2) as f64;
                    let lower = |a: usize, b: usize| if priority(&list[b]) < priority(&list[a]) { b } else { a };
                    let victim = (0..frames).reduce(lower).unwrap();
                    list[victim] = new;
                }
                false
            };
            let wanted: Vec<bool> = stream.references().iter().enumerate().map(step).collect();
            let mut policy = Hyperbolic::new(stream.pages(), frames as u32, 64, 1);
            prop_assert_eq!(hits(&mut policy, &stream), wanted);
        }
    }

    /// A sample of many comes close to all, and other seeds give other misses.
    #[test]
    fn a_sample_comes_close_to_all() {
        let stream = pagelab_reference::Pattern::Zipf(0.8).stream(5000, 100_000, 1).unwrap();
        let misses = |sample, seed| Hyperbolic::new(5000, 1000, sample, seed).misses(stream.references());
        let all = misses(1000, 1);
        let (sampled, other) = (misses(64, 1), misses(64, 2));
        assert!(sampled.abs_diff(all) < all / 50, "{sampled}, {all}");
        assert_ne!(sampled, other);
        assert!(misses(1, 1) > all, "one drawn is random replacement");
    }
}
