//! ARC: the frames are divided between pages referenced once (T1) and more than once (T2); hits in
//! the memories of what each evicted (B1, B2) move the border.
//!
//! Source: N. Megiddo and D. S. Modha, "ARC: a self-tuning, low overhead replacement cache",
//! FAST 2003, figure 4. The target p of T1 is a real number, as there.

use super::Policy;
use super::time_line::{List, NEVER, SECOND};
use prefetch_index::prefetch_index;

/// ARC on two lines: T1 and B1, T2 and B2. 4 bytes a page, and half a byte for each line.
#[derive(Debug)]
pub struct Arc {
    /// The place of each page, with its line.
    table: Vec<u32>,
    first: List,
    second: List,
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
            table: vec![NEVER; pages as usize],
            first: List::new(),
            second: List::new(),
            frames: frames as usize,
            p: 0.0,
            ghost_hits: 0,
            promotions: 0,
        }
    }

    /// Moves the oldest page of T1 or T2 to the memory of its list.
    #[inline]
    fn replace(&mut self, hit_in_b2: bool) {
        let t1 = self.first.resident;
        let over = t1 as f64 > self.p || (hit_in_b2 && t1 as f64 == self.p);
        if t1 > 0 && (over || self.second.resident == 0) {
            self.first.evict();
        } else if self.second.resident > 0 {
            self.second.evict();
        }
    }

    /// Makes room for a page of which nothing is known, which enters T1.
    #[inline]
    fn new_page(&mut self, page: u32) {
        let c = self.frames;
        if self.first.len() == c {
            if self.first.resident < c {
                self.first.forget();
                self.replace(false);
            } else {
                self.first.evict();
                self.first.forget();
            }
        } else {
            let all = self.first.len() + self.second.len();
            if all >= c {
                if all == 2 * c {
                    self.second.forget();
                }
                self.replace(false);
            }
        }
        if self.first.line.is_full() {
            self.first.line.move_together(0, &mut self.table, &mut self.first.marks);
        }
        self.table[page as usize] = self.first.line.take();
        self.first.resident += 1;
    }

    /// Puts a page that is on no line at the young end of T2.
    #[inline]
    fn enter_second(&mut self, page: u32) {
        if self.second.line.is_full() {
            self.second.line.move_together(SECOND, &mut self.table, &mut self.second.marks);
        }
        self.table[page as usize] = self.second.line.take() | SECOND;
        self.second.resident += 1;
    }
}

impl Policy for Arc {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        let entry = self.table[page as usize];
        let place = entry & !SECOND;
        if entry & SECOND != 0 {
            let [resident, remembered] = self.second.marks;
            if place >= resident {
                self.second.line.leave(place);
                self.second.resident -= 1;
                self.enter_second(page);
                return true;
            }
            if place >= remembered {
                self.ghost_hits += 1;
                let step = (self.first.remembered as f64 / self.second.remembered as f64).max(1.0);
                self.p = (self.p - step).max(0.0);
                self.second.line.leave(place);
                self.second.remembered -= 1;
                self.replace(true);
                self.enter_second(page);
                return false;
            }
        } else {
            let [resident, remembered] = self.first.marks;
            if place >= resident {
                self.promotions += 1;
                self.first.line.leave(place);
                self.first.resident -= 1;
                self.enter_second(page);
                return true;
            }
            if place >= remembered {
                self.ghost_hits += 1;
                let step = (self.second.remembered as f64 / self.first.remembered as f64).max(1.0);
                self.p = (self.p + step).min(self.frames as f64);
                self.first.line.leave(place);
                self.first.remembered -= 1;
                self.replace(false);
                self.enter_second(page);
                return false;
            }
        }
        self.new_page(page);
        false
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_after(self, references, |policy, page, sooner| {
            prefetch_index(&policy.table, page as usize);
            let entry = policy.table[sooner as usize];
            let list = if entry & SECOND == 0 { &policy.first } else { &policy.second };
            list.line.fetch(entry & !SECOND);
        })
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.table, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        let entry = self.table[page as usize];
        let list = if entry & SECOND == 0 { &self.first } else { &self.second };
        Some(entry & !SECOND >= list.marks[0])
    }

    fn resident(&self) -> usize {
        self.first.resident + self.second.resident
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("ghost hits", self.ghost_hits),
            ("promotions", self.promotions),
            ("target of T1, pages", self.p.round() as u64),
        ]
    }
}
