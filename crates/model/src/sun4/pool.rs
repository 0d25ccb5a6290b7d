//! Pmegs and hardware contexts: who has which, and who loses one when another is needed.

use std::collections::VecDeque;

use pagelab_reference::rng::Rng;

/// An address space, by number.
pub type Space = usize;

/// Which pmeg is taken when none is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// Any pmeg of an address space that has no hardware context; any at all when every one has.
    Contextless,
    /// Any pmeg.
    Any,
    /// The one loaded longest ago.
    Fifo,
    /// The one used longest ago.
    Lru,
}

/// Which address space loses its hardware context when another needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contexts {
    /// Any.
    Random,
    /// The one that ran longest ago.
    Lru,
}

/// What the software keeps of a pmeg that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// Nothing: SunOS 4.0.3.
    None,
    /// Copies of this many pmegs, the oldest dropped first.
    Some(u32),
    /// A copy of every pmeg.
    All,
}

/// What a reference found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The translation is there.
    Present,
    /// One translation was entered.
    Fault,
    /// The whole pmeg was written back from its copy.
    Reload,
}

/// What happened in the pool so far, as `hatcnt` counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Translations entered one by one.
    pub faults: u64,
    /// Pmegs reloaded whole.
    pub reloads: u64,
    /// Pmegs allocated.
    pub allocations: u64,
    /// Allocations that took another's pmeg.
    pub steals: u64,
    /// Hardware contexts taken from another address space.
    pub context_steals: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pmeg {
    space: Space,
    segment: usize,
    valid: u64,
    loaded: u64,
    used: u64,
}

/// The pool of pmegs that user processes share, and their hardware contexts.
#[derive(Clone, Debug)]
pub struct Pool {
    entries: u32,
    victim: Victim,
    replacement: Contexts,
    kept: Copies,
    pmegs: Vec<Option<Pmeg>>,
    free: Vec<usize>,
    map: Vec<Vec<Option<usize>>>,
    copies: Vec<Vec<u64>>,
    copied: VecDeque<(Space, usize)>,
    loaded: Vec<u32>,
    context_of: Vec<Option<usize>>,
    contexts: Vec<Option<(Space, u64)>>,
    counts: Counts,
    clock: u64,
    /// The pmegs of address spaces that have no hardware context.
    contextless: Bits,
}

/// A set of pmegs, by number.
#[derive(Clone, Debug)]
struct Bits(Vec<u64>);

impl Bits {
    /// An empty set of numbers below `most`.
    fn new(most: usize) -> Self {
        Self(vec![0; most.div_ceil(64)])
    }

    fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 != 0
    }

    fn set(&mut self, number: usize, contained: bool) {
        let word = &mut self.0[number / 64];
        *word = *word & !(1 << (number % 64)) | u64::from(contained) << (number % 64);
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The member with `rank` smaller ones.
    ///
    /// # Panics
    /// When there are no more than `rank`.
    fn nth(&self, mut rank: usize) -> usize {
        for (at, &word) in self.0.iter().enumerate() {
            let count = word.count_ones() as usize;
            if rank < count {
                let rest = (0..rank).fold(word, |word, _| word & (word - 1));
                return at * 64 + rest.trailing_zeros() as usize;
            }
            rank -= count;
        }
        panic!("fewer members than asked for")
    }
}

impl Pool {
    /// A pool of `pmegs` pmegs (at least 1) of `entries` entries and `contexts` contexts (at least 1),
    /// those of the kernel not counted.
    pub fn new(
        pmegs: u32,
        entries: u32,
        contexts: u32,
        victim: Victim,
        replacement: Contexts,
        kept: Copies,
    ) -> Self {
        assert!(pmegs > 0 && contexts > 0 && (1..=64).contains(&entries));
        Self {
            entries,
            victim,
            replacement,
            kept,
            pmegs: vec![None; pmegs as usize],
            free: (0..pmegs as usize).rev().collect(),
            map: Vec::new(),
            copies: Vec::new(),
            copied: VecDeque::new(),
            loaded: Vec::new(),
            context_of: Vec::new(),
            contexts: vec![None; contexts as usize],
            counts: Counts::default(),
            clock: 0,
            contextless: Bits::new(pmegs as usize),
        }
    }

    /// A new address space with `segments` segments, without context.
    pub fn space(&mut self, segments: usize) -> Space {
        self.map.push(vec![None; segments]);
        self.copies.push(vec![0; segments]);
        self.loaded.push(0);
        self.context_of.push(None);
        self.map.len() - 1
    }

