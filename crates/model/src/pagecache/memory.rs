//! Free list, cache list and scanner: a file server beside applications, four times a second.
//!
//! Before Solaris 8 a page of a file was in use until the two-handed scanner took it, like any other page.
//! With priority paging the scanner takes only files' pages between cachefree and lotsfree. From Solaris 8
//! a page of a file that no window maps is on the cache list, counts as free and is taken from there, oldest
//! first; the scanner runs only when both lists are short.

use pagelab_reference::rng::Rng;

use crate::paging::lists::Lists;
use crate::systems::two_handed::Tunables;

/// Which release's rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 2.6, and 7 as delivered: one scanner for all pages.
    Scanner,
    /// 7 with priority paging.
    Priority,
    /// 8 and later: the cyclic page cache.
    Cyclic,
}

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Frames.
    pub frames: u32,
    /// Bytes of a page.
    pub page: u32,
    /// Pages of files that the server reads from, each as likely as any other.
    pub files: u32,
    /// Reads of a page a second.
    pub reads: u32,
    /// Pages of the applications' own memory, written.
    pub anonymous: u32,
    /// Pages of their programs.
    pub programs: u32,
    /// Share of both that is used at every turn; the rest is used once in `idle` seconds on average.
    pub hot: f64,
    /// See `hot`.
    pub idle: f64,
    /// Pages a second that the scanner can do at most.
    pub fastscan: u32,
}

/// What `vmstat -p` prints, a second: pages, not KB, but `free` which is pages at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names of vmstat -p's columns")]
pub struct Rates {
    pub free: f64,
    pub re: f64,
    pub mf: f64,
    pub fr: f64,
    /// What is set aside for processes that are swapped in; no number where they would be: the swapper, which
    /// works when the mean of half a minute is below desfree, is not modelled.
    pub de: f64,
    pub sr: f64,
    pub epi: f64,
    pub epo: f64,
    pub epf: f64,
    pub api: f64,
    pub apo: f64,
    pub apf: f64,
    pub fpi: f64,
    pub fpo: f64,
    pub fpf: f64,
    /// Not of vmstat: allocations that found no frame.
    pub waits: f64,
    /// Not of vmstat: share of the server's reads that found their page.
    pub hits: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    None,
    File(u32),
    Application(u32),
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    owner: Owner,
    referenced: bool,
}

const NOWHERE: u32 = u32::MAX;
const CACHE: u8 = 0;
const TURNS: u32 = 4;
/// Turns in half a minute.
const HALF_A_MINUTE: f64 = 30.0 * TURNS as f64;

struct Memory<'a> {
    release: Release,
    load: &'a Load,
    tunables: Tunables,
    frames: Vec<Frame>,
    free: Vec<u32>,
    cache: Lists,
    file_at: Vec<u32>,
    application_at: Vec<u32>,
    used: Vec<bool>,
    front: u32,
    passed: u32,
    writes: u32,
    /// The mean of what is available over half a minute (`avefree30`), and the least it was.
    average: f64,
    least: f64,
    sums: Rates,
}

/// Runs the load for `seconds`, after as many to fill memory; means over the second half.
pub fn run(release: Release, load: &Load, seconds: u32, seed: u64) -> Rates {
    let mut rng = Rng::new(seed);
    let mut memory = Memory::new(release, load);
    for turn in 0..2 * seconds * TURNS {
        if turn == seconds * TURNS {
            memory.sums = Rates::default();
            memory.least = f64::INFINITY;
        }
        memory.writes = memory.tunables.maxpgio / TURNS;
        memory.turn(&mut rng);
    }
    memory.rates(f64::from(seconds))
}

impl<'a> Memory<'a> {
    fn new(release: Release, load: &'a Load) -> Self {
        Self {
            release,
            load,
            tunables: Tunables::sampled(load.frames, load.page, load.fastscan),
            frames: vec![Frame { owner: Owner::None, referenced: false }; load.frames as usize],
            free: (0..load.frames).rev().collect(),
            cache: Lists::new(load.frames, 1),
            file_at: vec![NOWHERE; load.files as usize],
            application_at: vec![NOWHERE; (load.anonymous + load.programs) as usize],
            used: vec![false; (load.anonymous + load.programs) as usize],
            front: 0,
            passed: 0,
            writes: 0,
            average: f64::from(load.frames),
            least: f64::INFINITY,
            sums: Rates::default(),
        }
    }

