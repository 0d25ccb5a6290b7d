//! One address space over a number of frames, with a swap device and a virtual clock.

use std::collections::VecDeque;

use super::costs::Costs;
use super::device::Device;
use super::system::{Arrival, System};

const RESIDENT: u8 = 1;
const MAPPED: u8 = 2;
const YOUNG: u8 = 4;
const DIRTY: u8 = 8;
const IN_FLIGHT: u8 = 16;

/// Requests of output that the block layer of 2.4 holds (half of 128), of how many pages at most (255 sectors), and
/// how many are free again when who waits for one is woken.
const REQUESTS: usize = 64;
const MERGED: u32 = 31;
const BATCH: usize = 32;

/// No slot.
const NO_SLOT: u32 = u32::MAX;

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// References.
    pub references: u64,
    /// Faults that waited for no input.
    pub minor: u64,
    /// Faults that waited for input.
    pub major: u64,
    /// Pages read from swap, read-ahead included.
    pub swapped_in: u64,
    /// Pages written to swap.
    pub swapped_out: u64,
    /// Pages that reclaim looked at.
    pub scanned: u64,
    /// Frames freed by reclaim.
    pub freed: u64,
    /// Time in which the process waited for input or for a frame.
    pub waited: u64,
    /// Processor time of faults and of reclaim.
    pub system: u64,
}

impl Tally {
    /// What happened after `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            references: self.references - before.references,
            minor: self.minor - before.minor,
            major: self.major - before.major,
            swapped_in: self.swapped_in - before.swapped_in,
            swapped_out: self.swapped_out - before.swapped_out,
            scanned: self.scanned - before.scanned,
            freed: self.freed - before.freed,
            waited: self.waited - before.waited,
            system: self.system - before.system,
        }
    }
}

/// The kernel could free no frame, and none is on its way.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the modelled system ran out of memory: nothing can be freed in {frames} frames")]
pub struct OutOfMemory {
    /// The machine's frames.
    pub frames: u32,
}

/// The machine. Time in ns.
#[derive(Debug)]
pub struct Machine {
    now: u64,
    costs: Costs,
    frames: u32,
    free: u32,
    flags: Vec<u8>,
    slot_of: Vec<u32>,
    page_in: Vec<u32>,
    next_slot: u32,
    read_ahead: u32,
    device: Device,
    in_flight: VecDeque<(u64, u32)>,
    /// Requests of output that are not done: when each will be, and its pages.
    outputs: VecDeque<(u64, u32)>,
    /// The slot behind the last one written.
    next_output: u32,
    tally: Tally,
    daemon_awake: bool,
    daemon_at: u64,
    periodic_at: u64,
    /// Processor time used by reclaim since it was last charged.
    work: u64,
    /// The pages unmapped since the last call of [`Self::unmapped`], if requested.
    unmapped: Option<Vec<u32>>,
}

impl Machine {
    /// A machine of `frames` free frames for one address space of `pages` pages. A fault reads
    /// `read_ahead` neighbouring slots at once (a power of two; 1: none).
    pub fn new(pages: u32, frames: u32, costs: Costs, read_ahead: u32) -> Self {
        // Slots are given out in order, so a few more than pages keep the search short.
        let slots = pages as usize + pages as usize / 4 + 64;
        Self {
            now: 0,
            costs,
            frames,
            free: frames,
            flags: vec![0; pages as usize],
            slot_of: vec![NO_SLOT; pages as usize],
            page_in: vec![NO_SLOT; slots],
            next_slot: 0,
            read_ahead: read_ahead.max(1).next_power_of_two(),
            device: Device::new(costs.seek, costs.transfer),
            in_flight: VecDeque::new(),
            outputs: VecDeque::new(),
            next_output: NO_SLOT,
            tally: Tally::default(),
            daemon_awake: false,
            daemon_at: 0,
            periodic_at: u64::MAX,
            work: 0,
            unmapped: None,
        }
    }

