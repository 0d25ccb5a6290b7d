//! Linux 2.4.19 stock: reclaim without a reverse map.
//!
//! Two lists for the whole machine. Reclaim takes pages from the old end of the inactive list; a page
//! that some process maps can not be freed there, because nothing leads from the page to the page
//! table. So, when enough mapped pages have been met, `swap_out` walks the processes' page tables in
//! the order of addresses and unmaps what was not referenced since its last visit and is not on the
//! active list. Eviction therefore follows addresses, filtered by reference bits.
//!
//! Source: the generic `mm/vmscan.c` of 2.4.19 (constants and order of tests in the fact sheet on
//! Linux's reverse maps, section 1). One process with one mapping stands for the walk over processes.
//!
//! A page that reclaim meets again while its output is under way (`PG_launder`) is waited for, by whoever reclaims; so
//! is a request of the block layer where all are taken. First come first served stands for the elevator: it puts a
//! request between two others only where one lies on either side of it, and the output of one run of slots leaves no
//! such place.
//!
//! Left out: the slab, dentry and inode caches, the file cache, locked pages, several zones.

use crate::paging::lists::Lists;
use crate::paging::{Arrival, Machine, System, Watermarks};

const ACTIVE: u8 = 0;
const INACTIVE: u8 = 1;

/// Pages that one pass is to free (`SWAP_CLUSTER_MAX`).
const CLUSTER: u32 = 32;
/// Where the priority of a reclaim starts (`DEF_PRIORITY`).
const PRIORITY: u32 = 6;

/// The system's state.
#[derive(Debug)]
pub struct Linux2419 {
    lists: Lists,
    /// `PG_referenced`: one more chance, not the hardware's bit.
    referenced: Vec<bool>,
    /// Where `swap_out` goes on (`swap_address`).
    cursor: u32,
    marks: Watermarks,
    /// Until when whoever reclaims waits for a page or for a request; 0: he does not.
    waits: u64,
}

impl Linux2419 {
    /// For an address space of `pages` pages in `frames` frames.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self {
            lists: Lists::new(pages, 2),
            referenced: vec![false; pages as usize],
            cursor: 0,
            marks: Watermarks::linux_2_4(frames),
            waits: 0,
        }
    }

    /// `mark_page_accessed`: an inactive page that was referenced before becomes active.
    fn mark_accessed(&mut self, page: u32) {
        if self.lists.of(page) == Some(INACTIVE) && self.referenced[page as usize] {
            self.referenced[page as usize] = false;
            self.lists.to_head(ACTIVE, page);
        } else {
            self.referenced[page as usize] = true;
        }
    }

    /// `refill_inactive`: moves `count` pages from the old end of the active list. Those that were referenced go to
    /// its young end and do not count.
    fn refill_inactive(&mut self, machine: &mut Machine, mut count: u32) {
        for _ in 0..self.lists.len(ACTIVE) {
            if count == 0 {
                break;
            }
            let Some(page) = self.lists.tail(ACTIVE) else { break };
            machine.scan();
            if std::mem::take(&mut self.referenced[page as usize]) {
                self.lists.to_head(ACTIVE, page);
            } else {
                // It keeps one more chance on the inactive list.
                self.referenced[page as usize] = true;
                self.lists.to_head(INACTIVE, page);
                count -= 1;
            }
        }
    }

    /// `shrink_cache`: frees up to `wanted` pages from the old end of the inactive list, and turns to
    /// `swap_out` when too many of them are mapped. Returns how many are still wanted.
    fn shrink_cache(&mut self, machine: &mut Machine, mut wanted: u32, priority: u32) -> u32 {
        let scan = self.lists.len(INACTIVE) / priority;
        let mut max_mapped = (CLUSTER << (10 - priority)).min(scan / 10);
        for _ in 0..scan {
            let Some(page) = self.lists.tail(INACTIVE) else { break };
            machine.scan();
            self.lists.to_head(INACTIVE, page);
            if machine.mapped(page) {
                if max_mapped == 0 {
                    self.swap_out(machine);
                    return wanted;
                }
                max_mapped -= 1;
            } else if machine.in_flight(page) {
                self.waits = machine.written_at(page).unwrap_or(0);
                break;
            } else if machine.dirty(page) {
                if let Some(at) = machine.room_at() {
                    self.waits = at;
                    break;
                }
                machine.write(page);
            } else {
                self.lists.remove(page);
                machine.free(page);
                wanted -= 1;
                if wanted == 0 {
                    break;
                }
            }
        }
        wanted
    }

    /// `swap_out`: goes on through the address space until [`CLUSTER`] pages are unmapped, once
    /// around at the most.
    fn swap_out(&mut self, machine: &mut Machine) {
        let mut wanted = CLUSTER;
        for _ in 0..machine.pages() {
            let page = self.cursor;
            self.cursor = (self.cursor + 1) % machine.pages();
            if !machine.mapped(page) {
                continue;
            }
            machine.scan();
            if machine.test_and_clear_young(page) {
                self.mark_accessed(page);
            } else if self.lists.of(page) != Some(ACTIVE) {
                machine.unmap(page);
                wanted -= 1;
                if wanted == 0 {
                    break;
                }
            }
        }
    }

    /// `try_to_free_pages`: rising urgency until [`CLUSTER`] pages are free.
    fn try_to_free(&mut self, machine: &mut Machine) {
        let mut wanted = CLUSTER;
        for priority in (1..=PRIORITY).rev() {
            let ratio = wanted * self.lists.len(ACTIVE) / (2 * (self.lists.len(INACTIVE) + 1));
            self.refill_inactive(machine, ratio);
            wanted = self.shrink_cache(machine, wanted, priority);
            if wanted == 0 || self.waits > 0 {
                break;
            }
        }
    }

    /// One pass of reclaim; how long it then waits for a page or a request.
    fn pass(&mut self, machine: &mut Machine) -> u64 {
        self.try_to_free(machine);
        std::mem::take(&mut self.waits).saturating_sub(machine.now())
    }
}

impl System for Linux2419 {
    fn marks(&self) -> Watermarks {
        self.marks
    }

    fn arrived(&mut self, _machine: &mut Machine, page: u32, arrival: Arrival) {
        self.referenced[page as usize] = false;
        self.lists.to_head(INACTIVE, page);
        if arrival != Arrival::ReadAhead {
            self.mark_accessed(page);
        }
    }

    fn remapped(&mut self, _machine: &mut Machine, page: u32) {
        self.mark_accessed(page);
    }

    fn daemon(&mut self, machine: &mut Machine) -> u64 {
        let before = machine.tally().freed;
        let waits = self.pass(machine);
        // kswapd sleeps a second when a balancing round failed.
        if machine.tally().freed == before && waits == 0 { super::SECOND } else { waits }
    }

    fn direct(&mut self, machine: &mut Machine) -> u64 {
        self.pass(machine)
    }
}
