//! Segmented LRU: a hit takes a page to the next segment; what overflows a segment falls to the
//! young end of the one below, and out of the lowest. While there is room, a new page enters the
//! lowest segment that has any, so that all frames are used.
//!
//! Source: R. Karedla, J. S. Love and B. G. Wherry, "Caching strategies to improve disk system
//! performance", IEEE Computer 27(3), 1994 (two segments); four equal segments ("S4LRU") are from
//! Q. Huang and others, "An analysis of Facebook photo caching", SOSP 2013, and are the default.

use super::Policy;
use super::queue::{Entry, NOWHERE, Queue, table};

/// SLRU on one `Queue` a segment.
#[derive(Debug)]
pub struct Slru {
    table: Vec<Entry>,
    /// From the lowest; segment i carries the number i + 1.
    segments: Vec<Queue>,
    frames: usize,
    /// Pages in a segment, the lowest being larger by the remainder.
    share: usize,
    promotions: u64,
    demotions: u64,
}

impl Slru {
    /// `frames` empty frames for the pages `0..pages`, divided into `segments` (1 to 250) of one size.
    pub fn new(pages: u32, frames: u32, segments: u8) -> Self {
        Self {
            table: table(pages),
            segments: (1..=segments).map(Queue::new).collect(),
            frames: frames as usize,
            share: frames as usize / usize::from(segments),
            promotions: 0,
            demotions: 0,
        }
    }

    fn bound(&self, segment: usize) -> usize {
        if segment == 0 { self.frames - self.share * (self.segments.len() - 1) } else { self.share }
    }

    /// Brings in a page that is not resident.
    fn enter(&mut self, page: u32) {
        let room = (0..self.segments.len()).find(|&i| self.segments[i].len() < self.bound(i));
        if room.is_none() {
            self.segments[0].pop(&mut self.table);
        }
        self.segments[room.unwrap_or(0)].push(page, &mut self.table);
    }

    /// Puts a page that left a lower segment into this one, and passes down what overflows.
    #[inline]
    fn promote(&mut self, page: u32, segment: usize) {
        self.segments[segment].push(page, &mut self.table);
        for segment in (1..=segment).rev() {
            if self.segments[segment].len() <= self.bound(segment) {
                return;
            }
            if let Some(falling) = self.segments[segment].pop(&mut self.table) {
                self.demotions += 1;
                self.segments[segment - 1].push(falling, &mut self.table);
            }
        }
    }
}

impl Policy for Slru {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        let list = self.table[page as usize].list;
        if list == NOWHERE {
            self.enter(page);
            return false;
        }
        let segment = usize::from(list) - 1;
        if segment + 1 == self.segments.len() || self.share == 0 {
            self.segments[segment].touch(page, &mut self.table);
        } else {
            self.promotions += 1;
            self.segments[segment].remove(page, &mut self.table);
            self.promote(page, segment + 1);
        }
        true
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_fetching(self, references, |policy| &policy.table)
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.table, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.table[page as usize].list != NOWHERE)
    }

    fn resident(&self) -> usize {
        self.segments.iter().map(Queue::len).sum()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("promotions", self.promotions), ("demotions", self.demotions)]
    }
}
