//! Queues of pages that share one table: the building block of LRU, 2Q, ARC, SLRU, LIRS and S3-FIFO.
//!
//! A queue is a ring of page numbers in the order of arrival. Taking a page out of the middle leaves a mark in its place
//! that is passed over when its turn comes. So a move to the young end costs one entry of the table, one mark and one
//! sequential write, where a doubly linked list would touch two neighbours; taking out the oldest looks at no entry but
//! that one's, and the ring is read ahead by the processor. A full ring is moved together; [`ROOM`] keeps that below
//! one operation for each push.

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

/// Places of the ring for each page of the queue, once it is moved together.
const ROOM: usize = 3;

/// What stands at a place whose page was taken out of the middle.
const GONE: u32 = u32::MAX;

/// The `list` of a page that is in no queue.
pub(super) const NOWHERE: u8 = 0;

/// One entry for each page; a page is in at most one queue of its table.
pub(super) type Table = [Entry];

/// A table for `pages` pages, none of them in a queue.
pub(super) fn table(pages: u32) -> Vec<Entry> {
    vec![Entry::default(); pages as usize]
}

/// A queue of pages with removal from the middle; all operations take amortised constant time.
#[derive(Debug)]
pub(super) struct Queue {
    list: u8,
    ring: Box<[u32]>,
    /// Index of the oldest number in the ring, [`GONE`] or not.
    oldest: usize,
    /// Index where the next number goes.
    end: usize,
    /// Places from `oldest` to `end`.
    used: usize,
    live: usize,
}

impl Queue {
    /// An empty queue whose pages carry the number `list` (not [`NOWHERE`]) in the table.
    pub fn new(list: u8) -> Self {
        Self { list, ring: vec![GONE; 64].into(), oldest: 0, end: 0, used: 0, live: 0 }
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

    #[inline]
    fn place(&mut self, page: u32, table: &mut Table) {
        if self.used == self.ring.len() {
            self.compact(table);
        }
        let at = self.end;
        self.ring[at] = page;
        let entry = &mut table[page as usize];
        entry.at = at as u32;
        entry.list = self.list;
        self.end = self.after(at);
        self.used += 1;
    }

    /// Moves a page of this queue to the young end.
    #[inline]
    pub fn touch(&mut self, page: u32, table: &mut Table) {
        let at = table[page as usize].at as usize;
        let youngest = if self.end == 0 { self.ring.len() } else { self.end } - 1;
        if at != youngest {
            self.ring[at] = GONE;
            self.place(page, table);
        }
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.ring.len() { 0 } else { at + 1 }
    }

    /// The oldest page.
    #[inline]
    pub fn oldest(&mut self) -> Option<u32> {
        while self.used > 0 {
            let page = self.ring[self.oldest];
            if page != GONE {
                return Some(page);
            }
            self.skip();
        }
        None
    }

    /// The pages, from the oldest on.
    pub fn pages(&self) -> impl Iterator<Item = u32> {
        let (wrapped, first) = self.ring.split_at(self.oldest);
        first.iter().chain(wrapped).take(self.used).copied().filter(|&page| page != GONE)
    }

    /// The page so many places behind the oldest; `None` where none stands there.
    #[inline]
    pub fn ahead(&self, places: usize) -> Option<u32> {
        let at = self.oldest + places;
        let at = if at >= self.ring.len() { at - self.ring.len() } else { at };
        (places < self.used).then(|| self.ring[at]).filter(|&page| page != GONE)
    }

    /// Takes out the oldest page.
    #[inline]
    pub fn pop(&mut self, table: &mut Table) -> Option<u32> {
        let page = self.oldest()?;
        self.skip();
        self.live -= 1;
        table[page as usize].list = NOWHERE;
        Some(page)
    }

    #[inline]
    fn skip(&mut self) {
        self.oldest = self.after(self.oldest);
        self.used -= 1;
    }

    /// Takes a page of this queue out of it.
    #[inline]
    pub fn remove(&mut self, page: u32, table: &mut Table) {
        let entry = &mut table[page as usize];
        debug_assert_eq!(entry.list, self.list);
        entry.list = NOWHERE;
        self.ring[entry.at as usize] = GONE;
        self.live -= 1;
    }

    /// Moves the pages together, in a larger ring where this one has too little room.
    #[cold]
    fn compact(&mut self, table: &mut Table) {
        let size = ROOM * (self.live + 1);
        let mut grown = (size > self.ring.len()).then(|| vec![GONE; size].into_boxed_slice());
        // In place a page goes to where it is, or to a place that was read before.
        let (mut from, mut to) = (self.oldest, if grown.is_some() { 0 } else { self.oldest });
        let first = to;
        let (mut left, mut kept) = (self.used, 0);
        let mut group = [0; GROUP];
        while left > 0 {
            let mut count = 0;
            while count < GROUP && left > 0 {
                let page = self.ring[from];
                // Without a branch, which would be mispredicted as often as not.
                group[count] = page;
                count += usize::from(page != GONE);
                from = self.after(from);
                left -= 1;
            }
            // Touched together: these loads do not wait for each other.
            std::hint::black_box(group[..count].iter().fold(0, |sum, &page| sum ^ table[page as usize].at));
            let ring = grown.as_mut().unwrap_or(&mut self.ring);
            for &page in &group[..count] {
                ring[to] = page;
                table[page as usize].at = to as u32;
                to = if to + 1 == ring.len() { 0 } else { to + 1 };
            }
            kept += count;
        }
        self.ring = grown.unwrap_or_else(|| std::mem::take(&mut self.ring));
        (self.oldest, self.end, self.used) = (first, to, kept);
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
