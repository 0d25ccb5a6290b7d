//! 2Q: new pages pass through a FIFO queue (A1in); a page that is referenced again soon after it
//! left that queue (while A1out remembers it) enters the LRU queue of hot pages (Am).
//!
//! Source: T. Johnson and D. Shasha, "2Q: a low overhead high performance buffer management
//! replacement algorithm", VLDB 1994, the full version, with the sizes the authors recommend:
//! Kin a quarter of the frames, Kout half of them. A page that A1out remembers leaves it before room
//! is made for it.

use super::Policy;
use super::time_line::{List, NEVER, SECOND};
use prefetch_index::prefetch_index;

/// 2Q on two lines: A1in and A1out, Am. 4 bytes a page, and half a byte for each line.
#[derive(Debug)]
pub struct TwoQ {
    /// The place of each page, with its line.
    table: Vec<u32>,
    a1: List,
    am: List,
    frames: usize,
    kin: usize,
    kout: usize,
    ghost_hits: u64,
}

impl TwoQ {
    /// `frames` empty frames for the pages `0..pages`; A1in and A1out hold these shares of them.
    pub fn new(pages: u32, frames: u32, kin: f64, kout: f64) -> Self {
        let share = |s: f64| ((f64::from(frames) * s) as usize).max(1);
        Self {
            table: vec![NEVER; pages as usize],
            a1: List::new(),
            am: List::new(),
            frames: frames as usize,
            kin: share(kin),
            kout: share(kout),
            ghost_hits: 0,
        }
    }

    #[inline]
    fn make_room(&mut self) {
        if self.resident() < self.frames {
            return;
        }
        if self.a1.resident > self.kin || self.am.resident == 0 {
            self.a1.evict();
            if self.a1.remembered > self.kout {
                self.a1.forget();
            }
        } else {
            self.am.evict();
            self.am.forget();
        }
    }

    /// Puts a page that is on no line at the young end of Am.
    #[inline]
    fn enter_main(&mut self, page: u32) {
        if self.am.line.is_full() {
            self.am.line.move_together(SECOND, &mut self.table, &mut self.am.marks);
        }
        self.table[page as usize] = self.am.line.take() | SECOND;
        self.am.resident += 1;
    }
}

impl Policy for TwoQ {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        let entry = self.table[page as usize];
        let place = entry & !SECOND;
        if entry & SECOND != 0 {
            if place >= self.am.marks[0] {
                self.am.line.leave(place);
                self.am.resident -= 1;
                self.enter_main(page);
                return true;
            }
        } else if place >= self.a1.marks[0] {
            return true;
        } else if place >= self.a1.marks[1] {
            self.ghost_hits += 1;
            // Out of the memory of A1out first: making room may need its place.
            self.a1.line.leave(place);
            self.a1.remembered -= 1;
            self.make_room();
            self.enter_main(page);
            return false;
        }
        self.make_room();
        if self.a1.line.is_full() {
            self.a1.line.move_together(0, &mut self.table, &mut self.a1.marks);
        }
        self.table[page as usize] = self.a1.line.take();
        self.a1.resident += 1;
        false
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_after(self, references, |policy, page, sooner| {
            prefetch_index(&policy.table, page as usize);
            let entry = policy.table[sooner as usize];
            let list = if entry & SECOND == 0 { &policy.a1 } else { &policy.am };
            list.line.fetch(entry & !SECOND);
        })
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.table, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        let entry = self.table[page as usize];
        let list = if entry & SECOND == 0 { &self.a1 } else { &self.am };
        Some(entry & !SECOND >= list.marks[0])
    }

    fn resident(&self) -> usize {
        self.a1.resident + self.am.resident
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("ghost hits", self.ghost_hits)]
    }
}