    fn rates(&self, seconds: f64) -> Rates {
        let mut rates = self.sums;
        for sum in [
            &mut rates.re,
            &mut rates.mf,
            &mut rates.fr,
            &mut rates.sr,
            &mut rates.epi,
            &mut rates.epo,
            &mut rates.epf,
            &mut rates.api,
            &mut rates.apo,
            &mut rates.apf,
            &mut rates.fpi,
            &mut rates.fpo,
            &mut rates.fpf,
            &mut rates.waits,
        ] {
            *sum /= seconds;
        }
        rates.free = f64::from(self.available());
        rates.de = if self.least < f64::from(self.tunables.desfree) { f64::NAN } else { 0.0 };
        rates.hits /= seconds * f64::from(self.load.reads);
        rates
    }

    fn available(&self) -> u32 {
        self.free.len() as u32 + self.cache.len(CACHE)
    }

    fn turn(&mut self, rng: &mut Rng) {
        for _ in 0..self.load.reads / TURNS {
            let page = rng.below(u64::from(self.load.files)) as u32;
            self.read(page);
        }
        let all = self.application_at.len() as u32;
        let hot = (f64::from(all) * self.load.hot) as u32;
        for index in 0..hot {
            // Hot pages of memory and of programs alike: every so many of all.
            let page = (u64::from(index) * u64::from(all) / u64::from(hot.max(1))) as u32;
            self.use_page(page);
        }
        let cold = f64::from(all - hot) / self.load.idle / f64::from(TURNS);
        for _ in 0..cold.round() as u32 {
            self.use_page(rng.below(u64::from(all)) as u32);
        }
        self.scan();
        self.average += (f64::from(self.available()) - self.average) / HALF_A_MINUTE;
        self.least = self.least.min(self.average);
    }

    fn read(&mut self, page: u32) {
        let at = self.file_at[page as usize];
        if at != NOWHERE {
            self.sums.hits += 1.0;
            self.frames[at as usize].referenced = true;
            if self.cache.of(at).is_some() {
                self.sums.re += 1.0;
                self.cache.to_head(CACHE, at);
            }
            return;
        }
        let Some(at) = self.allocate() else { return };
        self.sums.fpi += 1.0;
        self.frames[at as usize] = Frame { owner: Owner::File(page), referenced: true };
        self.file_at[page as usize] = at;
        // The window is soon another page's; then this one is free, if that is the rule.
        if self.release == Release::Cyclic {
            self.cache.to_head(CACHE, at);
        }
    }

    fn use_page(&mut self, page: u32) {
        let at = self.application_at[page as usize];
        if at != NOWHERE {
            self.frames[at as usize].referenced = true;
            if self.cache.of(at).is_some() {
                self.cache.remove(at);
                self.sums.re += 1.0;
                self.sums.mf += 1.0;
            }
            return;
        }
        self.sums.mf += 1.0;
        let Some(at) = self.allocate() else { return };
        let program = page >= self.load.anonymous;
        let before = std::mem::replace(&mut self.used[page as usize], true);
        if program {
            self.sums.epi += 1.0;
        } else if before {
            self.sums.api += 1.0;
        }
        self.frames[at as usize] = Frame { owner: Owner::Application(page), referenced: true };
        self.application_at[page as usize] = at;
    }

    /// A frame from the free list, or the oldest of the cache list. Below throttlefree, which is minfree, the
    /// process waits for the scanner's next turn.
    fn allocate(&mut self) -> Option<u32> {
        if self.available() <= self.tunables.minfree {
            self.sums.waits += 1.0;
            return None;
        }
        if let Some(frame) = self.free.pop() {
            return Some(frame);
        }
        let Some(frame) = self.cache.tail(CACHE) else {
            self.sums.waits += 1.0;
            return None;
        };
        self.cache.remove(frame);
        self.forget(frame);
        Some(frame)
    }

    fn forget(&mut self, frame: u32) {
        let frame = &mut self.frames[frame as usize];
        match std::mem::replace(&mut frame.owner, Owner::None) {
            Owner::None => {}
            Owner::File(page) => self.file_at[page as usize] = NOWHERE,
            Owner::Application(page) => self.application_at[page as usize] = NOWHERE,
        }
    }

