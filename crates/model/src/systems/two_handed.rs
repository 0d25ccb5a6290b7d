//! The two-handed clock of SunOS and System V Release 4, kept by Solaris.
//!
//! All pages stand in a circle. When free memory is below lotsfree, four times a second two hands go
//! around: the front hand clears reference bits, the back hand, handspread pages behind it, frees the
//! pages that were not referenced since, and has dirty ones written. The rate goes linearly from
//! slowscan at lotsfree to fastscan at no free memory. Writing is limited to maxpgio.
//!
//! Source: Solaris's `vm_pageout.c` as OpenSolaris published it, formulas and defaults in the fact
//! sheet on Solaris VM, sections 1 and 2. `solaris7-priority-paging` raises the threshold at which
//! the scanner starts to cachefree = 2 · lotsfree, and between the two takes only file pages; an
//! anonymous mapping has none, so there it only scans. How the rate goes between cachefree and
//! lotsfree is not documented; slowscan is assumed.
//!
//! `solaris8-cyclic`: a page that the scanner takes keeps its identity on the cache list. The cache
//! list counts as free, a fault on one of its pages takes it back without input, and frames are taken
//! from its old end when the free list is empty; the scanner runs only when both run out.

use crate::paging::lists::Lists;
use crate::paging::{Arrival, Machine, System, Watermarks};
use crate::parameter::Parameter;
use crate::parameter_table;

/// Wake-ups of the scanner a second.
const WAKEUPS: u64 = 4;

/// The thresholds and rates, all in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// The scanner runs below this.
    pub lotsfree: u32,
    /// Half of it.
    pub desfree: u32,
    /// A quarter of it; allocations wait below (throttlefree).
    pub minfree: u32,
    /// Pages a second at no free memory.
    pub fastscan: u32,
    /// Pages a second at lotsfree.
    pub slowscan: u32,
    /// The distance of the hands.
    pub handspread: u32,
    /// Outputs a second.
    pub maxpgio: u32,
}

/// Parameters from which the thresholds and rates of a machine are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanner {
    /// Bytes per second without free memory, before the scanner has measured its speed.
    pub fastscan: u64,
    /// Memory divided by lotsfree: 64 means a 64th of memory.
    pub lotsfree: u32,
    /// Page-outs per second.
    pub maxpgio: u32,
}

impl Scanner {
    /// Solaris's defaults.
    pub const SOLARIS: Self = Self { fastscan: 64 << 20, lotsfree: 64, maxpgio: 40 };
}

/// The parameters of the scanner.
pub const PARAMETERS: &[Parameter<Scanner>] = parameter_table! {
    scaled "fastscan" "MiB/s" [1.0, 65536.0] "scan rate without free memory, at most half of memory per second",
        documented("OpenSolaris vm_pageout.c"), (fastscan * 1048576.0);
    whole "lotsfree" "" [2.0, 4096.0] "free memory below which the scanner runs, as 1/N of memory",
        documented("OpenSolaris vm_pageout.c"), (lotsfree);
    whole "maxpgio" "/s" [4.0, 1000000.0] "limit on page-outs by the scanner",
        documented("OpenSolaris vm_pageout.c"), (maxpgio);
};

impl Tunables {
    /// Solaris's defaults for `pages` pages of `page_size` bytes.
    pub fn solaris(pages: u32, page_size: u32) -> Self {
        Self::of(&Scanner::SOLARIS, pages, page_size)
    }

    /// The tunables of a machine whose scanner has not measured its speed yet.
    pub fn of(scanner: &Scanner, pages: u32, page_size: u32) -> Self {
        let fastscan = u32::try_from(scanner.fastscan / u64::from(page_size)).unwrap_or(u32::MAX);
        Self::measured(scanner, pages, page_size, fastscan)
    }

    /// Solaris's defaults once the scanner has measured its speed: `measured` pages per second.
    pub fn sampled(pages: u32, page_size: u32, measured: u32) -> Self {
        Self::measured(&Scanner::SOLARIS, pages, page_size, measured)
    }

    fn measured(scanner: &Scanner, pages: u32, page_size: u32, measured: u32) -> Self {
        let lotsfree = (pages / scanner.lotsfree).max((512 << 10) / page_size);
        let fastscan = (pages / 2).min(measured);
        Self {
            lotsfree,
            desfree: lotsfree / 2,
            minfree: lotsfree / 4,
            fastscan,
            slowscan: (fastscan / 10).min(100),
            handspread: fastscan.min(pages.saturating_sub(1)),
            maxpgio: scanner.maxpgio,
        }
    }

    /// `desscan`: pages for one wake-up at `free` free pages.
    pub fn desscan(&self, free: u32) -> u32 {
        let available = u64::from(free.min(self.lotsfree));
        let lotsfree = u64::from(self.lotsfree);
        let rate = u64::from(self.slowscan) * available + u64::from(self.fastscan) * (lotsfree - available);
        (rate / lotsfree.max(1) / WAKEUPS) as u32
    }
}

/// The system's state.
#[derive(Debug)]
pub struct TwoHanded {
    tunables: Tunables,
    cachefree: u32,
    /// Which page each frame of the circle holds, in the order of first use.
    circle: Vec<u32>,
    standing: Vec<bool>,
    front: usize,
    writes: u32,
    /// The cache list; none before Solaris 8.
    cache: Option<Lists>,
}

