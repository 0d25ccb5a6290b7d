//! Most recently used: the page of the last reference goes.
//!
//! Best for a loop that is larger than memory, where LRU evicts each page just before its next
//! reference. Source: H.-T. Chou and D. J. DeWitt, "An evaluation of buffer management strategies
//! for relational database systems", VLDB 1985. The definition is unique: every reference makes its
//! page the most recently used, so the victim is the page referenced just before the miss.

use super::Policy;

/// MRU on one byte a page.
#[derive(Debug)]
pub struct Mru {
    resident: Vec<bool>,
    frames: usize,
    used: usize,
    last: u32,
}

impl Mru {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self { resident: vec![false; pages as usize], frames: frames as usize, used: 0, last: 0 }
    }
}

impl Policy for Mru {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        let hit = std::mem::replace(&mut self.resident[page as usize], true);
        if !hit {
            if self.used == self.frames {
                self.resident[self.last as usize] = false;
            } else {
                self.used += 1;
            }
        }
        self.last = page;
        hit
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_fetching(self, references, |policy| &policy.resident)
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.resident, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.resident[page as usize])
    }

    fn resident(&self) -> usize {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use pagelab_reference::Stream;

    use crate::policy::PolicyKind;
    use crate::replay::replay;

    #[test]
    fn a_loop_larger_than_memory_keeps_what_fits() {
        // 1,000 pages over and over in 600 frames: LRU misses every reference; MRU keeps all pages
        // but one of the 600 and misses the others.
        let references: Vec<u32> = (0..20).flat_map(|_| 0..1000).collect();
        let stream = Stream::new(1000, references);
        let misses = |name: &str| replay(&stream, &name.parse::<PolicyKind>().unwrap(), 600).misses;
        assert_eq!(misses("lru"), 20_000);
        let (mru, opt) = (misses("mru"), misses("opt"));
        assert!(opt <= mru && mru < opt + 200, "MRU {mru}, OPT {opt}");
    }
}
