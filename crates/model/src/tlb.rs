//! Translation buffers of today: the same question as with pmegs, how much memory can be used before
//! translations run out, with buffers that are refilled from tables in memory.
//!
//! Two levels of set-associative buffers, LRU within a set; a miss walks the tables, of which caches of the
//! upper levels spare all but the last step while they reach. The last step's cost grows with the table
//! itself, which must be in a cache to be cheap.

use pagelab_reference::rng::Rng;

/// A set-associative buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Entries.
    pub entries: u32,
    /// Entries in a set.
    pub ways: u32,
}

/// A processor's translation, for one page size. Times in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tlb {
    /// Bytes of a page.
    pub page: u64,
    /// The first level: a hit costs nothing more.
    pub first: Buffer,
    /// The second level.
    pub second: Buffer,
    /// Cycles of a hit there.
    pub second_hit: f64,
    /// The cache of the directory entries that lead to the last tables.
    pub walk_cache: Buffer,
    /// Cycles of a walk besides reading its entries.
    pub walk: f64,
    /// Caches that may hold tables: bytes, and cycles of a read.
    pub caches: [(u64, f64); 3],
    /// Cycles of a read from memory.
    pub memory: f64,
}

impl Tlb {
    /// An Intel server processor of the Skylake generation (Intel's optimization manual: 64 entries of 4 KiB
    /// or 32 of 2 MiB, then 1,536 shared, a hit there 9 cycles). The walk cache's 32 entries are those that
    /// van Schaik and others measured (2017); cycles of caches and memory are assumed.
    pub fn skylake(large: bool) -> Self {
        Self {
            page: if large { 2 << 20 } else { 4096 },
            first: Buffer { entries: if large { 32 } else { 64 }, ways: 4 },
            second: Buffer { entries: 1536, ways: 12 },
            second_hit: 9.0,
            walk_cache: Buffer { entries: 32, ways: 32 },
            walk: 15.0,
            caches: [(32 << 10, 5.0), (1 << 20, 14.0), (24 << 20, 60.0)],
            memory: 200.0,
        }
    }

    /// Bytes that the second level reaches.
    pub fn reach(&self) -> u64 {
        u64::from(self.second.entries) * self.page
    }

    /// Reading an entry of a table of so many bytes, all of it in use.
    fn read(&self, bytes: u64) -> f64 {
        self.caches.iter().find(|(size, _)| bytes <= *size).map_or(self.memory, |&(_, cycles)| cycles)
    }
}

/// What references to a region met.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Met {
    /// Share that missed the first level.
    pub first_misses: f64,
    /// Share that missed both.
    pub walks: f64,
    /// Cycles of translation a reference.
    pub cycles: f64,
}

/// The pages of each set, the latest used last.
struct Sets {
    sets: Vec<Vec<u64>>,
    ways: usize,
}

impl Sets {
    fn new(buffer: Buffer) -> Self {
        let sets = (buffer.entries / buffer.ways).max(1) as usize;
        Self { sets: vec![Vec::with_capacity(buffer.ways as usize); sets], ways: buffer.ways as usize }
    }

    /// Whether the page was there; it is afterwards.
    fn touch(&mut self, page: u64) -> bool {
        let index = (page % self.sets.len() as u64) as usize;
        let set = &mut self.sets[index];
        let found = set.iter().position(|&held| held == page);
        match found {
            Some(at) => drop(set.remove(at)),
            None if set.len() == self.ways => drop(set.remove(0)),
            None => {}
        }
        set.push(page);
        found.is_some()
    }
}

/// References `count` pages of a region at random, after as many to warm up.
pub fn random(tlb: &Tlb, bytes: u64, count: u64, seed: u64) -> Met {
    const ENTRY: u64 = 8;
    const TABLE: u64 = 512;
    let mut rng = Rng::new(seed);
    let pages = bytes.div_ceil(tlb.page).max(1);
    let (mut first, mut second) = (Sets::new(tlb.first), Sets::new(tlb.second));
    let mut directory = Sets::new(tlb.walk_cache);
    let mut met = Met::default();
    let (last, above) = (tlb.read(pages * ENTRY), tlb.read(pages.div_ceil(TABLE) * ENTRY));
    for turn in 0..2 * count {
        let page = rng.below(pages);
        let counted = f64::from(u8::from(turn >= count));
        if first.touch(page) {
            continue;
        }
        met.first_misses += counted;
        if second.touch(page) {
            met.cycles += counted * tlb.second_hit;
            continue;
        }
        met.walks += counted;
        let upper = if directory.touch(page / TABLE) { 0.0 } else { above };
        met.cycles += counted * (tlb.second_hit + tlb.walk + last + upper);
    }
    let all = count as f64;
    Met { first_misses: met.first_misses / all, walks: met.walks / all, cycles: met.cycles / all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_region_within_the_first_level_costs_nothing() {
        let met = random(&Tlb::skylake(false), 64 * 4096, 10_000, 1);
        assert_eq!(met, Met::default());
    }

    #[test]
    fn beyond_the_reach_the_share_that_fits_hits() {
        let tlb = Tlb::skylake(false);
        assert_eq!(tlb.reach(), 6 << 20);
        let met = random(&tlb, 4 * tlb.reach(), 50_000, 1);
        assert!((met.walks - 0.75).abs() < 0.02, "{met:?}");
        let large = random(&Tlb::skylake(true), 4 * tlb.reach(), 50_000, 1);
        assert_eq!(large.walks, 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn walks_are_misses_of_both_levels(pages in 1u64..10_000, seed: u64) {
            let met = random(&Tlb::skylake(false), pages * 4096, 5000, seed);
            prop_assert!(met.walks <= met.first_misses && met.first_misses <= 1.0);
            prop_assert!(met.cycles >= 9.0 * met.first_misses - 1e-9);
        }
    }
}
