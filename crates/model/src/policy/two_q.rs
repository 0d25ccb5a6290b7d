//! 2Q: new pages pass through a FIFO queue (A1in); a page that is referenced again soon after it
//! left that queue (while A1out remembers it) enters the LRU queue of hot pages (Am).
//!
//! Source: T. Johnson and D. Shasha, "2Q: a low overhead high performance buffer management
//! replacement algorithm", VLDB 1994, the full version, with the sizes the authors recommend:
//! Kin a quarter of the frames, Kout half of them. A page that A1out remembers leaves it before room
//! is made for it.

use super::Policy;
use super::queue::{Entry, Queue, table};

const IN: u8 = 1;
const OUT: u8 = 2;
const MAIN: u8 = 3;

/// 2Q on three `Queue`s.
#[derive(Debug)]
pub struct TwoQ {
    table: Vec<Entry>,
    a1in: Queue,
    a1out: Queue,
    am: Queue,
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
            table: table(pages),
            a1in: Queue::new(IN),
            a1out: Queue::new(OUT),
            am: Queue::new(MAIN),
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
        if self.a1in.len() > self.kin || self.am.len() == 0 {
            if let Some(victim) = self.a1in.pop(&mut self.table) {
                if self.a1out.len() == self.kout {
                    self.a1out.pop(&mut self.table);
                }
                self.a1out.push(victim, &mut self.table);
            }
        } else {
            self.am.pop(&mut self.table);
        }
    }
}

impl Policy for TwoQ {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        match self.table[page as usize].list {
            IN => true,
            MAIN => {
                self.am.touch(page, &mut self.table);
                true
            }
            OUT => {
                self.ghost_hits += 1;
                // Out of the memory of A1out first: making room may need its place.
                self.a1out.remove(page, &mut self.table);
                self.make_room();
                self.am.push(page, &mut self.table);
                false
            }
            _ => {
                self.make_room();
                self.a1in.push(page, &mut self.table);
                false
            }
        }
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_fetching(self, references, |policy| &policy.table)
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.table, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(matches!(self.table[page as usize].list, IN | MAIN))
    }

    fn resident(&self) -> usize {
        self.a1in.len() + self.am.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("ghost hits", self.ghost_hits)]
    }
}
