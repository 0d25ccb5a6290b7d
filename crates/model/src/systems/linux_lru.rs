//! Linux since 5.9, the classic lists: active and inactive anonymous pages with refault distance.
//!
//! New and swapped-in pages start on the inactive list. At its old end a page that was referenced
//! once goes around again, and becomes active the second time; the others are evicted. An evicted
//! page leaves a shadow with the clock of evictions and activations; when it comes back, and the
//! distance is no more than the number of active pages, it would have stayed with a little more
//! memory, and goes to the active list at once. The active list gives pages back when it is too
//! large against the inactive one, and when a page came back to it since the last reclaim
//! (`prepare_scan_count`, `snapshot_refaults`). Reclaim scans a share of both lists that doubles
//! until a batch is reclaimed: a list's length shifted right by the priority (`get_scan_count`).
//!
//! Source: Documentation/mm and the comments of mm/workingset.c and mm/vmscan.c (Johannes Weiner's
//! refault distance, 3.15; for anonymous memory Joonsoo Kim, 5.9). Watermarks as of `min_free_kbytes`
//! for the memory limit's frames are not those of a cgroup: a cgroup has none, and reclaims on the
//! faulting process's time in batches of 32. That is what this model does.

use crate::paging::lists::Lists;
use crate::paging::{Arrival, Machine, System};

pub(super) const ACTIVE: u8 = 0;
pub(super) const INACTIVE: u8 = 1;

/// Pages of one batch of reclaim (`SWAP_CLUSTER_MAX`).
pub(super) const BATCH: u32 = 32;

/// The priority at which reclaim begins (`DEF_PRIORITY`).
const FIRST_PRIORITY: u32 = 12;

/// No shadow.
pub(super) const NONE: u64 = u64::MAX;

/// `inactive_is_low`: the maximum number of active pages per inactive page is `int_sqrt(10 · GiB)`,
/// or 1 below 1 GiB.
pub(super) fn inactive_is_low(active: u64, inactive: u64) -> bool {
    let gibibytes = (active + inactive) >> 18;
    let ratio = if gibibytes > 0 { (10 * gibibytes).isqrt() } else { 1 };
    inactive * ratio < active
}

/// The system's state.
#[derive(Debug)]
pub struct LinuxLru {
    lists: Lists,
    referenced: Vec<bool>,
    /// The age clock at a page's eviction.
    shadow: Vec<u64>,
    /// `nonresident_age`: grows with every eviction and every activation.
    age: u64,
    /// Whether a page came back to the active list since the last reclaim.
    returned: bool,
}

impl LinuxLru {
    /// For an address space of `pages` pages.
    pub fn new(pages: u32) -> Self {
        Self {
            lists: Lists::new(pages, 2),
            referenced: vec![false; pages as usize],
            shadow: vec![NONE; pages as usize],
            age: 0,
            returned: false,
        }
    }

    fn activate(&mut self, page: u32) {
        self.age += 1;
        self.referenced[page as usize] = false;
        self.lists.to_head(ACTIVE, page);
    }

    /// `shrink_active_list`: deactivates `count` pages; the reference bits are dropped.
    fn shrink_active(&mut self, machine: &mut Machine, count: u32) {
        for _ in 0..count {
            let Some(page) = self.lists.tail(ACTIVE) else { break };
            machine.scan();
            if machine.mapped(page) {
                machine.test_and_clear_young(page);
            }
            self.lists.to_head(INACTIVE, page);
        }
    }

    /// `shrink_inactive_list` on `count` pages. Returns the number of pages that were evicted or
    /// whose output began.
    fn shrink_inactive(&mut self, machine: &mut Machine, count: u32) -> u32 {
        let mut reclaimed = 0;
        for _ in 0..count {
            let Some(page) = self.lists.tail(INACTIVE) else { break };
            machine.scan();
            if machine.in_flight(page) {
                self.lists.to_head(INACTIVE, page);
                continue;
            }
            let young = machine.mapped(page) && machine.test_and_clear_young(page);
            if young && self.referenced[page as usize] {
                self.activate(page);
                continue;
            }
            if young {
                self.referenced[page as usize] = true;
                self.lists.to_head(INACTIVE, page);
                continue;
            }
            self.referenced[page as usize] = false;
            if machine.mapped(page) {
                machine.unmap(page);
            }
            if machine.dirty(page) {
                machine.write(page);
                self.lists.to_head(INACTIVE, page);
            } else {
                self.evict(machine, page);
            }
            reclaimed += 1;
        }
        reclaimed
    }

    /// `shrink_lruvec`: scans a share of both lists in batches, until a batch is reclaimed. Returns
    /// the number of reclaimed pages.
    fn shrink(&mut self, machine: &mut Machine, priority: u32) -> u32 {
        let [active, inactive] = [ACTIVE, INACTIVE].map(|list| self.lists.len(list));
        let deactivates = self.returned || inactive_is_low(active.into(), inactive.into());
        let mut active = if deactivates { active >> priority } else { 0 };
        let mut inactive = inactive >> priority;
        let mut reclaimed = 0;
        while active + inactive > 0 && reclaimed < BATCH {
            let batch = inactive.min(BATCH);
            reclaimed += self.shrink_inactive(machine, batch);
            inactive -= batch;
            let batch = active.min(BATCH);
            self.shrink_active(machine, batch);
            active -= batch;
        }
        reclaimed
    }

    fn evict(&mut self, machine: &mut Machine, page: u32) {
        self.lists.remove(page);
        self.shadow[page as usize] = self.age;
        self.age += 1;
        machine.free(page);
    }
}

impl System for LinuxLru {
    fn arrived(&mut self, _machine: &mut Machine, page: u32, arrival: Arrival) {
        self.referenced[page as usize] = false;
        let shadow = std::mem::replace(&mut self.shadow[page as usize], NONE);
        let distance = self.age.saturating_sub(shadow);
        // The workingset that the page competes with is the active list.
        if arrival != Arrival::ReadAhead && shadow != NONE && distance <= u64::from(self.lists.len(ACTIVE)) {
            self.returned = true;
            self.activate(page);
        } else {
            self.lists.to_head(INACTIVE, page);
        }
    }

    fn remapped(&mut self, _machine: &mut Machine, page: u32) {
        self.referenced[page as usize] = true;
    }

    /// A page whose output is complete goes to the old end, to be freed next (`PG_reclaim`).
    fn written(&mut self, machine: &mut Machine, page: u32) {
        if self.lists.of(page) == Some(INACTIVE) && !machine.mapped(page) && !machine.dirty(page) {
            self.lists.to_tail(INACTIVE, page);
        }
    }

    /// `do_try_to_free_pages` for one batch.
    fn direct(&mut self, machine: &mut Machine) -> u64 {
        let mut reclaimed = 0;
        for priority in (0..=FIRST_PRIORITY).rev() {
            reclaimed += self.shrink(machine, priority);
            if reclaimed >= BATCH {
                break;
            }
        }
        self.returned = false;
        0
    }
}