    /// The virtual time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The costs in force.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// What happened so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// All frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Frames with nothing in them.
    pub fn free_frames(&self) -> u32 {
        self.free
    }

    /// The pages of the address space.
    pub fn pages(&self) -> u32 {
        self.flags.len() as u32
    }

    fn has(&self, page: u32, flag: u8) -> bool {
        self.flags[page as usize] & flag != 0
    }

    fn set(&mut self, page: u32, flag: u8, on: bool) {
        let flags = &mut self.flags[page as usize];
        if on { *flags |= flag } else { *flags &= !flag }
    }

    /// Whether the page is in memory.
    pub fn resident(&self, page: u32) -> bool {
        self.has(page, RESIDENT)
    }

    /// Whether the page can be referenced without a fault.
    pub fn mapped(&self, page: u32) -> bool {
        self.has(page, MAPPED)
    }

    /// Whether memory holds the only valid copy.
    pub fn dirty(&self, page: u32) -> bool {
        self.has(page, DIRTY)
    }

    /// When the output of a page that is under way will be complete.
    pub fn written_at(&self, page: u32) -> Option<u64> {
        self.in_flight.iter().find(|(_, other)| *other == page).map(|(done, _)| *done)
    }

    /// When whoever wants to write may: at once, unless as many requests of output wait as there may be. Then he is
    /// woken when `BATCH` of them are done.
    pub fn room_at(&self) -> Option<u64> {
        (self.outputs.len() >= REQUESTS).then(|| self.outputs[self.outputs.len() - 1 - (REQUESTS - BATCH)].0)
    }

    /// Whether output of the page is under way.
    pub fn in_flight(&self, page: u32) -> bool {
        self.has(page, IN_FLIGHT)
    }

    /// Whether a copy of the page is in swap and not in memory.
    pub fn swapped(&self, page: u32) -> bool {
        !self.resident(page) && self.slot_of[page as usize] != NO_SLOT
    }

    /// The reference bit.
    pub fn young(&self, page: u32) -> bool {
        self.has(page, YOUNG)
    }

    /// Reads and clears the reference bit, at the cost of looking at a page.
    pub fn test_and_clear_young(&mut self, page: u32) -> bool {
        let young = self.has(page, YOUNG);
        self.set(page, YOUNG, false);
        young
    }

    /// Charges the look at one page to whoever reclaims.
    pub fn scan(&mut self) {
        self.tally.scanned += 1;
        self.work += self.costs.scan;
    }

    /// Takes the page out of the page table; it stays in memory.
    pub fn unmap(&mut self, page: u32) {
        debug_assert!(self.mapped(page));
        self.set(page, MAPPED | YOUNG, false);
        if let Some(unmapped) = &mut self.unmapped {
            unmapped.push(page);
        }
    }

    /// Begins to collect the pages that leave the page table.
    pub fn note_unmapped(&mut self) {
        self.unmapped = Some(Vec::new());
    }

    /// Removes and returns the pages that left the page table since the last call, in order.
    pub fn unmapped(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.unmapped.iter_mut().flat_map(|list| list.drain(..))
    }

    /// Starts the output of a dirty page to the next free slot.
    pub fn write(&mut self, page: u32) {
        debug_assert!(self.resident(page) && self.dirty(page) && !self.in_flight(page));
        self.release_slot(page);
        while self.page_in[self.next_slot as usize] != NO_SLOT {
            self.next_slot = (self.next_slot + 1) % self.page_in.len() as u32;
        }
        let slot = self.next_slot;
        self.next_slot = (self.next_slot + 1) % self.page_in.len() as u32;
        self.page_in[slot as usize] = page;
        self.slot_of[page as usize] = slot;
        let done = self.device.submit(self.now, slot, 1);
        self.in_flight.push_back((done, page));
        match self.outputs.back_mut() {
            Some(last) if slot == self.next_output && last.1 < MERGED => *last = (done, last.1 + 1),
            _ => self.outputs.push_back((done, 1)),
        }
        self.next_output = slot + 1;
        self.set(page, IN_FLIGHT, true);
        self.set(page, DIRTY, false);
        self.tally.swapped_out += 1;
    }

