//! Linux 2.4.19 with Rik van Riel's rmap14a patch: page aging through reverse maps.
//!
//! Three lists. Every page on the active list has an age: referenced pages gain 3 (at most 64),
//! others lose 1, and at age 0 a page becomes inactive. `page_launder` takes inactive pages from the
//! old end: referenced ones go back, the others are unmapped by way of their reverse map, written if
//! dirty, and put on the clean list, whose pages can be had at once and count as free. A page that was written is
//! clean when the next pass meets it. A fault reads no neighbours while memory is low.
//!
//! Source: rmap's change log and the public copy of an rmap13-class `mm/vmscan.c` (fact sheet on
//! Linux's reverse maps, section 2); the exact file of 14a was not found. START 5, ADVANCE 3, DECLINE 1
//! and MAX 64 are documented, and so are the targets. That kswapd, when still short after a pass,
//! sleeps a quarter of a second while allocations wait for it is documented too; that these naps are
//! the periodic slow accesses that Gorman saw is an inference.

use crate::paging::lists::Lists;
use crate::paging::{Arrival, Machine, System};

const ACTIVE: u8 = 0;
const DIRTY: u8 = 1;
const CLEAN: u8 = 2;

const AGE_START: u8 = 5;
const AGE_ADVANCE: u8 = 3;
const AGE_MAX: u8 = 64;

/// Rounds of aging in a pass at most.
const ROUNDS: u32 = 64;

/// kswapd's sleep when a pass left memory short, in ns (HZ/4).
const NAP: u64 = super::SECOND / 4;

/// The system's state.
#[derive(Debug)]
pub struct Rmap14a {
    lists: Lists,
    age: Vec<u8>,
    marks: super::Watermarks,
    /// Until when whoever reclaims waits for a request of the block layer; 0: he does not.
    waits: u64,
}

impl Rmap14a {
    /// For an address space of `pages` pages in `frames` frames; the watermarks are 2.4's.
    pub fn new(pages: u32, frames: u32) -> Self {
        let min = (frames / 128).clamp(20, 255).min(frames / 8);
        Self {
            lists: Lists::new(pages, 3),
            age: vec![0; pages as usize],
            marks: super::Watermarks { min, low: 2 * min, high: 3 * min },
            waits: 0,
        }
    }

    /// How many inactive pages there should be: pages_high and a fifth of the used pages
    /// (`inactive_target` at the low mark).
    fn inactive_target(&self) -> u32 {
        self.marks.high + (self.lists.len(ACTIVE) + self.lists.len(DIRTY)) / 5
    }

    fn inactive(&self) -> u32 {
        self.lists.len(DIRTY) + self.lists.len(CLEAN)
    }

    /// `refill_inactive_zone`: ages up to `scan` pages from the old end of the active list.
    fn age_active(&mut self, machine: &mut Machine, scan: u32) {
        for _ in 0..scan {
            let Some(page) = self.lists.tail(ACTIVE) else { break };
            machine.scan();
            let age = &mut self.age[page as usize];
            if !machine.mapped(page) {
                *age = 0;
            } else if machine.test_and_clear_young(page) {
                *age = (*age + AGE_ADVANCE).min(AGE_MAX);
            } else {
                *age = age.saturating_sub(1);
            }
            if *age == 0 {
                self.lists.to_head(DIRTY, page);
            } else {
                self.lists.to_head(ACTIVE, page);
            }
        }
    }

    /// `page_launder_zone`: looks at every inactive page once, from the old end; starts at most
    /// `writes` outputs. Clean pages reach the clean list.
    fn launder(&mut self, machine: &mut Machine, mut writes: u32) {
        for _ in 0..self.lists.len(DIRTY) {
            if self.plenty_short(machine) == 0 {
                break;
            }
            let Some(page) = self.lists.tail(DIRTY) else { break };
            machine.scan();
            if machine.in_flight(page) {
                self.lists.to_head(DIRTY, page);
                continue;
            }
            if machine.test_and_clear_young(page) {
                let age = &mut self.age[page as usize];
                *age = (*age).max(AGE_START);
                self.lists.to_head(ACTIVE, page);
                continue;
            }
            if machine.dirty(page) && writes == 0 {
                self.lists.to_head(DIRTY, page);
                continue;
            }
            if machine.dirty(page)
                && let Some(at) = machine.room_at()
            {
                self.waits = at;
                break;
            }
            if machine.mapped(page) {
                machine.unmap(page);
            }
            if machine.dirty(page) {
                writes -= 1;
                machine.write(page);
                self.lists.to_head(DIRTY, page);
            } else {
                self.lists.to_head(CLEAN, page);
            }
        }
    }

    /// Frames that are lacking to plenty: twice the high mark.
    fn plenty_short(&self, machine: &Machine) -> u32 {
        (2 * self.marks.high).saturating_sub(self.available(machine))
    }

    /// `do_try_to_free_pages`.
    fn try_to_free(&mut self, machine: &mut Machine) -> u64 {
        let desperate = self.available(machine) < self.marks.min;
        for _ in 0..ROUNDS {
            if self.inactive() >= self.inactive_target() {
                break;
            }
            let active = self.lists.len(ACTIVE);
            // A sixty-fourth at a time, all of it when hardly anything is free.
            self.age_active(machine, if desperate { active } else { (active >> 6).max(32) });
        }
        // Below the minimum everything that is inactive is written.
        let budget = 512.min(self.lists.len(DIRTY) / 4).max(4 * self.plenty_short(machine));
        self.launder(machine, if desperate { u32::MAX } else { budget });
        std::mem::take(&mut self.waits).saturating_sub(machine.now())
    }
}

impl System for Rmap14a {
    fn min(&self) -> u32 {
        self.marks.min
    }

    fn low(&self) -> u32 {
        self.marks.low
    }

    fn high(&self) -> u32 {
        self.marks.high
    }

    fn available(&self, machine: &Machine) -> u32 {
        machine.free_frames() + self.lists.len(CLEAN)
    }

    fn arrived(&mut self, _machine: &mut Machine, page: u32, arrival: Arrival) {
        self.age[page as usize] = AGE_START;
        self.lists.to_head(if arrival == Arrival::ReadAhead { DIRTY } else { ACTIVE }, page);
    }

    fn remapped(&mut self, _machine: &mut Machine, page: u32) {
        self.age[page as usize] = self.age[page as usize].max(AGE_START);
        self.lists.to_head(ACTIVE, page);
    }

    fn reads_ahead(&self, machine: &Machine) -> bool {
        self.available(machine) >= self.marks.low
    }

    fn surrender(&mut self, machine: &mut Machine) -> bool {
        let Some(page) = self.lists.tail(CLEAN) else { return false };
        self.lists.remove(page);
        machine.free(page);
        true
    }

    fn daemon(&mut self, machine: &mut Machine) -> u64 {
        let waits = self.try_to_free(machine);
        while machine.free_frames() <= self.marks.high && self.surrender(machine) {}
        waits + if self.available(machine) < self.marks.high { NAP } else { 0 }
    }

    fn direct(&mut self, machine: &mut Machine) -> u64 {
        let waits = self.try_to_free(machine);
        // Short of half the minimum, an allocation waits until kswapd has had its nap.
        waits + if self.available(machine) < self.marks.min / 2 { NAP } else { 0 }
    }

    fn interval(&self) -> u64 {
        super::SECOND
    }

    /// Background aging once a second while there are too few inactive pages.
    fn periodic(&mut self, machine: &mut Machine) {
        if self.inactive() < self.inactive_target() {
            let scan = self.lists.len(ACTIVE) >> 6;
            self.age_active(machine, scan);
        }
    }
}
