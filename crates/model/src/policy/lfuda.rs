//! LFU with dynamic aging (LFU-DA): pages that were popular long ago are overtaken.
//!
//! Source: M. Arlitt, L. Cherkasova, J. Dilley, R. Friedrich and T. Jin, "Evaluating content management techniques for
//! web proxy caches", ACM SIGMETRICS Performance Evaluation Review 27(4), 2000. A page's key is the number of references
//! since it came in, plus the cache's age at the last of them; the page with the least key goes, and its key becomes the
//! age. Among equals the one whose key was set first goes (a choice of this implementation). It has no parameter.
//!
//! The same authors' *LFU-Aging* is another policy: it halves all counts when their mean is above a bound. libCacheSim's
//! LFUDA adds the age to the key itself at each hit, so that keys grow without end: no authority for this one.

use super::Policy;
use super::heap::Heap;

/// LFU-DA on a heap; 8 bytes a page, and 24 of those that are resident.
#[derive(Debug)]
pub struct Lfuda {
    /// By (key, when it was set).
    heap: Heap<(u64, u64)>,
    /// References since the page came in.
    count: Vec<u32>,
    frames: usize,
    age: u64,
    steps: u64,
}

impl Lfuda {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        let count = vec![0; pages as usize];
        Self { heap: Heap::new(pages), count, frames: frames as usize, age: 0, steps: 0 }
    }
}

impl Policy for Lfuda {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        let hit = self.heap.contains(page);
        if !hit {
            if self.heap.len() == self.frames
                && let Some(((key, _), victim)) = self.heap.least()
            {
                self.age = key;
                self.heap.remove(victim);
            }
            self.count[page as usize] = 0;
        }
        let count = &mut self.count[page as usize];
        *count = count.saturating_add(1);
        self.steps += 1;
        self.heap.set(page, (u64::from(*count) + self.age, self.steps));
        hit
    }

    fn grow(&mut self, pages: u32) {
        self.heap.grow(pages);
        super::grow(&mut self.count, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.heap.contains(page))
    }

    fn resident(&self) -> usize {
        self.heap.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("age", self.age)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;

    /// A list of (page, references, key, when it was set), searched as a whole.
    fn plain(references: &[u32], frames: usize) -> Vec<bool> {
        let mut list: Vec<(u32, u64, u64, usize)> = Vec::new();
        let mut age = 0;
        let mut all = Vec::new();
        for (now, &page) in references.iter().enumerate() {
            let at = list.iter().position(|one| one.0 == page);
            all.push(at.is_some());
            let count = at.map_or(0, |at| list.remove(at).1) + 1;
            if at.is_none() && list.len() == frames {
                let victim = (0..frames).min_by_key(|&at| (list[at].2, list[at].3)).unwrap();
                age = list.remove(victim).2;
            }
            list.push((page, count, count + age, now));
        }
        all
    }

    proptest! {
        #[test]
        fn follows_its_definition(stream in streams(), frames in 1_u32..50) {
            let mut policy = Lfuda::new(stream.pages(), frames);
            prop_assert_eq!(hits(&mut policy, &stream), plain(stream.references(), frames as usize));
        }
    }

    #[test]
    fn a_page_that_is_referenced_again_takes_the_age_of_now() {
        let mut policy = Lfuda::new(10, 2);
        // 0 stays while the others push the age up; its next reference lifts it above them.
        for page in [0, 0, 0, 1, 2, 3] {
            policy.reference(page);
        }
        assert_eq!(policy.age, 2);
        policy.reference(0);
        assert_eq!(policy.heap.least().map(|one| one.1), Some(3), "its key is 4 + 2, that of 3 is 1 + 2");
    }
}
