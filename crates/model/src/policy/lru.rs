//! Least recently used: the page whose last reference is longest ago goes.
//!
//! Source: R. L. Mattson, J. Gecsei, D. R. Slutz and I. L. Traiger, "Evaluation techniques for
//! storage hierarchies", IBM Systems Journal 9(2), 1970. The definition is unique.

use super::Policy;
use super::queue::{Entry, NOWHERE, Queue, table};

/// LRU on one `Queue`.
#[derive(Debug)]
pub struct Lru {
    table: Vec<Entry>,
    queue: Queue,
    frames: usize,
}

impl Lru {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self { table: table(pages), queue: Queue::new(1), frames: frames as usize }
    }
}

impl Policy for Lru {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        if self.table[page as usize].list != NOWHERE {
            self.queue.touch(page, &mut self.table);
            return true;
        }
        if self.queue.len() == self.frames {
            self.queue.pop(&mut self.table);
        }
        self.queue.push(page, &mut self.table);
        false
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
        self.queue.len()
    }
}