    /// Frees the frame of a page that is clean, unmapped and not in flight.
    pub fn free(&mut self, page: u32) {
        debug_assert!(self.resident(page));
        debug_assert!(!self.mapped(page) && !self.dirty(page) && !self.in_flight(page));
        self.set(page, RESIDENT, false);
        self.free += 1;
        self.tally.freed += 1;
    }

    fn release_slot(&mut self, page: u32) {
        let slot = std::mem::replace(&mut self.slot_of[page as usize], NO_SLOT);
        if slot != NO_SLOT {
            self.page_in[slot as usize] = NO_SLOT;
        }
    }

    /// A reference to `page`, a write or a read. Returns the time it took.
    ///
    /// # Errors
    /// When no frame can be had.
    #[inline]
    pub fn reference(&mut self, system: &mut dyn System, page: u32, write: bool) -> Result<u64, OutOfMemory> {
        let start = self.now;
        self.tally.references += 1;
        if !self.mapped(page) {
            self.fault(system, page)?;
        }
        self.now += self.costs.hit;
        self.set(page, YOUNG, true);
        if write && !self.dirty(page) {
            self.dirtied(page);
        }
        if self.now >= self.next_event() {
            self.background(system);
        }
        Ok(self.now - start)
    }

    /// `count` more references to the page that was referenced last, of the same kind: hits. What is due meanwhile in the
    /// background is done after them.
    #[inline]
    pub fn again(&mut self, system: &mut dyn System, count: u64) {
        self.tally.references += count;
        self.now += self.costs.hit * count;
        if self.now >= self.next_event() {
            self.background(system);
        }
    }

    /// The copy in swap is no longer valid; a page in flight keeps its slot until that is over.
    fn dirtied(&mut self, page: u32) {
        self.set(page, DIRTY, true);
        if !self.in_flight(page) {
            self.release_slot(page);
        }
    }

    fn next_event(&self) -> u64 {
        let daemon = if self.daemon_awake { self.daemon_at } else { u64::MAX };
        let output = self.in_flight.front().map_or(u64::MAX, |&(done, _)| done);
        daemon.min(output).min(self.periodic_at)
    }

    fn fault(&mut self, system: &mut dyn System, page: u32) -> Result<(), OutOfMemory> {
        self.background(system);
        if self.resident(page) {
            self.tally.minor += 1;
            self.charge(self.costs.minor);
            self.set(page, MAPPED, true);
            system.remapped(self, page);
            return Ok(());
        }
        self.allocate(system)?;
        self.set(page, RESIDENT, true);
        let slot = self.slot_of[page as usize];
        if slot == NO_SLOT {
            self.tally.minor += 1;
            self.charge(self.costs.minor);
            // A fresh page is zeroes that exist nowhere else.
            self.set(page, DIRTY | MAPPED, true);
            system.arrived(self, page, Arrival::New);
        } else {
            self.tally.major += 1;
            self.charge(self.costs.major);
            // Locked while it is read: no system may take it.
            self.set(page, IN_FLIGHT, true);
            self.read(system, page, slot);
            self.set(page, IN_FLIGHT, false);
            self.set(page, MAPPED, true);
            system.arrived(self, page, Arrival::SwappedIn);
        }
        if system.available(self) < system.marks().low {
            self.wake_daemon();
        }
        Ok(())
    }

