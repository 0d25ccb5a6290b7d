//! ARC: the frames are divided between pages referenced once (T1) and more than once (T2); hits in
//! the memories of what each evicted (B1, B2) move the border.
//!
//! Source: N. Megiddo and D. S. Modha, "ARC: a self-tuning, low overhead replacement cache",
//! FAST 2003, figure 4. The target p of T1 is a real number, as there.

use super::Policy;
use super::queue::{Entry, Queue, table};

const T1: u8 = 1;
const T2: u8 = 2;
const B1: u8 = 3;
const B2: u8 = 4;

/// ARC on four `Queue`s.
#[derive(Debug)]
pub struct Arc {
    table: Vec<Entry>,
    t1: Queue,
    t2: Queue,
    b1: Queue,
    b2: Queue,
    frames: usize,
    /// Target size of T1 in pages.
    p: f64,
    ghost_hits: u64,
    promotions: u64,
}

impl Arc {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self {
            table: table(pages),
            t1: Queue::new(T1),
            t2: Queue::new(T2),
            b1: Queue::new(B1),
            b2: Queue::new(B2),
            frames: frames as usize,
            p: 0.0,
            ghost_hits: 0,
            promotions: 0,
        }
    }

    /// Moves the oldest page of T1 or T2 to the memory of its list.
    #[inline]
    fn replace(&mut self, hit_in_b2: bool) {
        let t1 = self.t1.len();
        let over = t1 as f64 > self.p || (hit_in_b2 && t1 as f64 == self.p);
        if t1 > 0 && (over || self.t2.len() == 0) {
            if let Some(victim) = self.t1.pop(&mut self.table) {
                self.b1.push(victim, &mut self.table);
            }
        } else if let Some(victim) = self.t2.pop(&mut self.table) {
            self.b2.push(victim, &mut self.table);
        }
    }

    fn new_page(&mut self) {
        let c = self.frames;
        let l1 = self.t1.len() + self.b1.len();
        if l1 == c {
            if self.t1.len() < c {
                self.b1.pop(&mut self.table);
                self.replace(false);
            } else {
                self.t1.pop(&mut self.table);
            }
        } else {
            let all = l1 + self.t2.len() + self.b2.len();
            if all >= c {
                if all == 2 * c {
                    self.b2.pop(&mut self.table);
                }
                self.replace(false);
            }
        }
    }
}

impl Policy for Arc {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        match self.table[page as usize].list {
            T1 => {
                self.promotions += 1;
                self.t1.remove(page, &mut self.table);
                self.t2.push(page, &mut self.table);
                true
            }
            T2 => {
                self.t2.touch(page, &mut self.table);
                true
            }
            B1 => {
                self.ghost_hits += 1;
                let step = (self.b2.len() as f64 / self.b1.len() as f64).max(1.0);
                self.p = (self.p + step).min(self.frames as f64);
                self.b1.remove(page, &mut self.table);
                self.replace(false);
                self.t2.push(page, &mut self.table);
                false
            }
            B2 => {
                self.ghost_hits += 1;
                let step = (self.b1.len() as f64 / self.b2.len() as f64).max(1.0);
                self.p = (self.p - step).max(0.0);
                self.b2.remove(page, &mut self.table);
                self.replace(true);
                self.t2.push(page, &mut self.table);
                false
            }
            _ => {
                self.new_page();
                self.t1.push(page, &mut self.table);
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
        Some(matches!(self.table[page as usize].list, T1 | T2))
    }

    fn resident(&self) -> usize {
        self.t1.len() + self.t2.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("ghost hits", self.ghost_hits),
            ("promotions", self.promotions),
            ("target of T1, pages", self.p.round() as u64),
        ]
    }
}
