//! Linux 2.4.19 with Rik van Riel's rmap14a patch: page aging through reverse maps.
//!
//! Three lists. Every page on the active list has an age: referenced pages gain 3 (at most 64), others lose 1, and at
//! age 0 a page becomes inactive. `page_launder_zone` takes inactive pages from the old end: referenced ones go back,
//! the others are unmapped by way of their reverse map, written if dirty, and put on the clean list, whose pages can be
//! had at once and count as free. A page stays where it is while it is written, so the next pass meets it first. Who
//! launders waits for requests of the block layer in the middle of his pass, and then goes on with it: a process that
//! found memory below the minimum writes everything that is inactive before it has its page.
//!
//! Source: van Riel's patches from 13b to 14 and from 14 to 14a (linux-mm, 15 September 2002), on the `mm/vmscan.c`,
//! `mm/page_alloc.c`, `mm/swap.c` and `mm_inline.h` of a public 2.4 tree with rmap14. START 5, ADVANCE 3, DECLINE 1 and
//! MAX 64 are from the fact sheet on Linux's reverse maps, section 2.
//!
//! rmap 9 was to read no neighbours while memory is low. Its test, which only a tree with the later rmap 15 was found to
//! show and no change log in between mentions, is `free_low(ALL_ZONES) < 0`, and `free_low` is positive where memory is
//! low: neighbours are read while it is low, and at no other time. The model does what the test does.
//!
//! Left out: the slab and the file cache, several zones, pages kept by each processor.

use crate::paging::lists::Lists;
use crate::paging::{Arrival, Machine, System, Watermarks};

const ACTIVE: u8 = 0;
const DIRTY: u8 = 1;
const CLEAN: u8 = 2;

const AGE_START: u8 = 5;
const AGE_ADVANCE: u8 = 3;
const AGE_MAX: u8 = 64;

/// Rounds of aging in a pass at most (`1 << DEF_PRIORITY`), and the part of the active list that one looks at.
const ROUNDS: u32 = 64;
const PRIORITY: u32 = 6;

/// kswapd's sleep when a pass left memory short, in ns (HZ/4).
const NAP: u64 = super::SECOND / 4;

/// What a pass of `do_try_to_free_pages` does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing: it is over.
    #[default]
    Over,
    /// `page_launder_zone` for a global shortage.
    First,
    /// The same for a zone that is low: everything, where it is below the minimum.
    Second,
}

/// A pass, which may wait in the middle.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    stage: Stage,
    /// Pages that the present laundering may still look at.
    scan: u32,
    /// Outputs that it may still start; it stops below nought.
    writes: i64,
    cleaned: u32,
    target: u32,
    /// The page that it looks at next; none: the oldest.
    next: Option<u32>,
    /// Until when it waits for a request of the block layer.
    waits: u64,
}

/// The system's state.
#[derive(Debug)]
pub struct Rmap14a {
    lists: Lists,
    age: Vec<u8>,
    marks: Watermarks,
    /// kswapd's, which is over while it sleeps a nap out (`kswapd_overloaded`).
    kswapd: Pass,
    direct: Pass,
}

impl Rmap14a {
    /// For an address space of `pages` pages in `frames` frames.
    pub fn new(pages: u32, frames: u32) -> Self {
        Self {
            lists: Lists::new(pages, 3),
            age: vec![0; pages as usize],
            marks: Watermarks::linux_2_4(frames),
            kswapd: Pass::default(),
            direct: Pass::default(),
        }
    }

    /// How many pages are lacking to so many available ones (`free_min`, `free_low`, `free_high`, `free_plenty`).
    fn lacking(&self, machine: &Machine, target: u32) -> i64 {
        i64::from(target) - i64::from(self.available(machine))
    }

    /// Twice the high mark.
    fn plenty(&self) -> u32 {
        2 * self.marks.high
    }

