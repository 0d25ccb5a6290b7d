//! SIEVE: a FIFO queue whose hand moves from old to young, spares the visited pages where they are
//! and evicts the first that is not visited; new pages go to the young end.
//!
//! Source: Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson and K. V. Rashmi, "SIEVE is simpler than LRU: an
//! efficient turn-key eviction algorithm for web caches", NSDI 2024, algorithm 1.
//!
//! The paper links the queue. Here it is one array in order of age: `queue[..kept]` are the pages
//! the hand has spared in this round, `queue[hand..]` those it has not reached, and what is between
//! is free. So a spared page moves down as the hand passes it, and the hand reads in sequence. A hand
//! that has passed the youngest page starts again from the oldest, before the new page is queued.

use super::{AHEAD, Policy};
use prefetch_index::prefetch_index;

const ABSENT: u8 = 0;
const RESIDENT: u8 = 1;
const VISITED: u8 = 2;

/// SIEVE on an array in order of age and one byte a page.
#[derive(Debug)]
pub struct Sieve {
    state: Vec<u8>,
    queue: Vec<u32>,
    frames: usize,
    kept: usize,
    hand: usize,
    spared: u64,
}

impl Sieve {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self {
            state: vec![ABSENT; pages as usize],
            queue: Vec::new(),
            frames: frames as usize,
            kept: 0,
            hand: 0,
            spared: 0,
        }
    }

    #[inline]
    fn evict(&mut self) {
        loop {
            let page = self.queue[self.hand];
            if let Some(&later) = self.queue.get(self.hand + AHEAD) {
                prefetch_index(&self.state, later as usize);
            }
            self.hand += 1;
            let state = &mut self.state[page as usize];
            let spared = *state == VISITED;
            if spared {
                *state = RESIDENT;
                self.spared += 1;
                self.queue[self.kept] = page;
                self.kept += 1;
            } else {
                *state = ABSENT;
            }
            if self.hand == self.queue.len() {
                self.queue.truncate(self.kept);
                (self.kept, self.hand) = (0, 0);
            }
            if !spared {
                return;
            }
        }
    }
}

impl Policy for Sieve {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        let state = &mut self.state[page as usize];
        if *state != ABSENT {
            *state = VISITED;
            return true;
        }
        *state = RESIDENT;
        if self.resident() == self.frames {
            self.evict();
        }
        if self.queue.len() >= 2 * self.frames.max(32) && self.hand > self.kept {
            self.queue.drain(self.kept..self.hand);
            self.hand = self.kept;
        }
        self.queue.push(page);
        false
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
        self.queue.len() - self.hand + self.kept
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("spared by the hand", self.spared)]
    }
}