    /// Gives `space` a hardware context if it has none. Called when its process is switched to.
    pub fn switch_to(&mut self, space: Space, rng: &mut Rng) {
        self.clock += 1;
        if let Some(context) = self.context_of[space] {
            self.contexts[context] = Some((space, self.clock));
            return;
        }
        let context = self.contexts.iter().position(Option::is_none).unwrap_or_else(|| {
            self.counts.context_steals += 1;
            match self.replacement {
                Contexts::Random => rng.below(self.contexts.len() as u64) as usize,
                Contexts::Lru => {
                    let used = |&i: &usize| self.contexts[i].map_or(0, |(_, used)| used);
                    (0..self.contexts.len()).min_by_key(used).unwrap_or(0)
                }
            }
        });
        if let Some((loser, _)) = self.contexts[context] {
            self.context_of[loser] = None;
            self.note_context(loser);
        }
        self.contexts[context] = Some((space, self.clock));
        self.context_of[space] = Some(context);
        self.note_context(space);
    }

    /// How many entries from `entry` on, at most `most`, are present in a row.
    pub fn present(&self, space: Space, segment: usize, entry: u32, most: u32) -> u32 {
        match self.map[space][segment].and_then(|index| self.pmegs[index].as_ref()) {
            Some(pmeg) => (pmeg.valid >> entry).trailing_ones().min(self.entries - entry).min(most),
            None => 0,
        }
    }

    /// Whether a segment has a pmeg.
    pub fn holds(&self, space: Space, segment: usize) -> bool {
        self.map[space][segment].is_some()
    }

    /// References the absent entries from `entry` on, at most `most`, of a segment that has a pmeg: each
    /// is a fault. Returns how many there were.
    pub fn fill(&mut self, space: Space, segment: usize, entry: u32, most: u32) -> u32 {
        self.clock += 1;
        let Some(pmeg) = self.map[space][segment].and_then(|index| self.pmegs[index].as_mut()) else {
            return 0;
        };
        let run = (pmeg.valid >> entry).trailing_zeros().min(self.entries - entry).min(most);
        if run > 0 {
            pmeg.valid |= (u64::MAX >> (64 - run)) << entry;
        }
        pmeg.used = self.clock;
        self.counts.faults += u64::from(run);
        run
    }

    /// References one entry of a segment.
    pub fn touch(&mut self, space: Space, segment: usize, entry: u32, rng: &mut Rng) -> Touch {
        self.clock += 1;
        let bit = 1u64 << entry;
        if let Some(pmeg) = self.map[space][segment].and_then(|index| self.pmegs[index].as_mut()) {
            pmeg.used = self.clock;
            if pmeg.valid & bit != 0 {
                return Touch::Present;
            }
            pmeg.valid |= bit;
            self.counts.faults += 1;
            return Touch::Fault;
        }
        let index = self.allocate(rng);
        let copy = std::mem::take(&mut self.copies[space][segment]);
        if copy != 0 && matches!(self.kept, Copies::Some(_)) {
            self.copied.retain(|&held| held != (space, segment));
        }
        let touch = if copy & bit == 0 { Touch::Fault } else { Touch::Reload };
        match touch {
            Touch::Reload => self.counts.reloads += 1,
            _ => self.counts.faults += 1,
        }
        self.pmegs[index] =
            Some(Pmeg { space, segment, valid: copy | bit, loaded: self.clock, used: self.clock });
        self.map[space][segment] = Some(index);
        self.contextless.set(index, self.context_of[space].is_none());
        self.loaded[space] += 1;
        touch
    }

    /// Frees all pmegs of an address space, its copies and its context: exit, or being swapped out.
    pub fn release(&mut self, space: Space) {
        for segment in 0..self.map[space].len() {
            if let Some(index) = self.map[space][segment].take() {
                self.pmegs[index] = None;
                self.contextless.set(index, false);
                self.free.push(index);
            }
            self.copies[space][segment] = 0;
        }
        self.copied.retain(|&(owner, _)| owner != space);
        self.loaded[space] = 0;
        if let Some(context) = self.context_of[space].take() {
            self.contexts[context] = None;
        }
    }

