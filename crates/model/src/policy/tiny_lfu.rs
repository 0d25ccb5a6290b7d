//! W-TinyLFU: new pages pass through a small LRU window; what leaves it is taken into the main part, a segmented LRU, only
//! if it was referenced more often of late than the page that would have to go.
//!
//! Source: G. Einziger, R. Friedman and B. Manes, "TinyLFU: a highly efficient cache admission policy", ACM Transactions on
//! Storage 13(4), 2017: a window of 1% of the frames, four fifths of the main part protected, counts up to 15 that are
//! halved after ten times as many references as there are frames. The paper keeps the counts in a sketch of a few bits a page; here
//! each page has its own, so that none is shared by chance.

use super::Policy;
use super::queue::{Entry, NOWHERE, Queue, table};

const WINDOW: u8 = 1;
const PROBATION: u8 = 2;
const PROTECTED: u8 = 3;

/// The greatest count.
const MAX_COUNT: u8 = 15;

/// Recent references of each page; 5 bytes a page.
#[derive(Debug)]
struct Counts {
    count: Vec<u8>,
    /// After how many halvings the count was right.
    halved: Vec<u32>,
    halvings: u32,
    every: u64,
    left: u64,
}

impl Counts {
    fn of(&self, page: u32) -> u8 {
        let halvings = self.halvings - self.halved[page as usize];
        self.count[page as usize].checked_shr(halvings).unwrap_or(0)
    }

    #[inline]
    fn note(&mut self, page: u32) {
        if self.left == 0 {
            self.left = self.every;
            self.halvings += 1;
        }
        self.left -= 1;
        self.count[page as usize] = (self.of(page) + 1).min(MAX_COUNT);
        self.halved[page as usize] = self.halvings;
    }
}

/// W-TinyLFU on three `Queue`s.
#[derive(Debug)]
pub struct TinyLfu {
    table: Vec<Entry>,
    window: Queue,
    probation: Queue,
    protected: Queue,
    counts: Counts,
    window_frames: usize,
    protected_frames: usize,
    frames: usize,
    admitted: u64,
    refused: u64,
}

impl TinyLfu {
    /// `frames` empty frames for the pages `0..pages`; the window has the share `window` of them, at least one.
    pub fn new(pages: u32, frames: u32, window: f64) -> Self {
        let frames = frames as usize;
        let window_frames = ((frames as f64 * window) as usize).clamp(1, frames);
        let every = 10 * frames as u64;
        Self {
            table: table(pages),
            window: Queue::new(WINDOW),
            probation: Queue::new(PROBATION),
            protected: Queue::new(PROTECTED),
            counts: Counts {
                count: vec![0; pages as usize],
                halved: vec![0; pages as usize],
                halvings: 0,
                every,
                left: every,
            },
            window_frames,
            protected_frames: (frames - window_frames) * 4 / 5,
            frames,
            admitted: 0,
            refused: 0,
        }
    }

    /// Finds a place, or none, for the page that leaves the window.
    #[inline]
    fn settle(&mut self) {
        let Some(candidate) = self.window.pop(&mut self.table) else { return };
        if self.probation.len() + self.protected.len() < self.frames - self.window_frames {
            self.probation.push(candidate, &mut self.table);
            return;
        }
        let main = if self.probation.len() > 0 { &mut self.probation } else { &mut self.protected };
        let victim = main.oldest(&self.table);
        let admitted = victim.is_some_and(|victim| self.counts.of(candidate) > self.counts.of(victim));
        if admitted {
            main.pop(&mut self.table);
            self.probation.push(candidate, &mut self.table);
            self.admitted += 1;
        } else {
            self.refused += 1;
        }
    }
}

impl Policy for TinyLfu {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        self.counts.note(page);
        match self.table[page as usize].list {
            WINDOW => self.window.touch(page, &mut self.table),
            PROTECTED => self.protected.touch(page, &mut self.table),
            PROBATION => {
                self.probation.remove(page, &mut self.table);
                self.protected.push(page, &mut self.table);
                if self.protected.len() > self.protected_frames
                    && let Some(falling) = self.protected.pop(&mut self.table)
                {
                    self.probation.push(falling, &mut self.table);
                }
            }
            _ => {
                self.window.push(page, &mut self.table);
                if self.window.len() > self.window_frames {
                    self.settle();
                }
                return false;
            }
        }
        true
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.table, pages);
        super::grow(&mut self.counts.count, pages);
        super::grow(&mut self.counts.halved, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.table[page as usize].list != NOWHERE)
    }

    fn resident(&self) -> usize {
        self.window.len() + self.probation.len() + self.protected.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("admitted", self.admitted), ("refused", self.refused)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;

    /// Three lists, the oldest first, and counts that are all halved at once.
    fn plain(references: &[u32], frames: usize, window: usize) -> Vec<bool> {
        let (mut recent, mut probation, mut protected) = (Vec::new(), Vec::new(), Vec::new());
        let mut counts = [0_u32; 64];
        let main = frames - window;
        let step = |(now, &page): (usize, &u32)| {
            if now > 0 && now % (10 * frames) == 0 {
                counts.iter_mut().for_each(|count| *count /= 2);
            }
            counts[page as usize] = (counts[page as usize] + 1).min(15);
            let out_of = |list: &mut Vec<u32>| list.iter().position(|&p| p == page).map(|at| list.remove(at));
            if out_of(&mut recent).is_some() {
                recent.push(page);
            } else if out_of(&mut protected).is_some() {
                protected.push(page);
            } else if out_of(&mut probation).is_some() {
                protected.push(page);
                if protected.len() > main * 4 / 5 {
                    probation.push(protected.remove(0));
                }
            } else {
                recent.push(page);
                if recent.len() > window {
                    let candidate = recent.remove(0);
                    if probation.len() + protected.len() < main {
                        probation.push(candidate);
                    } else if main > 0 {
                        let list = if probation.is_empty() { &mut protected } else { &mut probation };
                        if counts[candidate as usize] > counts[list[0] as usize] {
                            list.remove(0);
                            probation.push(candidate);
                        }
                    }
                }
                return false;
            }
            true
        };
        references.iter().enumerate().map(step).collect()
    }

    proptest! {
        #[test]
        fn follows_its_definition(stream in streams(), frames in 1_usize..70, window in 0.0_f64..0.5) {
            let mut policy = TinyLfu::new(stream.pages(), frames as u32, window);
            let window = ((frames as f64 * window) as usize).max(1);
            prop_assert_eq!(hits(&mut policy, &stream), plain(stream.references(), frames, window));
        }
    }
}
