//! Random replacement: every resident page is equally likely to go.
//!
//! Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer",
//! IBM Systems Journal 5(2), 1966 (RAND). The draws come from the seeded generator of the reference
//! streams, so a run can be repeated; another generator gives other misses with the same expectation.

use super::Policy;
use pagelab_reference::rng::Rng;

/// Random replacement on an array of frames.
#[derive(Debug)]
pub struct Random {
    resident: Vec<bool>,
    slots: Vec<u32>,
    frames: usize,
    rng: Rng,
}

impl Random {
    /// `frames` empty frames for the pages `0..pages`, drawing from the seed given.
    pub fn new(pages: u32, frames: u32, seed: u64) -> Self {
        Self {
            resident: vec![false; pages as usize],
            slots: Vec::new(),
            frames: frames as usize,
            rng: Rng::new(seed),
        }
    }
}

impl Policy for Random {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        let resident = &mut self.resident[page as usize];
        if *resident {
            return true;
        }
        *resident = true;
        if self.slots.len() < self.frames {
            self.slots.push(page);
        } else {
            let slot = self.rng.below(self.frames as u64) as usize;
            let victim = std::mem::replace(&mut self.slots[slot], page);
            self.resident[victim as usize] = false;
        }
        false
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.resident, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.resident[page as usize])
    }

    fn resident(&self) -> usize {
        self.slots.len()
    }
}
