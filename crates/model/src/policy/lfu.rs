//! Least frequently used.
//!
//! The page with the fewest references since it came in goes; among equals the one whose
//! count was reached first. Constant time by K. Shah, A. Mitra and D. Matani, "An O(1) algorithm for
//! implementing the LFU cache eviction scheme", 2010: a list of the counts in use, and under each
//! the list of its pages.

use super::Policy;
use prefetch_index::prefetch_index;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    older: u32,
    younger: u32,
    /// The bucket, [`NONE`] when not resident.
    bucket: u32,
}

impl Default for Node {
    fn default() -> Self {
        Self { older: NONE, younger: NONE, bucket: NONE }
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    count: u64,
    oldest: u32,
    youngest: u32,
    /// The buckets with the next smaller and larger counts.
    below: u32,
    above: u32,
}

/// LFU; 12 bytes a page, and a bucket for each count in use.
#[derive(Debug)]
pub struct Lfu {
    nodes: Vec<Node>,
    buckets: Vec<Bucket>,
    free: Vec<u32>,
    lowest: u32,
    frames: usize,
    resident: usize,
}

impl Lfu {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self {
            nodes: vec![Node::default(); pages as usize],
            buckets: Vec::new(),
            free: Vec::new(),
            lowest: NONE,
            frames: frames as usize,
            resident: 0,
        }
    }

    /// The bucket of `count`, which comes directly above `below` ([`NONE`]: the lowest).
    fn bucket_above(&mut self, below: u32, count: u64) -> u32 {
        let above = if below == NONE { self.lowest } else { self.buckets[below as usize].above };
        if above != NONE && self.buckets[above as usize].count == count {
            return above;
        }
        let bucket = Bucket { count, oldest: NONE, youngest: NONE, below, above };
        let new = match self.free.pop() {
            Some(slot) => {
                self.buckets[slot as usize] = bucket;
                slot
            }
            None => {
                self.buckets.push(bucket);
                self.buckets.len() as u32 - 1
            }
        };
        match below {
            NONE => self.lowest = new,
            _ => self.buckets[below as usize].above = new,
        }
        if above != NONE {
            self.buckets[above as usize].below = new;
        }
        new
    }

    fn append(&mut self, page: u32, bucket: u32) {
        let youngest = std::mem::replace(&mut self.buckets[bucket as usize].youngest, page);
        match youngest {
            NONE => self.buckets[bucket as usize].oldest = page,
            _ => self.nodes[youngest as usize].younger = page,
        }
        self.nodes[page as usize] = Node { older: youngest, younger: NONE, bucket };
    }

    /// Takes a page out of its bucket, and the bucket away when that was its last.
    fn unlink(&mut self, page: u32) {
        let Node { older, younger, bucket } = self.nodes[page as usize];
        self.nodes[page as usize].bucket = NONE;
        match older {
            NONE => self.buckets[bucket as usize].oldest = younger,
            _ => self.nodes[older as usize].younger = younger,
        }
        match younger {
            NONE => self.buckets[bucket as usize].youngest = older,
            _ => self.nodes[younger as usize].older = older,
        }
        let Bucket { oldest, below, above, .. } = self.buckets[bucket as usize];
        if oldest == NONE {
            match below {
                NONE => self.lowest = above,
                _ => self.buckets[below as usize].above = above,
            }
            if above != NONE {
                self.buckets[above as usize].below = below;
            }
            self.free.push(bucket);
        }
    }

    fn evict(&mut self) {
        let Bucket { oldest, .. } = self.buckets[self.lowest as usize];
        self.unlink(oldest);
        self.resident -= 1;
    }

    fn enter(&mut self, page: u32) {
        let bucket = self.bucket_above(NONE, 1);
        self.append(page, bucket);
        self.resident += 1;
    }
}

impl Policy for Lfu {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        let bucket = self.nodes[page as usize].bucket;
        if bucket == NONE {
            if self.resident == self.frames {
                self.evict();
            }
            self.enter(page);
            return false;
        }
        let Bucket { count, oldest, youngest, above, .. } = self.buckets[bucket as usize];
        let count = count + 1;
        // Alone in its bucket, as pages that are referenced often are: the bucket becomes that of the next count.
        if oldest == youngest && (above == NONE || self.buckets[above as usize].count != count) {
            self.buckets[bucket as usize].count = count;
            return true;
        }
        let target = self.bucket_above(bucket, count);
        self.unlink(page);
        self.append(page, target);
        true
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        // A page's neighbours in its bucket are written to when it leaves.
        super::count_after(self, references, |policy, page, sooner| {
            prefetch_index(&policy.nodes, page as usize);
            let Node { older, younger, .. } = policy.nodes[sooner as usize];
            prefetch_index(&policy.nodes, older as usize);
            prefetch_index(&policy.nodes, younger as usize);
        })
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.nodes, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.nodes[page as usize].bucket != NONE)
    }

    fn resident(&self) -> usize {
        self.resident
    }
}
