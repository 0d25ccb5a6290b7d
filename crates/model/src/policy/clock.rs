//! CLOCK with one reference bit: a hand goes round the frames, spares those whose bit is set, and
//! clears the bit.
//!
//! Source: F. J. Corbató, "A paging experiment with the Multics system", 1968. A page comes in with
//! its bit clear and the hand stands behind it, which is the same as FIFO with reinsertion.

use super::{AHEAD, Policy};
use prefetch_index::prefetch_index;

const ABSENT: u8 = 0;
const RESIDENT: u8 = 1;
const REFERENCED: u8 = 2;

/// CLOCK on a ring of frames and one byte a page.
#[derive(Debug)]
pub struct Clock {
    state: Vec<u8>,
    ring: Vec<u32>,
    frames: usize,
    hand: usize,
    spared: u64,
}

impl Clock {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self {
            state: vec![ABSENT; pages as usize],
            ring: Vec::new(),
            frames: frames as usize,
            hand: 0,
            spared: 0,
        }
    }
}

impl Policy for Clock {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        let state = &mut self.state[page as usize];
        if *state != ABSENT {
            *state = REFERENCED;
            return true;
        }
        *state = RESIDENT;
        if self.ring.len() < self.frames {
            self.ring.push(page);
            return false;
        }
        loop {
            let later = self.hand + AHEAD;
            let later = if later < self.frames { later } else { later % self.frames };
            prefetch_index(&self.state, self.ring[later] as usize);
            let slot = &mut self.ring[self.hand];
            self.hand = if self.hand + 1 == self.frames { 0 } else { self.hand + 1 };
            let state = &mut self.state[*slot as usize];
            if *state == REFERENCED {
                *state = RESIDENT;
                self.spared += 1;
            } else {
                *state = ABSENT;
                *slot = page;
                return false;
            }
        }
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_fetching(self, references, |policy| &policy.state)
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.state, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.state[page as usize] != ABSENT)
    }

    fn resident(&self) -> usize {
        self.ring.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("spared by the hand", self.spared)]
    }
}
