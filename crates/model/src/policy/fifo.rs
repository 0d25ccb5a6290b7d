//! First in, first out: the page that has been resident longest goes.
//!
//! Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer",
//! IBM Systems Journal 5(2), 1966. The definition is unique.

use super::Policy;

/// FIFO on a ring of frames and one byte a page.
#[derive(Debug)]
pub struct Fifo {
    resident: Vec<bool>,
    ring: Vec<u32>,
    frames: usize,
    oldest: usize,
}

impl Fifo {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self { resident: vec![false; pages as usize], ring: Vec::new(), frames: frames as usize, oldest: 0 }
    }
}

impl Policy for Fifo {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        let resident = &mut self.resident[page as usize];
        if *resident {
            return true;
        }
        *resident = true;
        if self.ring.len() < self.frames {
            self.ring.push(page);
            return false;
        }
        let victim = std::mem::replace(&mut self.ring[self.oldest], page);
        self.resident[victim as usize] = false;
        self.oldest = if self.oldest + 1 == self.frames { 0 } else { self.oldest + 1 };
        false
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
        self.ring.len()
    }
}
