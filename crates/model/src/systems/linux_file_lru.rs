//! Linux since 5.9 with the classic lists: file pages of one cgroup, read through descriptors.
//!
//! A page that is read enters the inactive list. The second read of an inactive page activates it
//! (`folio_mark_accessed`). Reclaim evicts from the old end of the inactive list; the accessed flag
//! of an inactive page does not save it (`PAGEREF_RECLAIM_CLEAN`). Eviction records the
//! clock of evictions and activations; a page enters the active list if it returns before the clock
//! has advanced by the number of active pages (`workingset_refault`). Reclaim also deactivates the oldest active pages if the
//! inactive list is short, or if a page returned to the active list since the last reclaim.
//!
//! Source: mm/swap.c, mm/workingset.c and mm/vmscan.c. Without swap only file pages compete. The
//! model leaves out read-ahead, dirty pages, mapped pages and folios of several pages.

use crate::paging::lists::Lists;
use crate::policy::{Policy, grow, grow_with};

use super::linux_lru::{ACTIVE, BATCH, INACTIVE, NONE, inactive_is_low};

/// The file pages of one cgroup.
#[derive(Debug)]
pub struct LinuxFileLru {
    lists: Lists,
    accessed: Vec<bool>,
    /// The clock at a page's eviction.
    shadow: Vec<u64>,
    /// `nonresident_age`: counts evictions and activations.
    age: u64,
    /// Whether a page returned to the active list since the last reclaim.
    returned: bool,
    frames: u32,
}

impl LinuxFileLru {
    /// Creates empty lists for `frames` (at least 1) frames and the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        let mut new = Self {
            lists: Lists::new(0, 2),
            accessed: Vec::new(),
            shadow: Vec::new(),
            age: 0,
            returned: false,
            frames: frames.max(1),
        };
        new.grow(pages);
        new
    }

    fn activate(&mut self, page: u32) {
        self.age += 1;
        self.lists.to_head(ACTIVE, page);
    }

    fn hit(&mut self, page: u32) {
        if self.lists.of(page) == Some(INACTIVE) && self.accessed[page as usize] {
            self.accessed[page as usize] = false;
            self.activate(page);
        } else {
            self.accessed[page as usize] = true;
        }
    }

    /// Frees a batch of frames, and deactivates the same share of the active list if needed.
    fn reclaim(&mut self) {
        let [active, inactive] = [ACTIVE, INACTIVE].map(|list| u64::from(self.lists.len(list)));
        if std::mem::take(&mut self.returned) || inactive_is_low(active, inactive) {
            let batch = u64::from(BATCH);
            let share = (batch * active).div_ceil(inactive.max(batch));
            for _ in 0..share.max(batch) {
                let Some(page) = self.lists.tail(ACTIVE) else { break };
                self.lists.to_head(INACTIVE, page);
            }
        }
        for _ in 0..BATCH.min(self.frames) {
            let Some(page) = self.lists.tail(INACTIVE) else { break };
            self.lists.remove(page);
            self.shadow[page as usize] = self.age;
            self.age += 1;
        }
    }

    fn read(&mut self, page: u32) {
        if self.resident() >= self.frames as usize {
            self.reclaim();
        }
        let shadow = std::mem::replace(&mut self.shadow[page as usize], NONE);
        let distance = self.age.saturating_sub(shadow);
        if shadow != NONE && distance <= u64::from(self.lists.len(ACTIVE)) {
            self.activate(page);
            self.returned = true;
        } else {
            self.lists.to_head(INACTIVE, page);
        }
        self.accessed[page as usize] = true;
    }
}

impl Policy for LinuxFileLru {
    fn reference(&mut self, page: u32) -> bool {
        let hit = self.lists.of(page).is_some();
        if hit {
            self.hit(page)
        } else {
            self.read(page)
        }
        hit
    }

    fn grow(&mut self, pages: u32) {
        self.lists.grow(pages);
        grow(&mut self.accessed, pages);
        grow_with(&mut self.shadow, pages, NONE);
    }

    fn resident(&self) -> usize {
        (self.lists.len(ACTIVE) + self.lists.len(INACTIVE)) as usize
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.lists.of(page).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Misses of a second pass over `pages` pages.
    fn second_pass(pages: u32, frames: u32) -> u64 {
        let mut lists = LinuxFileLru::new(pages, frames);
        let all: Vec<u32> = (0..pages).collect();
        lists.misses(&all);
        lists.misses(&all)
    }

    #[test]
    fn a_file_that_fits_is_read_once_and_a_longer_loop_misses() {
        assert_eq!(second_pass(1000, 1000), 0);
        assert_eq!(second_pass(3000, 1000), 3000);
    }

    #[test]
    fn pages_read_twice_survive_a_scan() {
        let mut lists = LinuxFileLru::new(10_000, 1000);
        let hot: Vec<u32> = (0..300).collect();
        for _ in 0..2 {
            lists.misses(&hot);
        }
        lists.misses(&(300..10_000).collect::<Vec<_>>());
        assert_eq!(lists.misses(&hot), 0);
    }

    proptest! {
        #[test]
        fn frames_are_never_exceeded(
            references in proptest::collection::vec(0..200_u32, 1..3000), frames in 1..150_u32,
        ) {
            let mut lists = LinuxFileLru::new(200, frames);
            let opt = crate::policy::opt_misses(&pagelab_reference::Stream::new(200, references.clone()), frames);
            prop_assert!(lists.misses(&references) >= opt);
            prop_assert!(lists.resident() <= frames as usize);
        }
    }
}