    /// How many are lacking to enough free and inactive pages (`inactive_min`, `inactive_low`, `inactive_high`): the
    /// high mark and so many tenths of the used ones.
    fn inactive_lacking(&self, machine: &Machine, tenths: u32) -> i64 {
        let used = (self.lists.len(ACTIVE) + self.lists.len(DIRTY)) / 5;
        let target = self.marks.high + used * tenths / 2;
        i64::from(target) - i64::from(self.available(machine) + self.lists.len(DIRTY))
    }

    /// `refill_inactive_zone`: ages up to `scan` pages from the old end of the active list.
    fn age_active(&mut self, machine: &mut Machine, scan: u32) {
        let mut wanted = self.inactive_lacking(machine, 4);
        for _ in 0..scan {
            let Some(page) = self.lists.tail(ACTIVE) else { break };
            machine.scan();
            let age = &mut self.age[page as usize];
            // `drop_page`: what nobody maps is not aged, and is clean at once if it is not written.
            if !machine.mapped(page) {
                *age = 0;
                if !machine.dirty(page) && !machine.in_flight(page) {
                    self.lists.to_head(CLEAN, page);
                    continue;
                }
            } else if machine.test_and_clear_young(page) {
                *age = (*age + AGE_ADVANCE).min(AGE_MAX);
            } else {
                *age = age.saturating_sub(1);
            }
            if *age > 0 {
                self.lists.to_head(ACTIVE, page);
                continue;
            }
            self.lists.to_head(DIRTY, page);
            wanted -= 1;
            if wanted < 0 {
                break;
            }
        }
    }

    /// `refill_inactive`.
    fn refill_inactive(&mut self, machine: &mut Machine) {
        for _ in 0..ROUNDS {
            if self.inactive_lacking(machine, 2) < 0 {
                break;
            }
            self.age_active(machine, self.lists.len(ACTIVE) >> PRIORITY);
        }
        if self.inactive_lacking(machine, 1) >= 0 {
            self.age_active(machine, self.lists.len(ACTIVE));
        }
    }

    /// What a laundering may do: everything, or its share.
    fn begin(&self, machine: &Machine, pass: &mut Pass, everything: bool) {
        let plenty = self.lacking(machine, self.plenty());
        let share = i64::from(512.min(self.lists.len(DIRTY) / 4)).max(4 * plenty);
        pass.scan = self.lists.len(DIRTY);
        pass.writes = if everything { 1_000_000 } else { share };
        pass.cleaned = 0;
        pass.target = plenty.max(i64::from(self.marks.min)) as u32;
        pass.next = None;
    }

    /// `page_launder_zone`: looks at every inactive page once, from the old end. Returns false where it waits for a
    /// request; it goes on when it is called again.
    fn launder(&mut self, machine: &mut Machine, pass: &mut Pass) -> bool {
        while pass.scan > 0 && pass.cleaned <= pass.target {
            // A page that left the list while it was waited: from the old end again.
            let next = pass.next.filter(|&page| self.lists.of(page) == Some(DIRTY));
            let Some(page) = next.or_else(|| self.lists.tail(DIRTY)) else { break };
            let newer = self.lists.newer(page);
            let output = machine.dirty(page) && !machine.in_flight(page);
            let wanted = machine.mapped(page) && machine.young(page);
            if output
                && !wanted
                && pass.writes >= 0
                && let Some(at) = machine.room_at()
            {
                pass.next = Some(page);
                pass.waits = at;
                return false;
            }
            machine.scan();
            pass.scan -= 1;
            if machine.in_flight(page) {
                // Locked: it stays where it is.
            } else if wanted {
                machine.test_and_clear_young(page);
                let age = &mut self.age[page as usize];
                *age = (*age).max(AGE_START);
                self.lists.to_head(ACTIVE, page);
            } else if output && pass.writes < 0 {
                self.lists.to_head(DIRTY, page);
            } else {
                if machine.mapped(page) {
                    machine.unmap(page);
                }
                if output {
                    pass.writes -= 1;
                    machine.write(page);
                } else {
                    self.lists.to_head(CLEAN, page);
                    pass.cleaned += 1;
                }
            }
            // The youngest page's turn is the last.
            let Some(newer) = newer else { break };
            pass.next = Some(newer);
        }
        true
    }

