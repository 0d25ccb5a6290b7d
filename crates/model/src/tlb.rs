//! Translation buffers of today: the same question as with pmegs, how much memory can be used before
//! translations run out, with buffers that are refilled from tables in memory.
//!
//! Two levels of set-associative buffers, LRU within a set; a miss of both walks the tables from the lowest
//! level whose entry the walk cache has. Every entry read is a read of memory through the processor's
//! caches, in which tables and data compete; so a walk is cheap while the tables are in a cache.

use std::collections::HashMap;

pub use pagelab_caches::Buffer;
use pagelab_caches::{Geometry, Sets};
use pagelab_reference::rng::Rng;

use crate::BASE_PAGE;
use crate::parameter::Parameter;
use crate::parameter_table;

/// Bytes of a large page, of a cache's line.
pub(crate) const LARGE: u64 = 2 << 20;
const LINE: u64 = 64;
/// Entries of a table, and of a line of it.
const TABLE: u64 = 512;
const ENTRIES: u64 = LINE / 8;

/// A cache of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cache {
    /// Bytes.
    pub bytes: u64,
    /// Lines in a set.
    pub ways: u32,
    /// Cycles of a read that it answers.
    pub hit: f64,
    /// Whether a hash spreads neighbouring places of all pages over all sets, as in third-level caches.
    pub hashed: bool,
}

/// A processor's translation and caches. Times in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tlb {
    /// The first level for base pages: a hit costs nothing more.
    pub first: Buffer,
    /// The first level for large pages.
    pub first_large: Buffer,
    /// The second level, for both.
    pub second: Buffer,
    /// Cycles of a hit there.
    pub second_hit: f64,
    /// Entries of the upper tables that walks find again.
    pub walk_cache: u32,
    /// Cycles of a walk besides reading its entries.
    pub walk: f64,
    /// Levels of tables for base pages; large ones need one less.
    pub levels: u32,
    /// The caches, nearest first.
    pub caches: [Cache; 3],
    /// Cycles of a read from memory.
    pub memory: f64,
    /// Cycles in a nanosecond.
    pub gigahertz: f64,
}

impl Tlb {
    /// An Intel server processor of the Skylake generation (Intel's optimization manual: 64 entries of 4 KiB
    /// or 32 of 2 MiB, then 1,536 shared, a hit there 9 cycles; caches of 32 KiB, 1 MiB and 1.375 MiB a core).
    /// The walk cache's 32 entries are those that van Schaik and others measured (2017); cycles of caches
    /// and memory, and a last cache of 24 MiB, are assumed.
    pub const SKYLAKE: Self = Self {
        first: Geometry::SKYLAKE.data_pages[0],
        first_large: Geometry::SKYLAKE.data_pages[1],
        second: Geometry::SKYLAKE.second_pages,
        second_hit: 9.0,
        walk_cache: 32,
        walk: 15.0,
        levels: 4,
        caches: [
            Cache { bytes: 32 << 10, ways: 8, hit: 5.0, hashed: false },
            Cache { bytes: 1 << 20, ways: 16, hit: 14.0, hashed: false },
            Cache { bytes: 24 << 20, ways: 12, hit: 60.0, hashed: true },
        ],
        memory: 200.0,
        gigahertz: 2.5,
    };

    /// Bytes that the second level reaches.
    pub fn reach(&self, large: bool) -> u64 {
        u64::from(self.second.entries) * if large { LARGE } else { BASE_PAGE }
    }
}

const MANUAL: &str = "Intel's optimization manual, Skylake server";
const CYCLES: &str = "latencies of caches and memory of the time";