    fn scan(&mut self) {
        let available = self.available();
        let lotsfree = self.tunables.lotsfree;
        // With priority paging cachefree takes lotsfree's place in the scanner's rate.
        let threshold = if self.release == Release::Priority { 2 * lotsfree } else { lotsfree };
        if available >= threshold {
            return;
        }
        let files_only = available >= lotsfree;
        let rate = Tunables { lotsfree: threshold, ..self.tunables };
        for _ in 0..rate.desscan(available) {
            if self.available() >= threshold {
                return;
            }
            self.sums.sr += 1.0;
            let count = self.load.frames;
            self.frames[self.front as usize].referenced = false;
            let back = (self.front + count - self.tunables.handspread) % count;
            self.front = (self.front + 1) % count;
            self.passed = self.passed.saturating_add(1);
            if self.passed > self.tunables.handspread {
                self.take(back, files_only);
            }
        }
    }

    fn take(&mut self, at: u32, files_only: bool) {
        let frame = self.frames[at as usize];
        if frame.referenced || self.cache.of(at).is_some() {
            return;
        }
        match frame.owner {
            Owner::None => return,
            Owner::File(_) => self.sums.fpf += 1.0,
            Owner::Application(_) if files_only => return,
            Owner::Application(page) if page >= self.load.anonymous => self.sums.epf += 1.0,
            Owner::Application(_) => {
                // Anonymous pages are dirty: written first, so many a turn.
                if self.writes == 0 {
                    return;
                }
                self.writes -= 1;
                self.sums.apo += 1.0;
                self.sums.apf += 1.0;
            }
        }
        self.sums.fr += 1.0;
        let file = !matches!(frame.owner, Owner::Application(page) if page < self.load.anonymous);
        if self.release == Release::Cyclic && file {
            self.cache.to_head(CACHE, at);
        } else {
            self.forget(at);
            self.free.push(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_reference::rng::Rng;
    use proptest::prelude::*;

    fn load() -> Load {
        Load {
            frames: 8192,
            page: 8192,
            files: 32_768,
            reads: 200,
            anonymous: 3000,
            programs: 500,
            hot: 0.3,
            idle: 120.0,
            fastscan: 1024,
        }
    }

    #[test]
    fn with_the_cache_list_a_file_server_makes_no_shortage() {
        let cyclic = run(Release::Cyclic, &load(), 200, 1);
        assert_eq!((cyclic.sr, cyclic.api, cyclic.apo), (0.0, 0.0, 0.0));
        assert!(cyclic.free > 4000.0 && cyclic.re > 0.0, "{cyclic:?}");
        let scanner = run(Release::Scanner, &load(), 200, 1);
        assert!(scanner.sr > 100.0 && scanner.api > 1.0, "{scanner:?}");
        let priority = run(Release::Priority, &load(), 200, 1);
        assert!(priority.sr > 0.0 && priority.api < scanner.api, "{priority:?}");
    }

    #[test]
    fn applications_beyond_memory_are_a_shortage_under_every_rule() {
        let load = Load { anonymous: 12_000, hot: 0.2, idle: 10.0, ..load() };
        for release in [Release::Scanner, Release::Priority, Release::Cyclic] {
            let rates = run(release, &load, 200, 1);
            assert!(rates.sr > 0.0 && rates.api > 0.0 && rates.apo > 0.0, "{release:?} {rates:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn frames_are_conserved(seed: u64, anonymous in 0u32..9000, reads in 0u32..3000) {
            let load = Load { anonymous, reads, ..load() };
            for release in [Release::Scanner, Release::Priority, Release::Cyclic] {
                let mut rng = Rng::new(seed);
                let mut memory = Memory::new(release, &load);
                for _ in 0..40 {
                    memory.writes = 10;
                    memory.turn(&mut rng);
                    let owned = memory.frames.iter().filter(|f| f.owner != Owner::None).count();
                    prop_assert_eq!(owned + memory.free.len(), load.frames as usize);
                    let found = |at: &&u32| **at != NOWHERE;
                    let known = memory.file_at.iter().filter(found).count()
                        + memory.application_at.iter().filter(found).count();
                    prop_assert_eq!(known, owned);
                }
            }
        }
    }
}
