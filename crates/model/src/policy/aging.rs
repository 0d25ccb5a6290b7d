//! Aging, LRU approximated by counters: at every tick each page's eight-bit counter is shifted right, and its
//! reference bit goes in at the left; the page with the lowest counter goes.
//!
//! Source: A. S. Tanenbaum and H. Bos, "Modern Operating Systems", 4th edition, 2014, section 3.4.7 (the idea is that of
//! the shift registers in F. J. Corbató, "A paging experiment with the Multics system", 1968). Time is counted in references, and
//! a tick is so many of them as there are frames unless `tick` says another share. What the book leaves open: a page comes
//! in as if it had been referenced in the tick before (10000000), and among equals goes the one that has stood longest
//! in that order.

use std::collections::VecDeque;

use super::Policy;

/// What a page comes in with, and what a reference adds at a tick.
const YOUNG: u8 = 0x80;

/// Aging on one queue for each value of the counter; 1 byte a page.
#[derive(Debug)]
pub struct Aging {
    /// What is known of each page: resident, referenced since the tick.
    state: Vec<u8>,
    /// Resident pages by counter.
    queues: Vec<VecDeque<u32>>,
    /// Empty queues for the next tick.
    spare: Vec<VecDeque<u32>>,
    /// No queue below this has a page.
    lowest: usize,
    resident: usize,
    frames: usize,
    tick: u64,
    left: u64,
}

const RESIDENT: u8 = 1;
const REFERENCED: u8 = 2;

impl Aging {
    /// `frames` empty frames for the pages `0..pages`; a tick is `tick` times as many references as there are frames.
    pub fn new(pages: u32, frames: u32, tick: f64) -> Self {
        let tick = ((f64::from(frames) * tick) as u64).max(1);
        Self {
            state: vec![0; pages as usize],
            queues: vec![VecDeque::new(); 256],
            spare: vec![VecDeque::new(); 256],
            lowest: 0,
            resident: 0,
            frames: frames as usize,
            tick,
            left: tick,
        }
    }

    fn end_tick(&mut self) {
        self.left = self.tick;
        self.lowest = 0;
        for (counter, queue) in self.queues.iter_mut().enumerate() {
            for page in queue.drain(..) {
                let state = &mut self.state[page as usize];
                let referenced = if *state & REFERENCED != 0 { usize::from(YOUNG) } else { 0 };
                *state = RESIDENT;
                self.spare[counter >> 1 | referenced].push_back(page);
            }
        }
        std::mem::swap(&mut self.queues, &mut self.spare);
    }

    fn evict(&mut self) {
        while let Some(queue) = self.queues.get_mut(self.lowest) {
            if let Some(victim) = queue.pop_front() {
                self.state[victim as usize] = 0;
                self.resident -= 1;
                return;
            }
            self.lowest += 1;
        }
    }
}

impl Policy for Aging {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        if self.left == 0 {
            self.end_tick();
        }
        self.left -= 1;
        if self.state[page as usize] != 0 {
            self.state[page as usize] |= REFERENCED;
            return true;
        }
        if self.resident == self.frames {
            self.evict();
        }
        self.state[page as usize] = RESIDENT;
        self.queues[usize::from(YOUNG)].push_back(page);
        self.lowest = self.lowest.min(usize::from(YOUNG));
        self.resident += 1;
        false
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.state, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.state[page as usize] != 0)
    }

    fn resident(&self) -> usize {
        self.resident
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;

    /// One list of (page, counter, referenced), the next victim first.
    fn plain(references: &[u32], frames: usize, tick: usize) -> Vec<bool> {
        let mut list: Vec<(u32, u8, bool)> = Vec::new();
        let mut all = Vec::new();
        for (now, &page) in references.iter().enumerate() {
            if now > 0 && now % tick == 0 {
                for (_, counter, referenced) in &mut list {
                    *counter = *counter >> 1 | if *referenced { 128 } else { 0 };
                    *referenced = false;
                }
                list.sort_by_key(|one| one.1);
            }
            let place = list.iter().position(|one| one.0 == page);
            all.push(place.is_some());
            match place {
                Some(place) => list[place].2 = true,
                None => {
                    if list.len() == frames {
                        list.remove(0);
                    }
                    list.push((page, 128, false));
                    list.sort_by_key(|one| one.1);
                }
            }
        }
        all
    }

    proptest! {
        #[test]
        fn follows_its_definition(stream in streams(), frames in 1_u32..70, tick in 1_u32..4) {
            let mut policy = Aging::new(stream.pages(), frames, f64::from(tick));
            let wanted = plain(stream.references(), frames as usize, (frames * tick) as usize);
            prop_assert_eq!(hits(&mut policy, &stream), wanted);
        }
    }
}
