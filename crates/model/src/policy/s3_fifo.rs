//! S3-FIFO: a small FIFO queue filters out pages that are not referenced again; a main FIFO queue
//! with reinsertion keeps the others; a ghost queue remembers what the small one threw out.
//!
//! Source: J. Yang, Y. Zhang, Z. Qiu, Y. Yue and K. V. Rashmi, "FIFO queues are all you need for
//! cache eviction", SOSP 2023, algorithm 1, with its sizes (small: a tenth of the frames, ghost: as
//! many as the main queue) and its two bits of frequency (at most 3).
//!
//! The algorithm of the paper fills an empty cache through the small queue; here, as in its authors'
//! simulator, pages beyond the small queue's share go to the main queue until the first eviction.
//! The main queue evicts when it is above its share, the small one otherwise.

use super::Policy;
use super::queue::{NOWHERE, Queue, Table, table};

const SMALL: u8 = 1;
const MAIN: u8 = 2;
const GHOST: u8 = 3;

/// S3-FIFO on three `Queue`s; the note of a page is its frequency.
#[derive(Debug)]
pub struct S3Fifo {
    table: Box<Table>,
    small: Queue,
    main: Queue,
    ghost: Queue,
    frames: usize,
    small_frames: usize,
    promote_at: u8,
    evicting: bool,
}

impl S3Fifo {
    /// `frames` empty frames for the pages `0..pages`: `small` is the small queue's share of them,
    /// `promote_at` the hits (1 to 3) that take a page from the small queue to the main one.
    pub fn new(pages: u32, frames: u32, small: f64, promote_at: u8) -> Self {
        let small_frames = ((f64::from(frames) * small) as usize).max(1);
        Self {
            table: table(pages),
            small: Queue::new(SMALL),
            main: Queue::new(MAIN),
            ghost: Queue::new(GHOST),
            frames: frames as usize,
            small_frames,
            promote_at,
            evicting: false,
        }
    }

    #[inline]
    fn evict(&mut self) {
        while self.resident() >= self.frames {
            self.evicting = true;
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
                self.main.push(page, &mut self.table);
            } else {
                if self.ghost.len() + self.small_frames >= self.frames {
                    self.ghost.pop(&mut self.table);
                }
                self.ghost.push(page, &mut self.table);
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
            self.main.push(page, &mut self.table);
        }
    }
}

impl Policy for S3Fifo {
    #[inline]
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
                self.evict();
                self.main.push(page, &mut self.table);
                false
            }
            _ => {
                debug_assert_eq!(entry.list, NOWHERE);
                entry.note = 0;
                self.evict();
                if !self.evicting && self.small.len() >= self.small_frames {
                    self.main.push(page, &mut self.table);
                } else {
                    self.small.push(page, &mut self.table);
                }
                false
            }
        }
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count(self, references)
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(matches!(self.table[page as usize].list, SMALL | MAIN))
    }

    fn resident(&self) -> usize {
        self.small.len() + self.main.len()
    }
}
