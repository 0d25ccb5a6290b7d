//! Linux since 6.1, multi-generational LRU: generations instead of two lists.
//!
//! Each page belongs to a generation, the youngest first; there are two to four. Aging walks the
//! page tables: referenced pages move to the youngest generation, and a new one begins. Eviction
//! takes the oldest generation from its old end; a page found referenced there moves to the
//! youngest instead of leaving, and so do its referenced neighbours in the page table
//! (`lru_gen_look_around`). When only two generations are left, aging must come before more
//! eviction. With three, it comes if the youngest holds more than half of the pages or the oldest
//! less than a quarter (`should_run_aging`).
//!
//! Source: Documentation/mm/multigen_lru.rst, Documentation/admin-guide/mm/multigen_lru.rst and
//! mm/vmscan.c (Yu Zhao, 6.1). Faulted-in pages enter the youngest generation; pages read ahead
//! enter the oldest. The tiers and the controller for file pages that are used through descriptors
//! play no part for memory that is only mapped, and are left out, as is the Bloom filter that
//! spares walks.

use crate::paging::lists::Lists;
use crate::paging::{Arrival, Machine, System};

/// Generations at the most (`MAX_NR_GENS`).
pub(super) const MAX_GENERATIONS: u64 = 4;
/// Generations at the least (`MIN_NR_GENS`).
pub(super) const MIN_GENERATIONS: u64 = 2;
/// Pages of one batch of reclaim.
const BATCH: u32 = 32;
/// Half of the page table entries that are searched around a referenced page (`MIN_LRU_BATCH`).
const AROUND: u32 = 32;

/// Whether the youngest generation holds more than half of the pages, or the oldest less than a
/// quarter.
pub(super) fn is_uneven(youngest: u64, oldest: u64, all: u64) -> bool {
    youngest * MIN_GENERATIONS > all || oldest * (MIN_GENERATIONS + 2) < all
}

/// The system's state.
#[derive(Debug)]
pub struct LinuxMglru {
    /// One list for each generation, by sequence number modulo [`MAX_GENERATIONS`].
    lists: Lists,
    youngest: u64,
    oldest: u64,
}

impl LinuxMglru {
    /// For an address space of `pages` pages.
    pub fn new(pages: u32) -> Self {
        Self { lists: Lists::new(pages, MAX_GENERATIONS as u8), youngest: MIN_GENERATIONS, oldest: 0 }
    }

    fn list(sequence: u64) -> u8 {
        (sequence % MAX_GENERATIONS) as u8
    }

    /// `inc_max_seq` with a walk of the page tables: what was referenced becomes young, and a new
    /// generation begins.
    fn age(&mut self, machine: &mut Machine) {
        if self.youngest + 1 - self.oldest == MAX_GENERATIONS {
            // The oldest generation must make room: what is left of it joins the next one's old end.
            while let Some(page) = self.lists.tail(Self::list(self.oldest)) {
                self.lists.to_tail(Self::list(self.oldest + 1), page);
            }
            self.oldest += 1;
        }
        for page in 0..machine.pages() {
            if machine.mapped(page) {
                machine.scan();
                if machine.test_and_clear_young(page) {
                    self.lists.to_head(Self::list(self.youngest), page);
                }
            }
        }
        self.youngest += 1;
    }

    /// `should_run_aging`: whether generations are missing, or unevenly filled.
    fn should_age(&self) -> bool {
        let generations = self.youngest - self.oldest;
        let len = |sequence| u64::from(self.lists.len(Self::list(sequence)));
        let all: u64 = (self.oldest..=self.youngest).map(len).sum();
        let uneven = is_uneven(len(self.youngest), len(self.oldest), all);
        generations < MIN_GENERATIONS || generations == MIN_GENERATIONS && uneven
    }

    /// `lru_gen_look_around`: what was referenced near `page` in the page table becomes young.
    fn look_around(&mut self, machine: &mut Machine, page: u32) {
        for near in page.saturating_sub(AROUND)..(page + AROUND).min(machine.pages()) {
            if machine.mapped(near) && machine.test_and_clear_young(near) {
                self.lists.to_head(Self::list(self.youngest), near);
            }
        }
    }

    /// Evicts one batch from the oldest generation.
    fn evict(&mut self, machine: &mut Machine) {
        while self.lists.len(Self::list(self.oldest)) == 0 && self.youngest - self.oldest >= MIN_GENERATIONS {
            self.oldest += 1;
        }
        if self.should_age() {
            self.age(machine);
        }
        for _ in 0..BATCH {
            let Some(page) = self.lists.tail(Self::list(self.oldest)) else { break };
            machine.scan();
            if machine.mapped(page) && machine.young(page) {
                self.look_around(machine, page);
            } else if machine.in_flight(page) {
                // Rotated: it comes up again when its output is complete.
                self.lists.to_head(Self::list(self.oldest + 1), page);
            } else {
                if machine.mapped(page) {
                    machine.unmap(page);
                }
                if machine.dirty(page) {
                    machine.write(page);
                    self.lists.to_head(Self::list(self.oldest + 1), page);
                } else {
                    self.lists.remove(page);
                    machine.free(page);
                }
            }
        }
    }
}

impl System for LinuxMglru {
    fn arrived(&mut self, _machine: &mut Machine, page: u32, arrival: Arrival) {
        let sequence = if arrival == Arrival::ReadAhead { self.oldest } else { self.youngest };
        self.lists.to_head(Self::list(sequence), page);
    }

    fn remapped(&mut self, _machine: &mut Machine, page: u32) {
        self.lists.to_head(Self::list(self.youngest), page);
    }

    fn written(&mut self, machine: &mut Machine, page: u32) {
        if !machine.mapped(page) && !machine.dirty(page) && self.lists.of(page).is_some() {
            self.lists.to_tail(Self::list(self.oldest), page);
        }
    }

    fn direct(&mut self, machine: &mut Machine) -> u64 {
        self.evict(machine);
        0
    }
}