    /// Reads the aligned block of slots around `slot`, and waits for it. Neighbours come only into
    /// frames that can be had without reclaim.
    fn read(&mut self, system: &mut dyn System, page: u32, slot: u32) {
        let first = slot & !(self.read_ahead - 1);
        let end = (first + self.read_ahead).min(self.page_in.len() as u32);
        let mut ahead = Vec::new();
        for near in first..end {
            let other = self.page_in[near as usize];
            if system.reads_ahead(self)
                && other != NO_SLOT
                && other != page
                && !self.resident(other)
                && (self.free > system.marks().min || system.surrender(self))
            {
                self.free -= 1;
                self.set(other, RESIDENT, true);
                ahead.push(other);
            }
        }
        let count = 1 + ahead.len() as u32;
        self.tally.swapped_in += u64::from(count);
        let from = if ahead.is_empty() { slot } else { first };
        let done = self.device.submit(self.now, from, count);
        for other in ahead {
            system.arrived(self, other, Arrival::ReadAhead);
        }
        self.wait_until(system, done);
    }

    /// Takes a free frame, reclaiming on the process's own time when there is none.
    fn allocate(&mut self, system: &mut dyn System) -> Result<(), OutOfMemory> {
        // Every pass either frees, cleans or ages something; this many without a frame is a dead end.
        const PASSES: u32 = 1000;
        for _ in 0..PASSES {
            if self.free > system.marks().min {
                self.free -= 1;
                return Ok(());
            }
            while system.held_up(self) {
                self.wake_daemon();
                self.wait_until(system, self.daemon_at);
            }
            if system.surrender(self) {
                continue;
            }
            self.wake_daemon();
            let before = self.tally.freed;
            loop {
                let nap = system.direct(self);
                self.charge_work();
                if nap > 0 {
                    self.wait_until(system, self.now + nap);
                }
                if !system.unfinished() {
                    break;
                }
            }
            if self.tally.freed == before
                && let Some(&(done, _)) = self.in_flight.front()
            {
                self.wait_until(system, done);
            }
        }
        Err(OutOfMemory { frames: self.frames })
    }

    fn wake_daemon(&mut self) {
        if !self.daemon_awake {
            self.daemon_awake = true;
            self.daemon_at = self.now;
        }
    }

    /// Processor time of the process in the kernel.
    fn charge(&mut self, cost: u64) {
        self.now += cost;
        self.tally.system += cost;
    }

    fn charge_work(&mut self) {
        let work = std::mem::take(&mut self.work);
        self.charge(work);
    }

    /// The process waits; the daemon and the device go on.
    fn wait_until(&mut self, system: &mut dyn System, time: u64) {
        let start = self.now;
        loop {
            let event = self.next_event();
            if event > time {
                break;
            }
            self.now = self.now.max(event);
            self.background_step(system, true);
        }
        self.now = self.now.max(time);
        self.tally.waited += self.now - start;
    }

    /// Everything that is due in the background. The processor time of the daemon delays the process,
    /// which is running: there is one processor.
    fn background(&mut self, system: &mut dyn System) {
        if self.periodic_at == u64::MAX && system.interval() > 0 {
            self.periodic_at = self.now + system.interval();
        }
        while self.next_event() <= self.now {
            self.background_step(system, false);
        }
    }

    fn background_step(&mut self, system: &mut dyn System, waiting: bool) {
        while let Some(&(done, page)) = self.in_flight.front()
            && done <= self.now
        {
            self.in_flight.pop_front();
            if self.outputs.front().is_some_and(|(last, _)| *last <= done) {
                self.outputs.pop_front();
            }
            self.set(page, IN_FLIGHT, false);
            if self.dirty(page) {
                self.release_slot(page);
            }
            system.written(self, page);
        }
        if self.periodic_at <= self.now {
            self.periodic_at = self.now + system.interval();
            system.periodic(self);
        }
        if self.daemon_awake && self.daemon_at <= self.now {
            if system.available(self) >= system.marks().high && !system.busy() {
                self.daemon_awake = false;
            } else {
                let nap = system.daemon(self);
                // Even a fruitless pass takes time, so that time always passes.
                self.daemon_at = self.now + self.work.max(1) + nap;
            }
        }
        let work = std::mem::take(&mut self.work);
        self.tally.system += work;
        if !waiting {
            self.now += work;
        }
    }
}
