//! LRU-K: the page whose K-th last reference is longest ago goes; one with fewer references is beyond all others, and
//! among those the least recently used goes.
//!
//! Source: E. J. O'Neil, P. E. O'Neil and G. Weikum, "The LRU-K page replacement algorithm for database disk buffering",
//! SIGMOD 1993. References count each by itself (a correlated reference period of 0). What is known
//! of a page is kept for ever (an infinite retained information period), or while it is resident (a
//! period of 0), as libCacheSim does. A heap finds the victim; a hit leaves it alone, for the times
//! of a resident page only grow.

use super::Policy;
use super::heap::Heap;

/// Whose references are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum History {
    /// Those of every page.
    All,
    /// Those of resident pages.
    Resident,
}

/// LRU-K; 4 + 8 K bytes a page.
#[derive(Debug)]
pub struct LruK {
    k: usize,
    keep: History,
    /// The last K references of each page, the youngest first; 0 for none.
    history: Vec<u64>,
    /// By the K-th last reference and the last, as they were when somebody was last evicted.
    resident: Heap<(u64, u64)>,
    frames: usize,
    now: u64,
}

impl LruK {
    /// `frames` empty frames for the pages `0..pages`; `k` from 1.
    pub fn new(pages: u32, frames: u32, k: u8, keep: History) -> Self {
        let k = usize::from(k.max(1));
        Self {
            k,
            keep,
            history: vec![0; pages as usize * k],
            resident: Heap::new(pages),
            frames: frames as usize,
            now: 0,
        }
    }
}

impl Policy for LruK {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        self.now += 1;
        let history = &mut self.history[page as usize * self.k..][..self.k];
        history.rotate_right(1);
        history[0] = self.now;
        if self.resident.contains(page) {
            return true;
        }
        let key = |page: u32| {
            (self.history[page as usize * self.k + self.k - 1], self.history[page as usize * self.k])
        };
        if self.resident.len() == self.frames
            && let Some(victim) = self.resident.least_by(key)
        {
            self.resident.remove(victim);
            if self.keep == History::Resident {
                self.history[victim as usize * self.k..][..self.k].fill(0);
            }
        }
        let key = (self.history[page as usize * self.k + self.k - 1], self.history[page as usize * self.k]);
        self.resident.set(page, key);
        false
    }

    fn grow(&mut self, pages: u32) {
        if self.history.len() < pages as usize * self.k {
            self.history.resize(pages as usize * self.k, 0);
        }
        self.resident.grow(pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.resident.contains(page))
    }

    fn resident(&self) -> usize {
        self.resident.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The victim by searching the whole stream backwards for each page.
        #[test]
        fn follows_its_definition(
            stream in streams(), frames in 1_usize..40, k in 1_u8..4, forgets: bool,
        ) {
            let all = &stream.references()[..stream.len().min(300)];
            let keep = if forgets { History::Resident } else { History::All };
            let mut policy = LruK::new(stream.pages(), frames as u32, k, keep);
            let mut list: Vec<u32> = Vec::new();
            // From where the references of each page are known.
            let mut since = vec![0; stream.pages() as usize];
            for (now, &page) in all.iter().enumerate() {
                let hit = list.contains(&page);
                prop_assert_eq!(policy.reference(page), hit, "reference {}", now);
                if hit {
                    continue;
                }
                if list.len() == frames {
                    let last = |of: u32, nth: usize| {
                        (since[of as usize]..now).rev().filter(|&at| all[at] == of).nth(nth).map_or(0, |at| at + 1)
                    };
                    let key = |&(_, &of): &(usize, &u32)| (last(of, usize::from(k) - 1), last(of, 0));
                    let victim = list.iter().enumerate().min_by_key(key).unwrap().0;
                    let gone = list.remove(victim);
                    if forgets {
                        since[gone as usize] = now;
                    }
                }
                list.push(page);
            }
        }

        #[test]
        fn with_one_reference_it_is_lru(stream in streams(), frames in 1_u32..70) {
            let mut lru = super::super::lru::Lru::new(stream.pages(), frames);
            prop_assert_eq!(hits(&mut LruK::new(stream.pages(), frames, 1, History::All), &stream), hits(&mut lru, &stream));
        }
    }
}
