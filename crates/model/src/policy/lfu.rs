//! Least frequently used.
//!
//! The page with the fewest references since it came in goes; among equals the one whose
//! count was reached first. A page's references are counted where it stands, and only the small counts have queues: those that evictions
//! choose among where pages come and go. A page that grows beyond them enters a heap once, with the count that it had then; what the
//! heap gives first and has grown since goes back with its count of now, as counts never fall. So a hit on a page that is referenced
//! often moves nothing, where the list of lists of K. Shah, A. Mitra and D. Matani ("An O(1) algorithm for implementing the LFU
//! cache eviction scheme", 2010) moves it to the next list.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{AHEAD, Policy};
use prefetch_index::prefetch_index;

/// Counts that have a queue.
const QUEUES: u32 = 4;

/// What is known of a page; 12 bytes.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, packed(4))]
struct Node {
    /// References since it came in, 0 when not resident; 2^32 − 1 and more are one.
    count: u32,
    /// References to all pages when that was reached.
    time: u64,
}

/// LFU; 12 bytes a page, and up to 40 a frame.
#[derive(Debug)]
pub struct Lfu {
    nodes: Vec<Node>,
    /// Pages by the time at which they reached each count, from 1 on. Some have left or grown since: those are passed over. A page
    /// is evicted when the queues below its count are empty, so that it leaves nothing behind.
    queues: [VecDeque<u32>; QUEUES as usize],
    /// Pages that have grown beyond the queues by count and time, no greater than those of now.
    grown: BinaryHeap<Reverse<(u32, u64, u32)>>,
    now: u64,
    frames: usize,
    resident: usize,
}

impl Lfu {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self {
            nodes: vec![Node::default(); pages as usize],
            queues: Default::default(),
            grown: BinaryHeap::new(),
            now: 0,
            frames: frames as usize,
            resident: 0,
        }
    }

    fn evict(&mut self) {
        for (count, queue) in (1..).zip(&mut self.queues) {
            while let Some(page) = queue.pop_front() {
                if let Some(&later) = queue.get(AHEAD) {
                    prefetch_index(&self.nodes, later as usize);
                }
                let node = &mut self.nodes[page as usize];
                if node.count == count {
                    node.count = 0;
                    self.resident -= 1;
                    return;
                }
            }
        }
        while let Some(Reverse((count, time, page))) = self.grown.pop() {
            let node = &mut self.nodes[page as usize];
            if (node.count, node.time) == (count, time) {
                node.count = 0;
                self.resident -= 1;
                return;
            }
            self.grown.push(Reverse((node.count, node.time, page)));
        }
    }
}

impl Policy for Lfu {
    #[inline(always)]
    fn reference(&mut self, page: u32) -> bool {
        self.now += 1;
        let count = self.nodes[page as usize].count;
        if count == 0 {
            if self.resident == self.frames {
                self.evict();
            }
            self.resident += 1;
        }
        let node = Node { count: count.saturating_add(1), time: self.now };
        self.nodes[page as usize] = node;
        if count < QUEUES {
            self.queues[count as usize].push_back(page);
        } else if count == QUEUES {
            self.grown.push(Reverse((node.count, node.time, page)));
        }
        count > 0
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_fetching(self, references, |policy| &policy.nodes)
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.nodes, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.nodes[page as usize].count > 0)
    }

    fn resident(&self) -> usize {
        self.resident
    }
}
