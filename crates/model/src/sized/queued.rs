//! FIFO, LRU, CLOCK and SIEVE over objects of different sizes: as over pages (`crate::policy`), but for how many go.

use super::{Sized, SizedKind};
use crate::paging::lists::Lists;

/// One list, and a bit an object.
#[derive(Debug)]
pub(super) struct Queued {
    kind: SizedKind,
    list: Lists,
    referenced: Vec<bool>,
    /// SIEVE's hand; `None` for the oldest.
    hand: Option<u32>,
}

impl Queued {
    pub fn new(kind: SizedKind, objects: u32) -> Self {
        Self { kind, list: Lists::new(objects, 1), referenced: vec![false; objects as usize], hand: None }
    }
}

impl Sized for Queued {
    fn grow(&mut self, objects: u32) {
        self.list.grow(objects);
        self.referenced.resize(objects as usize, false);
    }

    fn hit(&mut self, object: u32, _: u64) {
        if self.kind == SizedKind::Lru {
            self.list.to_head(0, object);
        }
        self.referenced[object as usize] = true;
    }

    fn enter(&mut self, object: u32, _: u64) {
        self.referenced[object as usize] = false;
        self.list.to_head(0, object);
    }

    fn evict(&mut self) -> Option<u32> {
        let mut at = self.list.tail(0)?;
        match self.kind {
            SizedKind::Clock => {
                while std::mem::take(&mut self.referenced[at as usize]) {
                    self.list.to_head(0, at);
                    at = self.list.tail(0)?;
                }
            }
            SizedKind::Sieve => {
                at = self.hand.unwrap_or(at);
                while std::mem::take(&mut self.referenced[at as usize]) {
                    at = self.list.newer(at).or(self.list.tail(0))?;
                }
                self.hand = self.list.newer(at);
            }
            _ => {}
        }
        self.list.remove(at);
        Some(at)
    }
}
