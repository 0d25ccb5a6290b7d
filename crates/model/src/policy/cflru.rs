//! CFLRU, clean-first LRU: among the pages that were referenced longest ago (the window) a clean one goes before a
//! dirty one, for a write costs more than a read.
//!
//! Source: S. Park, D. Jung, J. Kang, J. Kim and J. Lee, "CFLRU: a replacement algorithm for flash memory", CASES 2006. The window's
//! size is a share of the frames; the paper sets it by hand or while it runs, and a quarter is our default. Where
//! writes are not known every page is clean, and this is LRU.

use super::Policy;
use super::queue::{Entry, NOWHERE, Queue, table};

const WORKING: u8 = 1;
const CLEAN: u8 = 2;
const DIRTY: u8 = 3;

/// CFLRU on three `Queue`s; the note of an entry says whether the page is dirty.
#[derive(Debug)]
pub struct Cflru {
    table: Vec<Entry>,
    /// What is younger than the window.
    working: Queue,
    /// The window.
    clean: Queue,
    dirty: Queue,
    frames: usize,
    window: usize,
}

impl Cflru {
    /// `frames` empty frames for the pages `0..pages`; the window has the share `window` of them, at least one.
    pub fn new(pages: u32, frames: u32, window: f64) -> Self {
        let frames = frames as usize;
        Self {
            table: table(pages),
            working: Queue::new(WORKING),
            clean: Queue::new(CLEAN),
            dirty: Queue::new(DIRTY),
            frames,
            window: ((frames as f64 * window) as usize).clamp(1, frames),
        }
    }

    /// Lets pages fall into the window.
    #[inline]
    fn fall(&mut self) {
        while self.working.len() > self.frames - self.window {
            let Some(page) = self.working.pop(&mut self.table) else { return };
            let window = if self.table[page as usize].note == 0 { &mut self.clean } else { &mut self.dirty };
            window.push(page, &mut self.table);
        }
    }
}

impl Policy for Cflru {
    fn reference(&mut self, page: u32) -> bool {
        self.access(page, false)
    }

    #[inline]
    fn access(&mut self, page: u32, write: bool) -> bool {
        let list = self.table[page as usize].list;
        match list {
            NOWHERE => {
                if self.resident() == self.frames {
                    let window = if self.clean.len() > 0 { &mut self.clean } else { &mut self.dirty };
                    if let Some(victim) = window.pop(&mut self.table) {
                        self.table[victim as usize].note = 0;
                    }
                }
                self.working.push(page, &mut self.table);
            }
            WORKING => self.working.touch(page, &mut self.table),
            _ => {
                let window = if list == CLEAN { &mut self.clean } else { &mut self.dirty };
                window.remove(page, &mut self.table);
                self.working.push(page, &mut self.table);
            }
        }
        self.table[page as usize].note |= u8::from(write);
        self.fall();
        list != NOWHERE
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.table, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.table[page as usize].list != NOWHERE)
    }

    fn resident(&self) -> usize {
        self.working.len() + self.clean.len() + self.dirty.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A list of (page, dirty), the oldest first: the first clean one of the window goes, else the first.
        #[test]
        fn follows_its_definition(stream in streams(), frames in 1_usize..70, window in 0.0_f64..1.0, every in 1_usize..5) {
            let mut policy = Cflru::new(stream.pages(), frames as u32, window);
            let window = ((frames as f64 * window) as usize).max(1);
            let mut list: Vec<(u32, bool)> = Vec::new();
            for (now, &page) in stream.references().iter().enumerate() {
                let write = now % every == 0;
                let found = list.iter().position(|one| one.0 == page);
                let dirty = found.is_some_and(|place| list.remove(place).1);
                if found.is_none() && list.len() == frames {
                    let victim = list[..window].iter().position(|one| !one.1).unwrap_or(0);
                    list.remove(victim);
                }
                list.push((page, dirty || write));
                prop_assert_eq!(policy.access(page, write), found.is_some());
            }
        }

        #[test]
        fn without_writes_it_is_lru(stream in streams(), frames in 1_u32..70) {
            let mut lru = super::super::lru::Lru::new(stream.pages(), frames);
            let mut policy = Cflru::new(stream.pages(), frames, 0.25);
            prop_assert_eq!(hits(&mut policy, &stream), hits(&mut lru, &stream));
        }
    }
}