    /// `do_try_to_free_pages`, or the rest of it. Returns how long it waits before it goes on; none: it is over.
    fn proceed(&mut self, machine: &mut Machine, mut pass: Pass) -> (Pass, Option<u64>) {
        if pass.stage == Stage::Over {
            let short = self.lacking(machine, self.marks.high) >= 0;
            self.begin(machine, &mut pass, false);
            pass.scan = if short { pass.scan } else { 0 };
            pass.stage = Stage::First;
        }
        loop {
            if !self.launder(machine, &mut pass) {
                let waits = pass.waits.saturating_sub(machine.now()).max(1);
                return (pass, Some(waits));
            }
            if pass.stage == Stage::First && self.lacking(machine, self.marks.low) >= 0 {
                let everything = self.lacking(machine, self.marks.min) > 0;
                self.begin(machine, &mut pass, everything);
                pass.stage = Stage::Second;
                continue;
            }
            break;
        }
        pass.stage = Stage::Over;
        self.refill_inactive(machine);
        // `refill_freelist`.
        if machine.free_frames() < self.marks.min {
            while machine.free_frames() < 2 * self.marks.min && self.reclaim(machine) {}
        }
        (pass, None)
    }

    /// `reclaim_page`: frees the oldest clean page.
    fn reclaim(&mut self, machine: &mut Machine) -> bool {
        let Some(page) = self.lists.tail(CLEAN) else { return false };
        self.lists.remove(page);
        machine.free(page);
        true
    }
}

impl System for Rmap14a {
    fn marks(&self) -> Watermarks {
        self.marks
    }

    fn available(&self, machine: &Machine) -> u32 {
        machine.free_frames() + self.lists.len(CLEAN)
    }

    /// `lru_cache_add`: whatever comes is active, a neighbour that was read ahead, too.
    fn arrived(&mut self, _machine: &mut Machine, page: u32, _arrival: Arrival) {
        self.age[page as usize] = AGE_START;
        self.lists.to_head(ACTIVE, page);
    }

    /// `mark_page_accessed`: a clean page becomes active; another keeps its place, and its reference is found there.
    fn remapped(&mut self, _machine: &mut Machine, page: u32) {
        if self.lists.of(page) == Some(CLEAN) {
            self.age[page as usize] = self.age[page as usize].max(AGE_START);
            self.lists.to_head(ACTIVE, page);
        }
    }

    /// `swapin_readahead`, with the sign that it has.
    fn reads_ahead(&self, machine: &Machine) -> bool {
        self.lacking(machine, self.marks.low) >= 0
    }

    fn busy(&self) -> bool {
        self.kswapd.stage != Stage::Over
    }

    /// `wakeup_kswapd`: an allocation waits for the pass that kswapd is in, unless that sleeps a nap.
    fn held_up(&self, machine: &Machine) -> bool {
        let lacking = self.lacking(machine, self.marks.low);
        self.busy() && lacking > i64::from(self.marks.min / 2)
    }

    fn surrender(&mut self, machine: &mut Machine) -> bool {
        self.available(machine) >= self.marks.min && self.reclaim(machine)
    }

    fn daemon(&mut self, machine: &mut Machine) -> u64 {
        let (pass, waits) = self.proceed(machine, self.kswapd);
        self.kswapd = pass;
        if let Some(waits) = waits {
            return waits;
        }
        // `wakeup_memwaiters`.
        if self.lacking(machine, self.marks.high) > 0 { NAP } else { 0 }
    }

    fn direct(&mut self, machine: &mut Machine) -> u64 {
        let (pass, waits) = self.proceed(machine, self.direct);
        self.direct = pass;
        waits.unwrap_or(0)
    }

    fn unfinished(&self) -> bool {
        self.direct.stage != Stage::Over
    }

    fn interval(&self) -> u64 {
        super::SECOND
    }

    /// `background_aging`, once a second.
    fn periodic(&mut self, machine: &mut Machine) {
        if self.inactive_lacking(machine, 4) > 0 {
            self.age_active(machine, self.lists.len(ACTIVE) >> PRIORITY);
        }
    }
}
