//! The pages in the window: a FIFO queue, and a hash table that tells which pages are in it.

use pagelab_ring::MAX_WINDOW;

use super::events::FAULTS;
use super::system::PAGE;

/// Queue entries per page of the window: more than one, because the handler may run late.
const ROOM: usize = 4;
const ORDER: usize = ROOM * MAX_WINDOW as usize;
/// Entries of the hash table, at most half of them used.
const TABLE: usize = 2 * ORDER;
/// Pages removed at a time.
const BATCH: usize = 512;

/// The pages in the window.
pub struct Pages {
    order: [usize; ORDER],
    /// The pages, hashed by address; 0: free.
    table: [usize; TABLE],
    /// Number of pages added so far, and of pages removed so far.
    pushed: u64,
    left: u64,
    /// Entries of `order` in use, a power of two; the table uses twice as many.
    places: usize,
}

impl Pages {
    /// No pages.
    pub const fn new() -> Self {
        Self { order: [0; ORDER], table: [0; TABLE], pushed: 0, left: 0, places: 0 }
    }

    /// Makes room for a window of `window` pages and for the faults of a full ring, and touches no
    /// more memory than that. The queue must be empty.
    pub fn resize(&mut self, window: usize) {
        self.places = (ROOM * window).max(2 * FAULTS).next_power_of_two().min(ORDER);
    }

    /// Number of pages in the window.
    pub fn len(&self) -> usize {
        (self.pushed - self.left) as usize
    }

    /// Number of pages added so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    fn place(&self, page: usize) -> usize {
        // Fibonacci hashing (Knuth, volume 3, 6.4), by the upper bits.
        (page / PAGE).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> (usize::BITS - (2 * self.places).trailing_zeros())
    }

    fn behind(&self, at: usize) -> usize {
        (at + 1) & (2 * self.places - 1)
    }

    /// Whether the page at this address is in the window.
    pub fn has(&self, page: usize) -> bool {
        let mut at = self.place(page);
        while self.table[at] != 0 {
            if self.table[at] == page {
                return true;
            }
            at = self.behind(at);
        }
        false
    }

    /// Adds a page that is not in the window. Without room the page stays accessible, and its
    /// references go unrecorded.
    pub fn push(&mut self, page: usize) {
        if self.len() == self.places || page == 0 {
            return;
        }
        self.order[self.pushed as usize & (self.places - 1)] = page;
        self.pushed += 1;
        let mut at = self.place(page);
        while self.table[at] != 0 {
            at = self.behind(at);
        }
        self.table[at] = page;
    }

    /// Removes the `count` oldest pages, and passes them to `each` in batches sorted by address.
    pub fn take(&mut self, count: usize, mut each: impl FnMut(&[usize])) {
        let mut rest = count.min(self.len());
        let mut list = [0; BATCH];
        while rest > 0 {
            let some = rest.min(BATCH);
            for slot in list.iter_mut().take(some) {
                let page = self.order[self.left as usize & (self.places - 1)];
                self.left += 1;
                self.remove(page);
                *slot = page;
            }
            list[..some].sort_unstable();
            each(&list[..some]);
            rest -= some;
        }
    }

    /// Removes a page from the table, and moves up entries that collided with it.
    fn remove(&mut self, page: usize) {
        let mut free = self.place(page);
        while self.table[free] != page {
            if self.table[free] == 0 {
                return;
            }
            free = self.behind(free);
        }
        let mut at = free;
        loop {
            at = self.behind(at);
            let other = self.table[at];
            if other == 0 {
                break;
            }
            let home = self.place(other);
            // It may move to the free entry unless that lies before its home.
            let far = 2 * self.places - 1;
            if at.wrapping_sub(home) & far >= at.wrapping_sub(free) & far {
                self.table[free] = other;
                free = at;
            }
        }
        self.table[free] = 0;
    }

    /// Removes all pages.
    pub fn clear(&mut self) {
        while self.len() > 0 {
            let page = self.order[self.left as usize & (self.places - 1)];
            self.left += 1;
            self.remove(page);
        }
    }
}
