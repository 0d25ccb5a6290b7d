//! First in, first out: the page that has been resident longest goes.
//!
//! Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer",
//! IBM Systems Journal 5(2), 1966. The definition is unique.

use super::{AHEAD, Policy};
use prefetch_index::prefetch_index;

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
        if self.ring.len() < self.frames {
            return super::count_fetching(self, references, |policy| &policy.resident);
        }
        let Some(&last) = references.last() else { return 0 };
        let (resident, ring) = (&mut self.resident[..], &mut self.ring[..]);
        let (mut oldest, mut misses) = (self.oldest, 0);
        for (n, &page) in references.iter().enumerate() {
            prefetch_index(&*resident, references.get(n + AHEAD).copied().unwrap_or(last) as usize);
            // Without a branch, which would be mispredicted at every other miss: after a hit the oldest page is put back.
            let hit = resident[page as usize];
            let victim = ring[oldest];
            ring[oldest] = if hit { victim } else { page };
            resident[victim as usize] = hit;
            resident[page as usize] = true;
            oldest += usize::from(!hit);
            oldest = if oldest == ring.len() { 0 } else { oldest };
            misses += u64::from(!hit);
        }
        self.oldest = oldest;
        misses
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