/// The parameters of a CPU.
pub const PARAMETERS: &[Parameter<Tlb>] = parameter_table! {
    buffer "l1" "" [1.0, 1048576.0] "first-level TLB for base pages, entries and ways", documented(MANUAL), (first);
    buffer "l1-large" "" [1.0, 1048576.0] "first-level TLB for large pages", documented(MANUAL), (first_large);
    buffer "l2" "" [1.0, 1048576.0] "second-level TLB for base and large pages", documented(MANUAL), (second);
    number "l2-hit" "cycles" [0.0, 10000.0] "hit in the second-level TLB", documented(MANUAL), (second_hit);
    whole "walk-cache" "" [0.0, 65536.0] "entries of upper-level tables in the page-walk cache",
        documented("van Schaik and others 2017"), (walk_cache);
    number "walk" "cycles" [0.0, 10000.0] "page walk without the reads of its entries", assumed(CYCLES), (walk);
    whole "levels" "" [2.0, 6.0] "page-table levels for base pages", documented(MANUAL), (levels);
    size "cache1" "" [4096.0, 1073741824.0] "first-level cache", documented(MANUAL), (caches[0].bytes);
    size "cache2" "" [4096.0, 1073741824.0] "second-level cache", documented(MANUAL), (caches[1].bytes);
    size "cache3" "" [4096.0, 1073741824.0] "third-level cache", assumed("cache of one socket"), (caches[2].bytes);
    number "cache1-hit" "cycles" [0.0, 10000.0] "hit in the first-level cache", assumed(CYCLES), (caches[0].hit);
    number "cache2-hit" "cycles" [0.0, 10000.0] "hit in the second-level cache",
        assumed(CYCLES), (caches[1].hit);
    number "cache3-hit" "cycles" [0.0, 10000.0] "hit in the third-level cache",
        assumed(CYCLES), (caches[2].hit);
    number "miss" "cycles" [0.0, 100000.0] "read from memory", assumed(CYCLES), (memory);
    number "ghz" "GHz" [0.01, 100.0] "CPU clock frequency", assumed("a server's base clock"), (gigahertz);
};

/// What references met; sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Met {
    /// References.
    pub references: u64,
    /// Of these missed the first level.
    pub first_misses: u64,
    /// Of these missed both.
    pub walks: u64,
    /// Cycles of translation.
    pub translation: f64,
    /// Cycles of reading what was referenced.
    pub data: f64,
}

impl Met {
    /// This many times as much.
    pub fn times(&self, n: u64) -> Self {
        Self {
            references: self.references * n,
            first_misses: self.first_misses * n,
            walks: self.walks * n,
            translation: self.translation * n as f64,
            data: self.data * n as f64,
        }
    }

    /// Cycles in all.
    pub fn cycles(&self) -> f64 {
        self.translation + self.data
    }
}

impl std::ops::AddAssign for Met {
    fn add_assign(&mut self, other: Self) {
        self.references += other.references;
        self.first_misses += other.first_misses;
        self.walks += other.walks;
        self.translation += other.translation;
        self.data += other.data;
    }
}

/// A processor at work on several address spaces, with pages of one size.
pub struct Processor {
    tlb: Tlb,
    large: bool,
    first: Sets,
    second: Sets,
    walks: Sets,
    caches: Vec<(Sets, Cache)>,
    /// The frame of each page, large page and table, by chance and then for good.
    frames: HashMap<u64, u64>,
    rng: Rng,
}

impl Processor {
    /// With nothing in any buffer.
    pub fn new(tlb: Tlb, large: bool, seed: u64) -> Self {
        let sets = |buffer: Buffer| Sets::new(u64::from(buffer.entries), buffer.ways);
        Self {
            tlb,
            large,
            first: sets(if large { tlb.first_large } else { tlb.first }),
            second: sets(tlb.second),
            walks: Sets::new(u64::from(tlb.walk_cache), tlb.walk_cache),
            caches: tlb.caches.iter().map(|c| (Sets::new(c.bytes / LINE, c.ways), *c)).collect(),
            frames: HashMap::new(),
            rng: Rng::new(seed),
        }
    }

    /// Reads the first byte of a base page of an address space; its translation, and the data.
    pub fn read(&mut self, space: u32, page: u64) -> Met {
        let mut met = self.translate(space, page);
        let (unit, rest) = if self.large { (page / TABLE, page % TABLE) } else { (page, 0) };
        let frame = self.frame(0, space, unit);
        let pages = if self.large { TABLE } else { 1 };
        met.data = self.fetch((frame * pages + rest) * (BASE_PAGE / LINE));
        met
    }

