//! Queues of pages that share one table: the building block of SLRU, LIRS and S3-FIFO.
//! Where what leaves a queue need not be named, a time line does with less.
//!
//! A queue is a ring of page numbers in the order of arrival. A page that is taken out of the middle, or moves to the young
//! end, stays where it was: its entry of the table says that it is elsewhere, and the place is passed over when its turn
//! comes. So such a move costs one entry of the table and one sequential write, where a doubly linked list would touch two
//! neighbours. Whoever looks for the oldest page looks at the entries of those before it, which are fetched [`AHEAD`] places
//! before their turn. A full ring is moved together; [`ROOM`] keeps that below one operation for each push.

use prefetch_index::prefetch_index;

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

/// So many places before its turn a page's entry is fetched.
const AHEAD: usize = 16;

/// Places of the ring for each page of the queue, once it is moved together.
const ROOM: usize = 3;

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
    /// Index of the oldest number in the ring, whose page may be elsewhere.
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
            self.place(page, table);
        }
    }

    /// Whether the page that stands at this place was not taken out since, nor moved.
    #[inline]
    fn stands(&self, page: u32, at: usize, table: &Table) -> bool {
        let entry = table[page as usize];
        (entry.at == at as u32) & (entry.list == self.list)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.ring.len() { 0 } else { at + 1 }
    }

    /// The oldest page.
    #[inline]
    pub fn oldest(&mut self, table: &Table) -> Option<u32> {
        while self.used > 0 {
            let page = self.ring[self.oldest];
            self.fetch_behind(self.oldest, table);
            if self.stands(page, self.oldest, table) {
                return Some(page);
            }
            self.skip();
        }
        None
    }

    /// Has the processor fetch the entry of the page some places behind this one.
    #[inline]
    fn fetch_behind(&self, place: usize, table: &Table) {
        let later = place + AHEAD;
        let later = if later >= self.ring.len() { later - self.ring.len() } else { later };
        prefetch_index(table, self.ring[later] as usize);
    }

    /// The pages, from the oldest on.
    pub fn pages(&self, table: &Table) -> impl Iterator<Item = u32> {
        let (wrapped, first) = self.ring.split_at(self.oldest);
        let places = (self.oldest..self.ring.len()).chain(0..self.oldest);
        let all = first.iter().chain(wrapped).zip(places).take(self.used);
        all.filter(|&(&page, at)| self.stands(page, at, table)).map(|(&page, _)| page)
    }

    /// The page that stands, or stood, so many places behind the oldest; `None` behind the last.
    #[inline]
    pub fn ahead(&self, places: usize) -> Option<u32> {
        let at = self.oldest + places;
        let at = if at >= self.ring.len() { at - self.ring.len() } else { at };
        (places < self.used).then(|| self.ring[at])
    }

    /// Takes out the oldest page.
    #[inline]
    pub fn pop(&mut self, table: &mut Table) -> Option<u32> {
        let page = self.oldest(table)?;
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
        self.live -= 1;
    }

    /// Moves the pages together, in a larger ring where this one has too little room.
    #[cold]
    fn compact(&mut self, table: &mut Table) {
        let size = ROOM * (self.live + 1);
        let mut grown = (size > self.ring.len()).then(|| vec![0; size].into_boxed_slice());
        // In place a page goes to where it is, or to a place that was read before.
        let (mut from, mut to) = (self.oldest, if grown.is_some() { 0 } else { self.oldest });
        let (first, mut kept) = (to, 0);
        for _ in 0..self.used {
            let page = self.ring[from];
            self.fetch_behind(from, table);
            // Without a branch, which would be mispredicted as often as not.
            let stands = self.stands(page, from, table);
            let entry = &mut table[page as usize];
            entry.at = if stands { to as u32 } else { entry.at };
            let ring = grown.as_mut().unwrap_or(&mut self.ring);
            ring[to] = page;
            to = if !stands {
                to
            } else if to + 1 == ring.len() {
                0
            } else {
                to + 1
            };
            kept += usize::from(stands);
            from = self.after(from);
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
                prop_assert!(queue.pages(&entries).eq(plain.iter().copied()));
            }
        }
    }
}
