//! The pages in the window, in the order in which they came.

use pagelab_ring::MAX_WINDOW;

use super::events::FAULTS;
use super::system::PAGE;

/// Places for pages in their order, for each page of the window: more than one, as the handler may
/// come late.
const ROOM: usize = 4;
const ORDER: usize = ROOM * MAX_WINDOW as usize;
/// Places of the table, at most half of them used.
const TABLE: usize = 2 * ORDER;
/// Pages that are taken out at a time.
const BATCH: usize = 512;

/// The pages.
pub struct Pages {
    order: [usize; ORDER],
    /// Which pages there are, by a hash of the address; 0: free.
    table: [usize; TABLE],
    /// Pages that ever came, and that ever left.
    pushed: u64,
    left: u64,
    /// Places of `order` that are used, a power of two; of the table twice as many.
    places: usize,
}

impl Pages {
    /// None.
    pub const fn new() -> Self {
        Self { order: [0; ORDER], table: [0; TABLE], pushed: 0, left: 0, places: 0 }
    }

    /// Makes room for a window of so many pages, and for those of a full ring, where none is there:
    /// no more memory than it needs is touched.
    pub fn resize(&mut self, window: usize) {
        self.places = (ROOM * window).max(2 * FAULTS).next_power_of_two().min(ORDER);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        (self.pushed - self.left) as usize
    }

    /// How many ever came.
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

    /// Whether the page at this address is there.
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

    /// Adds one that is not there. Where there is no room, the page stays accessible, unseen.
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

    /// Takes the first `count` out and gives them, some at a time, in the order of their addresses.
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

    /// Removes a page from the table, and moves those that stood behind it for want of its place.
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
            // It may move to the free place if that is not before its own.
            let far = 2 * self.places - 1;
            if at.wrapping_sub(home) & far >= at.wrapping_sub(free) & far {
                self.table[free] = other;
                free = at;
            }
        }
        self.table[free] = 0;
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        while self.len() > 0 {
            let page = self.order[self.left as usize & (self.places - 1)];
            self.left += 1;
            self.remove(page);
        }
    }
}