    /// The translation alone.
    pub fn translate(&mut self, space: u32, page: u64) -> Met {
        let page = if self.large { page / TABLE } else { page };
        let tag = u64::from(space) << 48 | page;
        let mut met = Met { references: 1, ..Met::default() };
        if self.first.touch(page, tag) {
            return met;
        }
        met.first_misses = 1;
        met.translation = self.tlb.second_hit;
        if self.second.touch(page, tag) {
            return met;
        }
        met.walks = 1;
        met.translation += self.tlb.walk;
        // Up to the lowest upper table whose entry is known, then down again.
        let levels = self.tlb.levels.max(2) - u32::from(self.large);
        let mut from = levels;
        for level in 2..=levels {
            let prefix = page / TABLE.pow(level - 1);
            if self.tlb.walk_cache > 0 && self.walks.touch(0, tag_of(level, space, prefix)) {
                from = level - 1;
                break;
            }
        }
        for level in (1..=from).rev() {
            let entry = page / TABLE.pow(level - 1);
            let table = self.frame(level, space, entry / TABLE);
            met.translation += self.fetch(table * (BASE_PAGE / LINE) + entry % TABLE / ENTRIES);
        }
        met
    }

    /// Cycles until a line is there; it is then in every cache up to the one that had it.
    fn fetch(&mut self, line: u64) -> f64 {
        for (sets, cache) in &mut self.caches {
            let index = if cache.hashed { line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 } else { line };
            if sets.touch(index, line) {
                return cache.hit;
            }
        }
        self.tlb.memory
    }

    fn frame(&mut self, level: u32, space: u32, number: u64) -> u64 {
        let rng = &mut self.rng;
        *self.frames.entry(tag_of(level, space, number)).or_insert_with(|| rng.below(1 << 30))
    }
}

fn tag_of(level: u32, space: u32, number: u64) -> u64 {
    u64::from(level) << 60 | u64::from(space) << 40 | number
}

/// Translations of `count` base pages of a region at random, after as many to warm up.
pub fn random(tlb: &Tlb, large: bool, bytes: u64, count: u64, seed: u64) -> Met {
    let mut rng = Rng::new(seed);
    let mut processor = Processor::new(*tlb, large, seed);
    let pages = bytes.div_ceil(BASE_PAGE).max(1);
    let mut met = Met::default();
    for turn in 0..2 * count {
        let found = processor.translate(0, rng.below(pages));
        if turn >= count {
            met += found;
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TLB: Tlb = Tlb::SKYLAKE;

    #[test]
    fn a_region_within_the_first_level_costs_nothing() {
        let met = random(&TLB, false, 64 * BASE_PAGE, 10_000, 1);
        assert_eq!(met, Met { references: 10_000, ..Met::default() });
    }

    #[test]
    fn beyond_the_reach_the_share_that_fits_hits() {
        assert_eq!((TLB.reach(false), TLB.reach(true)), (6 << 20, 3 << 30));
        let walks = |large| random(&TLB, large, 4 * TLB.reach(false), 50_000, 1).walks as f64 / 50_000.0;
        assert!((walks(false) - 0.75).abs() < 0.02, "{}", walks(false));
        assert_eq!(walks(true), 0.0);
    }

    #[test]
    fn more_levels_cost_only_where_the_walk_cache_ends() {
        let with = |levels, walk_cache| {
            let tlb = Tlb { levels, walk_cache, ..TLB };
            random(&tlb, false, 1 << 30, 20_000, 1).translation
        };
        assert!(with(4, 0) > with(4, 32) && with(5, 0) > with(4, 0));
    }

    #[test]
    fn one_byte_of_each_page_fills_a_cache_at_its_size_unless_it_is_hashed() {
        // The first bytes of pages fall on a 64th of the sets: as many fit as the cache has pages.
        let reads = |pages: u64| {
            let mut processor = Processor::new(TLB, false, 1);
            for page in (0..3).flat_map(|_| 0..pages) {
                processor.read(0, page);
            }
            (0..pages).map(|page| processor.read(0, page).data).sum::<f64>() / pages as f64
        };
        assert!(reads(128) < 20.0, "{}", reads(128));
        assert!(reads(1024) > 50.0, "{}", reads(1024));
        assert!(reads(20_000) < 65.0, "{}", reads(20_000));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn walks_are_misses_of_both_levels(pages in 1u64..10_000, seed: u64) {
            let met = random(&TLB, false, pages * BASE_PAGE, 5000, seed);
            prop_assert!(met.walks <= met.first_misses && met.first_misses <= met.references);
            prop_assert!(met.translation >= 9.0 * met.first_misses as f64 - 1e-6);
        }
    }
}
