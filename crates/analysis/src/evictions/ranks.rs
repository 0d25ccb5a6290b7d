//! How many pages were referenced later than another one: a Fenwick tree over the time of their
//! last references (P. M. Fenwick, "A new data structure for cumulative frequency tables", 1994).

/// The times at which the pages in memory were referenced last.
#[derive(Debug)]
pub struct Ranks {
    tree: Vec<u32>,
    count: u32,
}

impl Ranks {
    /// No page, for times below `times`.
    pub fn new(times: usize) -> Self {
        Self { tree: vec![0; times + 1], count: 0 }
    }

    /// Pages in memory.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// A page in memory was referenced last at `time`.
    pub fn insert(&mut self, time: u32) {
        self.count += 1;
        self.change(time, 1);
    }

    /// The page of this time left, or was referenced again.
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

    /// Pages in memory that were referenced later than `time`.
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
