//! S3-FIFO: a small FIFO queue filters out pages that are not referenced again; a main FIFO queue
//! with reinsertion keeps the others; a ghost queue remembers what the small one threw out.
//!
//! Source: J. Yang, Y. Zhang, Z. Qiu, Y. Yue and K. V. Rashmi, "FIFO queues are all you need for
//! cache eviction", SOSP 2023, algorithm 1, with its sizes (small: a tenth of the frames, ghost: nine
//! tenths, both rounded down) and its two bits of frequency (at most 3).
//!
//! The algorithm of the paper fills empty frames through the small queue, as its authors' simulator
//! (libCacheSim) did until 2024 ([`Fill::Small`]); since then pages beyond the small queue's share go to
//! the main queue until the first eviction ([`Fill::Main`], the default). The main queue evicts when it is
//! above its share, the small one otherwise. With fewer than 20 frames libCacheSim admits no page; here
//! the small queue has at least one frame.

use super::Policy;
use super::queue::{Entry, NOWHERE, Queue, table};

const SMALL: u8 = 1;
const MAIN: u8 = 2;
const GHOST: u8 = 3;

/// Where pages go while there are empty frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Fill {
    /// To the small queue.
    Small,
    /// To the small queue up to its share, then to the main one.
    Main,
}

/// S3-FIFO on three `Queue`s; the note of a page is its frequency.
#[derive(Debug)]
pub struct S3Fifo {
    table: Vec<Entry>,
    small: Queue,
    main: Queue,
    ghost: Queue,
    frames: usize,
    small_frames: usize,
    ghost_pages: usize,
    promote_at: u8,
    /// Whether new pages go to the main queue where the small one is full.
    filling_main: bool,
    ghost_hits: u64,
    promotions: u64,
    spared: u64,
}

impl S3Fifo {
    /// `frames` empty frames for the pages `0..pages`. The small queue and the ghost queue have these shares of them;
    /// `promote` (1 to 3) hits take a page from the small queue to the main one.
    pub fn new(pages: u32, frames: u32, small: f64, ghost: f64, promote: u8, fill: Fill) -> Self {
        let share = |share: f64| (f64::from(frames) * share) as usize;
        Self {
            table: table(pages),
            small: Queue::new(SMALL),
            main: Queue::new(MAIN),
            ghost: Queue::new(GHOST),
            frames: frames as usize,
            small_frames: share(small).max(1),
            ghost_pages: share(ghost),
            promote_at: promote,
            filling_main: fill == Fill::Main,
            ghost_hits: 0,
            promotions: 0,
            spared: 0,
        }
    }

    #[inline]
    fn evict(&mut self) {
        while self.resident() >= self.frames {
            self.filling_main = false;
            if self.main.len() > self.frames - self.small_frames || self.small.len() == 0 {
                self.evict_main();
            } else {
                self.evict_small();
            }
        }
    }

    #[inline]
    fn evict_small(&mut self) {
        while let Some(page) = self.small.pop(&mut self.table) {
            if self.table[page as usize].note >= self.promote_at {
                self.table[page as usize].note = 0;
                self.promotions += 1;
                self.main.push(page, &mut self.table);
            } else {
                if self.ghost_pages > 0 {
                    if self.ghost.len() == self.ghost_pages {
                        self.ghost.pop(&mut self.table);
                    }
                    self.ghost.push(page, &mut self.table);
                }
                return;
            }
        }
    }

    #[inline]
    fn evict_main(&mut self) {
        while let Some(page) = self.main.pop(&mut self.table) {
            let note = &mut self.table[page as usize].note;
            if *note == 0 {
                return;
            }
            *note -= 1;
            self.spared += 1;
            self.main.push(page, &mut self.table);
        }
    }
}

impl Policy for S3Fifo {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        let entry = &mut self.table[page as usize];
        match entry.list {
            SMALL | MAIN => {
                entry.note = (entry.note + 1).min(3);
                true
            }
            GHOST => {
                entry.note = 0;
                self.ghost.remove(page, &mut self.table);
                self.ghost_hits += 1;
                self.evict();
                self.main.push(page, &mut self.table);
                false
            }
            _ => {
                debug_assert_eq!(entry.list, NOWHERE);
                entry.note = 0;
                self.evict();
                if self.filling_main && self.small.len() >= self.small_frames {
                    self.main.push(page, &mut self.table);
                } else {
                    self.small.push(page, &mut self.table);
                }
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
        Some(matches!(self.table[page as usize].list, SMALL | MAIN))
    }

    fn resident(&self) -> usize {
        self.small.len() + self.main.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("ghost hits", self.ghost_hits),
            ("promotions", self.promotions),
            ("spared in the main queue", self.spared),
        ]
    }
}
