//! CAR, clock with adaptive replacement: ARC's two lists and two memories, with clocks in place of its LRU lists, so
//! that a hit sets a bit and moves nothing.
//!
//! Source: S. Bansal and D. S. Modha, "CAR: clock with adaptive replacement", FAST 2004, figure 2. The target p of T1 is
//! a real number. libCacheSim's CAR keeps another number of remembered pages.

use super::Policy;
use super::queue::{Entry, Queue, table};

const T1: u8 = 1;
const T2: u8 = 2;
const B1: u8 = 3;
const B2: u8 = 4;

/// CAR on four `Queue`s; the note of an entry is its reference bit.
#[derive(Debug)]
pub struct Car {
    table: Vec<Entry>,
    t1: Queue,
    t2: Queue,
    b1: Queue,
    b2: Queue,
    frames: usize,
    /// Target size of T1 in pages.
    p: f64,
    spared: u64,
    remembered: u64,
}

impl Car {
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
            spared: 0,
            remembered: 0,
        }
    }

    /// Makes a frame free: the hands pass over referenced pages, which go on as pages of T2.
    #[inline]
    fn replace(&mut self) {
        loop {
            let from_t1 = self.t2.len() == 0 || self.t1.len() as f64 >= self.p.max(1.0);
            let (hand, memory) =
                if from_t1 { (&mut self.t1, &mut self.b1) } else { (&mut self.t2, &mut self.b2) };
            let Some(page) = hand.pop(&mut self.table) else { return };
            let referenced = &mut self.table[page as usize].note;
            if *referenced == 0 {
                memory.push(page, &mut self.table);
                return;
            }
            *referenced = 0;
            self.t2.push(page, &mut self.table);
            self.spared += 1;
        }
    }
}

impl Policy for Car {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        let list = self.table[page as usize].list;
        if matches!(list, T1 | T2) {
            self.table[page as usize].note = 1;
            return true;
        }
        let c = self.frames;
        let known = matches!(list, B1 | B2);
        if self.resident() == c {
            self.replace();
            if !known && self.t1.len() + self.b1.len() == c {
                self.b1.pop(&mut self.table);
            } else if !known && self.resident() + self.b1.len() + self.b2.len() == 2 * c {
                self.b2.pop(&mut self.table);
            }
        }
        // What was remembered is still so: only a page that was not takes another's place in a memory.
        match list {
            B1 => {
                self.p = (self.p + (self.b2.len() as f64 / self.b1.len() as f64).max(1.0)).min(c as f64);
                self.b1.remove(page, &mut self.table);
                self.t2.push(page, &mut self.table);
            }
            B2 => {
                self.p = (self.p - (self.b1.len() as f64 / self.b2.len() as f64).max(1.0)).max(0.0);
                self.b2.remove(page, &mut self.table);
                self.t2.push(page, &mut self.table);
            }
            _ => self.t1.push(page, &mut self.table),
        }
        self.remembered += u64::from(known);
        self.table[page as usize].note = 0;
        false
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
        vec![("spared by the hand", self.spared), ("ghost hits", self.remembered)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Figure 2 line by line, on lists whose heads are in front.
    fn plain(references: &[u32], c: usize) -> Vec<bool> {
        let mut t1: VecDeque<(u32, bool)> = VecDeque::new();
        let mut t2: VecDeque<(u32, bool)> = VecDeque::new();
        // The LRU page of a memory is in front.
        let (mut b1, mut b2): (VecDeque<u32>, VecDeque<u32>) = Default::default();
        let (mut p, mut all) = (0.0_f64, Vec::new());
        for &x in references {
            if let Some(one) = t1.iter_mut().chain(&mut t2).find(|one| one.0 == x) {
                one.1 = true;
                all.push(true);
                continue;
            }
            all.push(false);
            let history = b1.contains(&x) || b2.contains(&x);
            if t1.len() + t2.len() == c {
                loop {
                    // The figure takes T1 for not empty where T2 is.
                    if t1.len() as f64 >= p.max(1.0) || t2.is_empty() {
                        let (page, bit) = t1.pop_front().unwrap();
                        if !bit {
                            b1.push_back(page);
                            break;
                        }
                        t2.push_back((page, false));
                    } else {
                        let (page, bit) = t2.pop_front().unwrap();
                        if !bit {
                            b2.push_back(page);
                            break;
                        }
                        t2.push_back((page, false));
                    }
                }
                if !history && t1.len() + b1.len() == c {
                    b1.pop_front();
                } else if !history && t1.len() + t2.len() + b1.len() + b2.len() == 2 * c {
                    b2.pop_front();
                }
            }
            if !history {
                t1.push_back((x, false));
            } else if b1.contains(&x) {
                p = (p + (b2.len() as f64 / b1.len() as f64).max(1.0)).min(c as f64);
                b1.retain(|&page| page != x);
                t2.push_back((x, false));
            } else {
                p = (p - (b1.len() as f64 / b2.len() as f64).max(1.0)).max(0.0);
                b2.retain(|&page| page != x);
                t2.push_back((x, false));
            }
            assert!(t1.len() + b1.len() <= c && t1.len() + t2.len() + b1.len() + b2.len() <= 2 * c);
        }
        all
    }

    proptest! {
        #[test]
        fn follows_the_figure(stream in streams(), frames in 1_usize..70) {
            let mut policy = Car::new(stream.pages(), frames as u32);
            prop_assert_eq!(hits(&mut policy, &stream), plain(stream.references(), frames));
        }
    }
}
