//! Finds the pages that a policy evicted.

use super::Policy;

/// The resident pages of a policy. A policy does not name the pages that it evicts, so a search
/// finds them. A new page takes the place of the one found last, so the oldest pages are searched
/// first.
#[derive(Debug)]
pub struct Residents {
    list: Vec<u32>,
    /// The index at which the search continues.
    next: usize,
}

impl Residents {
    /// The pages below `pages` that are resident.
    pub fn of(policy: &dyn Policy, pages: u32) -> Self {
        let list = (0..pages).filter(|&page| policy.contains(page) == Some(true));
        Self { list: list.collect(), next: 0 }
    }

    /// Adds a loaded page.
    pub fn miss(&mut self, page: u32) {
        self.list.push(page);
    }

    /// Passes the pages that are no longer resident to `gone`, in any order.
    pub fn leave(&mut self, policy: &dyn Policy, gone: &mut dyn FnMut(u32)) {
        let left = policy.resident();
        let mut resident = 0;
        while self.list.len() > left && resident <= self.list.len() {
            self.next = if self.next < self.list.len() { self.next } else { 0 };
            let page = self.list[self.next];
            if policy.contains(page) == Some(true) {
                self.next += 1;
                resident += 1;
            } else {
                self.list.swap_remove(self.next);
                gone(page);
            }
        }
    }
}