/// The number of the cache list within [`TwoHanded::cache`].
const CACHE: u8 = 0;

impl TwoHanded {
    /// SunOS and SVR4: no cachefree.
    pub fn svr4(pages: u32, tunables: Tunables) -> Self {
        Self {
            tunables,
            cachefree: tunables.lotsfree,
            circle: Vec::new(),
            standing: vec![false; pages as usize],
            front: 0,
            writes: 0,
            cache: None,
        }
    }

    /// Solaris 7 with `priority_paging=1`.
    pub fn priority_paging(pages: u32, tunables: Tunables) -> Self {
        Self { cachefree: 2 * tunables.lotsfree, ..Self::svr4(pages, tunables) }
    }

    /// Solaris 8: the cyclic page cache.
    pub fn cyclic(pages: u32, tunables: Tunables) -> Self {
        Self { cache: Some(Lists::new(pages, 1)), ..Self::svr4(pages, tunables) }
    }

    /// A clean, unmapped page leaves: to the cache list, or its frame is freed at once.
    fn release(&mut self, machine: &mut Machine, page: u32) {
        match &mut self.cache {
            Some(cache) => cache.to_head(CACHE, page),
            None => machine.free(page),
        }
    }

    /// One wake-up of the scanner.
    fn wake_up(&mut self, machine: &mut Machine, budget: u32) {
        self.writes = (self.tunables.maxpgio / WAKEUPS as u32).max(1);
        let only_files = self.available(machine) >= self.tunables.lotsfree;
        for _ in 0..budget {
            if self.circle.is_empty() || self.available(machine) >= self.cachefree {
                return;
            }
            self.front = (self.front + 1) % self.circle.len();
            let spread = self.tunables.handspread as usize % self.circle.len();
            let back = (self.front + self.circle.len() - spread) % self.circle.len();
            let page = self.circle[self.front];
            machine.scan();
            if !only_files && machine.mapped(page) {
                machine.test_and_clear_young(page);
            }
            if !only_files {
                self.back_hand(machine, back);
            }
        }
    }

    fn back_hand(&mut self, machine: &mut Machine, at: usize) {
        let page = self.circle[at];
        if !machine.resident(page) || machine.in_flight(page) {
            return;
        }
        if machine.mapped(page) && machine.test_and_clear_young(page) {
            return;
        }
        if machine.dirty(page) {
            if self.writes == 0 {
                return;
            }
            self.writes -= 1;
            if machine.mapped(page) {
                machine.unmap(page);
            }
            machine.write(page);
            return;
        }
        if machine.mapped(page) {
            machine.unmap(page);
        }
        if self.cache.as_ref().is_none_or(|cache| cache.of(page).is_none()) {
            self.release(machine, page);
        }
    }
}

impl System for TwoHanded {
    fn marks(&self) -> Watermarks {
        Watermarks { min: self.tunables.minfree, low: self.cachefree, high: self.cachefree }
    }

    fn arrived(&mut self, _machine: &mut Machine, page: u32, _arrival: Arrival) {
        if !std::mem::replace(&mut self.standing[page as usize], true) {
            self.circle.push(page);
        }
    }

    fn remapped(&mut self, _machine: &mut Machine, page: u32) {
        if let Some(cache) = &mut self.cache {
            cache.remove(page);
        }
    }

    fn available(&self, machine: &Machine) -> u32 {
        machine.free_frames() + self.cache.as_ref().map_or(0, |cache| cache.len(CACHE))
    }

    fn surrender(&mut self, machine: &mut Machine) -> bool {
        let Some(cache) = &mut self.cache else { return false };
        let Some(page) = cache.tail(CACHE) else { return false };
        cache.remove(page);
        machine.free(page);
        true
    }

    /// A page that was written because it was to be freed is freed when the output is complete,
    /// unless it was used again.
    fn written(&mut self, machine: &mut Machine, page: u32) {
        if machine.resident(page) && !machine.mapped(page) && !machine.dirty(page) {
            self.release(machine, page);
        }
    }

    fn daemon(&mut self, machine: &mut Machine) -> u64 {
        let budget = self.tunables.desscan(self.available(machine));
        self.wake_up(machine, budget);
        super::SECOND / WAKEUPS
    }

    /// A throttled allocation waits for the scanner.
    fn direct(&mut self, _machine: &mut Machine) -> u64 {
        super::SECOND / WAKEUPS
    }
}

#[cfg(test)]
mod tests {
    use super::Tunables;

    /// McDougall's `kstat -n system_pages` of a machine with 512,136 pages of 4 KiB.
    #[test]
    fn the_formulas_give_the_published_thresholds() {
        let tunables = Tunables { fastscan: 512_136 / 2, ..Tunables::solaris(512_136, 4096) };
        assert_eq!((tunables.lotsfree, tunables.desfree), (8002, 4001));
        assert_eq!(tunables.minfree, 2000);
        assert_eq!(tunables.slowscan, 100);
        // At lotsfree and above: slowscan, a quarter of it for each wake-up.
        assert_eq!(tunables.desscan(300_000), 25);
    }
}
