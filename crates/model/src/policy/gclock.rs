//! GCLOCK: a hand and a counter a page; a hit counts it up to a bound, the hand counts it down, and a page whose
//! counter is 0 goes.
//!
//! Source: A. J. Smith, "Sequentiality and prefetching in database systems", ACM TODS 3(3), 1978; V. F. Nicola, A. Dan and
//! D. M. Dias, "Analysis of the generalized clock buffer replacement scheme for database transaction processing",
//! SIGMETRICS 1992. `start` is the counter of a page that comes in, `max` the bound. With `max=1,start=0` it is CLOCK.

use super::Policy;

const ABSENT: u8 = u8::MAX;

/// GCLOCK on an array of frames; 1 byte a page.
#[derive(Debug)]
pub struct GClock {
    counter: Vec<u8>,
    slots: Vec<u32>,
    frames: usize,
    hand: usize,
    max: u8,
    start: u8,
    /// Pages that the hand counted down.
    spared: u64,
}

impl GClock {
    /// `frames` empty frames for the pages `0..pages`; counters up to `max` (at most 254) that begin with `start` (at most
    /// `max`).
    pub fn new(pages: u32, frames: u32, max: u8, start: u8) -> Self {
        let max = max.min(ABSENT - 1);
        Self {
            counter: vec![ABSENT; pages as usize],
            slots: Vec::new(),
            frames: frames as usize,
            hand: 0,
            max,
            start: start.min(max),
            spared: 0,
        }
    }

    /// Makes the slot under the hand free and passes it.
    #[inline]
    fn evict(&mut self) -> usize {
        loop {
            let at = self.hand;
            self.hand = if at + 1 == self.frames { 0 } else { at + 1 };
            let counter = &mut self.counter[self.slots[at] as usize];
            if *counter == 0 {
                *counter = ABSENT;
                return at;
            }
            *counter -= 1;
            self.spared += 1;
        }
    }
}

impl Policy for GClock {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        let counter = &mut self.counter[page as usize];
        if *counter != ABSENT {
            *counter = (*counter + 1).min(self.max);
            return true;
        }
        *counter = self.start;
        if self.slots.len() < self.frames {
            self.slots.push(page);
        } else {
            let at = self.evict();
            self.slots[at] = page;
        }
        false
    }

    fn grow(&mut self, pages: u32) {
        super::grow_with(&mut self.counter, pages, ABSENT);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.counter[page as usize] != ABSENT)
    }

    fn resident(&self) -> usize {
        self.slots.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("spared by the hand", self.spared)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A queue of (page, counter): whoever is spared goes to its end.
    fn plain(references: &[u32], frames: usize, max: u8, start: u8) -> Vec<bool> {
        let mut queue: VecDeque<(u32, u8)> = VecDeque::new();
        let step = |&page: &u32| {
            if let Some(one) = queue.iter_mut().find(|one| one.0 == page) {
                one.1 = (one.1 + 1).min(max);
                return true;
            }
            while queue.len() == frames {
                let (page, counter) = queue.pop_front().unwrap();
                if counter > 0 {
                    queue.push_back((page, counter - 1));
                }
            }
            queue.push_back((page, start));
            false
        };
        references.iter().map(step).collect()
    }

    proptest! {
        #[test]
        fn follows_its_definition(stream in streams(), frames in 1_u32..70, max in 1_u8..6, start in 0_u8..3) {
            let mut policy = GClock::new(stream.pages(), frames, max, start);
            let wanted = plain(stream.references(), frames as usize, max, start.min(max));
            prop_assert_eq!(hits(&mut policy, &stream), wanted);
        }

        #[test]
        fn with_one_bit_it_is_clock(stream in streams(), frames in 1_u32..70) {
            let mut clock = super::super::clock::Clock::new(stream.pages(), frames);
            let mut policy = GClock::new(stream.pages(), frames, 1, 0);
            prop_assert_eq!(hits(&mut policy, &stream), hits(&mut clock, &stream));
        }
    }
}