    /// Pmegs that `space` has.
    pub fn held(&self, space: Space) -> u32 {
        self.loaded[space]
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn allocate(&mut self, rng: &mut Rng) -> usize {
        self.counts.allocations += 1;
        if let Some(index) = self.free.pop() {
            return index;
        }
        self.counts.steals += 1;
        let index = self.choose(rng);
        if let Some(victim) = self.pmegs[index].take() {
            self.map[victim.space][victim.segment] = None;
            self.loaded[victim.space] -= 1;
            self.keep(&victim);
        }
        index
    }

    fn keep(&mut self, victim: &Pmeg) {
        match self.kept {
            Copies::None | Copies::Some(0) => return,
            Copies::Some(most) => {
                self.copied.push_back((victim.space, victim.segment));
                if self.copied.len() > most as usize
                    && let Some((space, segment)) = self.copied.pop_front()
                {
                    self.copies[space][segment] = 0;
                }
            }
            Copies::All => {}
        }
        self.copies[victim.space][victim.segment] = victim.valid;
    }

    /// Notes whether the pmegs of an address space have a hardware context.
    fn note_context(&mut self, space: Space) {
        let without = self.context_of[space].is_none();
        for index in self.map[space].iter().flatten() {
            self.contextless.set(*index, without);
        }
    }

    fn choose(&self, rng: &mut Rng) -> usize {
        let all = self.pmegs.len();
        let by = |key: fn(&Pmeg) -> u64| {
            (0..all).min_by_key(|&i| self.pmegs[i].as_ref().map_or(0, key)).unwrap_or(0)
        };
        match self.victim {
            Victim::Any => rng.below(all as u64) as usize,
            Victim::Fifo => by(|pmeg| pmeg.loaded),
            Victim::Lru => by(|pmeg| pmeg.used),
            Victim::Contextless => {
                // A random pmeg until one fits; if few do, among all that do.
                for _ in 0..8 {
                    let index = rng.below(all as u64) as usize;
                    if self.contextless.contains(index) {
                        return index;
                    }
                }
                match self.contextless.len() {
                    0 => rng.below(all as u64) as usize,
                    count => self.contextless.nth(rng.below(count) as usize),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_reference::rng::Rng;
    use proptest::prelude::*;

    fn pool(pmegs: u32, kept: Copies) -> (Pool, Rng) {
        (Pool::new(pmegs, 64, 2, Victim::Contextless, Contexts::Random, kept), Rng::new(1))
    }

    #[test]
    fn a_stolen_pmeg_loses_every_translation() {
        let (mut pool, mut rng) = pool(1, Copies::None);
        let (a, b) = (pool.space(1), pool.space(1));
        for entry in 0..3 {
            assert_eq!(pool.touch(a, 0, entry, &mut rng), Touch::Fault);
            assert_eq!(pool.touch(a, 0, entry, &mut rng), Touch::Present);
        }
        assert_eq!(pool.present(a, 0, 0, 64), 3);
        assert_eq!(pool.touch(b, 0, 0, &mut rng), Touch::Fault);
        assert_eq!(pool.present(a, 0, 0, 64), 0);
        assert_eq!((pool.held(a), pool.held(b)), (0, 1));
        let counts = pool.counts();
        assert_eq!((counts.faults, counts.allocations, counts.steals), (4, 2, 1));
    }

    #[test]
    fn a_copy_brings_the_whole_pmeg_back() {
        let (mut pool, mut rng) = pool(1, Copies::All);
        let (a, b) = (pool.space(1), pool.space(1));
        for entry in 0..3 {
            pool.touch(a, 0, entry, &mut rng);
        }
        pool.touch(b, 0, 0, &mut rng);
        assert_eq!(pool.touch(a, 0, 1, &mut rng), Touch::Reload);
        assert_eq!(pool.present(a, 0, 0, 64), 3);
    }

    #[test]
    fn process_without_context_loses_pages_first() {
        let (mut pool, mut rng) = pool(3, Copies::None);
        let spaces: Vec<Space> = (0..3).map(|_| pool.space(2)).collect();
        for &space in &spaces[..2] {
            pool.switch_to(space, &mut rng);
        }
        for &space in &spaces {
            pool.touch(space, 0, 0, &mut rng);
        }
        pool.touch(spaces[0], 1, 0, &mut rng);
        assert_eq!(spaces.iter().map(|&s| pool.held(s)).collect::<Vec<_>>(), [2, 1, 0]);
    }

    proptest! {
        #[test]
        fn pmegs_are_neither_made_nor_lost(
            seed: u64,
            rule in 0usize..4,
            copies in 0usize..3,
            steps in prop::collection::vec((0usize..5, 0usize..4, 0u32..64, 0u8..20), 1..400),
        ) {
            let rule = [Victim::Contextless, Victim::Any, Victim::Fifo, Victim::Lru][rule];
            let copies = [Copies::None, Copies::Some(2), Copies::All][copies];
            let mut rng = Rng::new(seed);
            let mut pool = Pool::new(7, 64, 3, rule, Contexts::Lru, copies);
            let spaces: Vec<Space> = (0..5).map(|_| pool.space(4)).collect();
            for (space, segment, entry, kind) in steps {
                match kind {
                    0 => pool.release(spaces[space]),
                    1..4 => pool.switch_to(spaces[space], &mut rng),
                    _ => {
                        pool.touch(spaces[space], segment, entry, &mut rng);
                        prop_assert!(pool.present(spaces[space], segment, entry, 64) > 0);
                    }
                }
                let held: u32 = spaces.iter().map(|&s| pool.held(s)).sum();
                prop_assert_eq!(held as usize + pool.free.len(), 7);
                prop_assert!(pool.contexts.iter().flatten().count() <= 3);
                let without = |index: &usize| {
                    pool.pmegs[*index].is_some_and(|pmeg| pool.context_of[pmeg.space].is_none())
                };
                let expected: Vec<usize> = (0..7).filter(without).collect();
                let count = pool.contextless.len() as usize;
                let found: Vec<usize> = (0..count).map(|rank| pool.contextless.nth(rank)).collect();
                prop_assert_eq!(found, expected);
                let counts = pool.counts();
                prop_assert!(counts.steals <= counts.allocations);
                prop_assert!(counts.allocations <= counts.faults + counts.reloads);
            }
        }
    }
}
