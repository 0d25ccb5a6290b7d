//! Queues of pages that share one table: the building block of LRU, 2Q, ARC, SLRU, LIRS and S3-FIFO.
//!
//! A queue is a ring of page numbers in the order of arrival. Taking a page out of the middle only
//! changes the page's entry in the table; the number left in the ring is stale and is passed over
//! when its turn comes. So a move to the young end costs one entry and one sequential write, where
//! a doubly linked list would touch two neighbours, and the ring is read ahead by the processor.
//! A ring that fills with stale numbers is compacted; at least half of it is then free, so the cost
//! of compaction stays below a few operations for each push.

/// What the table holds for a page: the queue it is in, and where. 8 bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Entry {
    /// Index in the ring of the queue.
    at: u32,
    /// The queue's number, [`NOWHERE`] for none.
    pub list: u8,
    /// For the policy's own use (a count of hits, say).
    pub note: u8,
}

/// Entries of the table that are touched together before they are used.
pub(super) const GROUP: usize = 64;

/// The `list` of a page that is in no queue.
pub(super) const NOWHERE: u8 = 0;

/// One entry for each page; a page is in at most one queue of its table.
pub(super) type Table = [Entry];

/// A table for `pages` pages, none of them in a queue.
pub(super) fn table(pages: u32) -> Box<Table> {
    vec![Entry::default(); pages as usize].into()
}

/// A queue of pages with removal from the middle; all operations take amortised constant time.
#[derive(Debug)]
pub(super) struct Queue {
    list: u8,
    ring: Box<[u32]>,
    /// Index of the oldest number in the ring, stale or not.
    oldest: usize,
    /// Index where the next number goes.
    end: usize,
    /// Numbers between `oldest` and `end`, the stale ones included.
    used: usize,
    live: usize,
}

impl Queue {
    /// An empty queue whose pages carry the number `list` (not [`NOWHERE`]) in the table.
    pub fn new(list: u8) -> Self {
        Self { list, ring: vec![0; 64].into(), oldest: 0, end: 0, used: 0, live: 0 }
    }

    /// Pages in the queue.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Puts a page that is in no queue at the young end.
    #[inline]
    pub fn push(&mut self, page: u32, table: &mut Table) {
        self.live += 1;
        self.place(page, table);
    }

    /// Moves a page of this queue to the young end.
    #[inline]
    pub fn touch(&mut self, page: u32, table: &mut Table) {
        let youngest = if self.end == 0 { self.ring.len() } else { self.end } - 1;
        if self.ring[youngest] != page || table[page as usize].at as usize != youngest {
            // Stale from here on: should `place` compact the ring, it must not find the page twice.
            table[page as usize].list = NOWHERE;
            self.place(page, table);
        }
    }

    #[inline]
    fn place(&mut self, page: u32, table: &mut Table) {
        if self.used == self.ring.len() {
            self.compact(table);
        }
        self.ring[self.end] = page;
        let entry = &mut table[page as usize];
        entry.at = self.end as u32;
        entry.list = self.list;
        self.end = if self.end + 1 == self.ring.len() { 0 } else { self.end + 1 };
        self.used += 1;
    }

    /// The oldest page.
    #[inline]
    pub fn oldest(&mut self, table: &Table) -> Option<u32> {
        while self.used > 0 {
            let page = self.ring[self.oldest];
            let entry = table[page as usize];
            if entry.list == self.list && entry.at as usize == self.oldest {
                return Some(page);
            }
            self.skip();
        }
        None
    }

    /// Takes out the oldest page.
    #[inline]
    pub fn pop(&mut self, table: &mut Table) -> Option<u32> {
        let page = self.oldest(table)?;
        self.skip();
        table[page as usize].list = NOWHERE;
        self.live -= 1;
        Some(page)
    }

    #[inline]
    fn skip(&mut self) {
        self.oldest = if self.oldest + 1 == self.ring.len() { 0 } else { self.oldest + 1 };
        self.used -= 1;
    }

    /// Takes a page of this queue out of it.
    #[inline]
    pub fn remove(&mut self, page: u32, table: &mut Table) {
        debug_assert_eq!(table[page as usize].list, self.list);
        table[page as usize].list = NOWHERE;
        self.live -= 1;
    }

    #[cold]
    fn compact(&mut self, table: &mut Table) {
        let size = self.ring.len().max(2 * self.live).max(64);
        let mut fresh = vec![0; size];
        let mut kept = 0;
        let (tail, head) = self.ring.split_at(self.oldest);
        let first = self.used.min(head.len());
        let parts = [(self.oldest, &head[..first]), (0, &tail[..self.used - first])];
        for (begin, part) in parts {
            for (n, group) in part.chunks(GROUP).enumerate() {
                // Touched together: these loads do not wait for each other.
                std::hint::black_box(group.iter().fold(0, |sum, &page| sum ^ table[page as usize].at));
                for (i, &page) in group.iter().enumerate() {
                    let at = begin + n * GROUP + i;
                    let entry = &mut table[page as usize];
                    let live = entry.list == self.list && entry.at as usize == at;
                    // Without a branch, which would be mispredicted as often as not.
                    fresh[kept] = page;
                    entry.at = if live { kept as u32 } else { entry.at };
                    kept += usize::from(live);
                }
            }
        }
        self.used = kept;
        self.oldest = 0;
        self.end = kept;
        self.ring = fresh.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn behaves_as_a_plain_queue(operations in proptest::collection::vec((0u8..4, 0u32..40), 0..2000)) {
            let mut entries = table(40);
            let mut queue = Queue::new(1);
            let mut plain: VecDeque<u32> = VecDeque::new();
            for (operation, page) in operations {
                let inside = plain.contains(&page);
                match operation {
                    0 => {
                        prop_assert_eq!(queue.pop(&mut entries), plain.pop_front());
                    }
                    1 if inside => {
                        queue.remove(page, &mut entries);
                        plain.retain(|&p| p != page);
                    }
                    _ if inside => {
                        queue.touch(page, &mut entries);
                        plain.retain(|&p| p != page);
                        plain.push_back(page);
                    }
                    _ => {
                        queue.push(page, &mut entries);
                        plain.push_back(page);
                    }
                }
                prop_assert_eq!(queue.len(), plain.len());
            }
        }
    }
}
