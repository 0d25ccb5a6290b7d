//! Least recently used: the page whose last reference is longest ago goes.
//!
//! Source: R. L. Mattson, J. Gecsei, D. R. Slutz and I. L. Traiger, "Evaluation techniques for
//! storage hierarchies", IBM Systems Journal 9(2), 1970. The definition is unique.

use super::Policy;
use super::time_line::{NEVER, TimeLine};
use prefetch_index::prefetch_index;

/// LRU on a time line; 4 bytes a page, and half a byte for the line.
#[derive(Debug)]
pub struct Lru {
    /// The place of each page's last reference.
    last: Vec<u32>,
    line: TimeLine,
    /// Where what is resident begins.
    oldest: u32,
    frames: usize,
    resident: usize,
}

impl Lru {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self {
            last: vec![NEVER; pages as usize],
            line: TimeLine::new(),
            oldest: 1,
            frames: frames as usize,
            resident: 0,
        }
    }

    #[cold]
    fn move_together(&mut self) {
        let mut marks = [self.oldest];
        self.line.move_together(0, &mut self.last, &mut marks);
        [self.oldest] = marks;
    }
}

impl Policy for Lru {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        if self.line.is_full() {
            self.move_together();
        }
        let place = &mut self.last[page as usize];
        let hit = *place >= self.oldest;
        self.line.leave(*place);
        *place = self.line.take();
        if !hit {
            if self.resident == self.frames {
                self.oldest = self.line.behind_oldest(self.oldest);
            } else {
                self.resident += 1;
            }
        }
        hit
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_after(self, references, |policy, page, sooner| {
            prefetch_index(&policy.last, page as usize);
            policy.line.fetch(policy.last[sooner as usize]);
        })
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.last, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.last[page as usize] >= self.oldest)
    }

    fn resident(&self) -> usize {
        self.resident
    }
}
