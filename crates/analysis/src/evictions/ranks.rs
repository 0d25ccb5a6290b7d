//! Counts the pages with a later last reference than a page: a Fenwick tree over the times of last
//! references (P. M. Fenwick, "A new data structure for cumulative frequency tables", 1994).

/// The times of the last references to the pages in memory.
#[derive(Debug)]
pub struct Ranks {
    tree: Vec<u32>,
    count: u32,
}

impl Ranks {
    /// Creates an empty set for times below `times`.
    pub fn new(times: usize) -> Self {
        Self { tree: vec![0; times + 1], count: 0 }
    }

    /// Number of pages in memory.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Adds a page with its last reference at `time`.
    pub fn insert(&mut self, time: u32) {
        self.count += 1;
        self.change(time, 1);
    }

    /// Removes the page with its last reference at `time`.
    pub fn remove(&mut self, time: u32) {
        self.count -= 1;
        self.change(time, u32::MAX);
    }

    fn change(&mut self, time: u32, by: u32) {
        let mut at = time as usize + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Number of pages in memory with a later last reference than `time`.
    pub fn later_than(&self, time: u32) -> u32 {
        let mut at = time as usize + 1;
        let mut earlier = 0u32;
        while at > 0 {
            earlier = earlier.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        self.count - earlier
    }
}
