//! The reverse maps, exchangeable: each is told of every change of a page table and counts its work.

/// How mappings of a page are found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not at all (2.4): reclaim walks the page tables.
    None,
    /// A chain of pointers to page table entries, the only one direct (2.5.27 and McCracken's variant).
    Chain,
    /// Through the object that the page belongs to: `anon_vma` and `address_space` (2.6.7).
    Object,
    /// A count now, and chains built by one walk of all page tables when reclaim first needs them.
    Lazy,
    /// Through the object, and counts kept for runs of pages of one folio (6.x).
    Folio,
}

/// All of them.
pub const KINDS: [Kind; 5] = [Kind::None, Kind::Chain, Kind::Object, Kind::Lazy, Kind::Folio];

impl Kind {
    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none (2.4)",
            Self::Chain => "pte_chain (2.5.27)",
            Self::Object => "objects (2.6.7)",
            Self::Lazy => "lazily built chains",
            Self::Folio => "objects, batched folio counts (6.x)",
        }
    }
}

/// Pages of a folio of the page cache, 64 KiB: what read-ahead gives.
pub const FOLIO: u32 = 16;

/// What was done for the reverse map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Entries noted or forgotten: calls for one page, or for a run of one folio.
    pub operations: u64,
    /// Atomic operations.
    pub atomics: u64,
    /// Lines fetched from memory or from another processor.
    pub misses: u64,
    /// Allocations and frees of an element.
    pub slab: u64,
}

/// What the parts cost, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// An atomic operation on a line that is there.
    pub atomic: f64,
    /// A line from memory or from another processor's cache.
    pub miss: f64,
    /// That the other processors drop a line that is here: no data on the bus.
    pub shared: f64,
    /// An allocation or a free from the processor's own list.
    pub slab: f64,
    /// A call and its tests.
    pub call: f64,
}

impl Costs {
    /// A quad Pentium III. Assumed: a locked operation of some 40 cycles, a line over a front side bus
    /// that four processors share, ten of that bus's 100 MHz cycles where no data follow, a slab call of some 60
    /// cycles.
    pub const QUAD_PENTIUM_III: Self =
        Self { atomic: 60.0, miss: 250.0, shared: 100.0, slab: 90.0, call: 30.0 };

    /// The time of some work, in ns.
    pub fn time(&self, work: &Work) -> f64 {
        work.atomics as f64 * self.atomic
            + work.misses as f64 * self.miss
            + work.slab as f64 * self.slab
            + work.operations as f64 * self.call
    }
}

impl std::ops::Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            atomics: self.atomics + other.atomics,
            misses: self.misses + other.misses,
            slab: self.slab + other.slab,
        }
    }
}

/// A page, by number.
pub type Page = u32;
/// A mapper: an address space, by number. It maps a page once at most.
pub type Mapper = u32;

/// What the chain saw, as Morton's counters have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainCounts {
    /// Entries noted for a page without any: the direct pointer.
    pub add_first: u64,
    /// For a page with one.
    pub add_second: u64,
    /// For a page with one or more.
    pub add_more: u64,
    /// Forgotten where the pointer was direct.
    pub remove_first: u64,
    /// Elements looked at in removing, over all.
    pub walked: u64,
    /// Removals that had to walk.
    pub walks: u64,
}

/// The chains, which every kind needs to know who maps what; their work counts for [`Kind::Chain`] only.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    mappers: Vec<Vec<Mapper>>,
    uses: Vec<u32>,
    counts: ChainCounts,
    adding: Work,
    removing: Work,
}

impl Chains {
    /// Makes room for a page of this number.
    pub fn page(&mut self, page: Page) {
        if self.mappers.len() <= page as usize {
            self.mappers.resize(page as usize + 1, Vec::new());
            self.uses.resize(page as usize + 1, 0);
        }
    }

    /// Who maps a page, the latest last.
    pub fn mappers(&self, page: Page) -> &[Mapper] {
        &self.mappers[page as usize]
    }

    /// `mapper` maps `page`. The struct page is a line that another processor wrote last, unless it is
    /// new; the element comes from the processor's own list.
    pub fn add(&mut self, page: Page, mapper: Mapper) {
        let chain = &mut self.mappers[page as usize];
        self.uses[page as usize] += 1;
        let elements = match chain.len() {
            0 => {
                self.counts.add_first += 1;
                0
            }
            1 => {
                self.counts.add_second += 1;
                self.counts.add_more += 1;
                2
            }
            _ => {
                self.counts.add_more += 1;
                1
            }
        };
        self.adding.operations += 1;
        self.adding.atomics += 2;
        self.adding.misses += u64::from(!chain.is_empty());
        self.adding.slab += elements;
        chain.push(mapper);
    }

    /// `mapper` maps `page` no more. A walk begins at the latest; each element is a line, and the pages'
    /// elements lie apart.
    pub fn remove(&mut self, page: Page, mapper: Mapper) {
        let chain = &mut self.mappers[page as usize];
        self.uses[page as usize] += 1;
        self.removing.operations += 1;
        self.removing.atomics += 2;
        let Some(at) = chain.iter().rposition(|&found| found == mapper) else {
            debug_assert!(false, "page {page} is not mapped by {mapper}");
            return;
        };
        if chain.len() == 1 {
            self.counts.remove_first += 1;
        } else {
            let walked = (chain.len() - at) as u64;
            self.counts.walks += 1;
            self.counts.walked += walked;
            self.removing.misses += 1 + walked;
            self.removing.slab += 1 + u64::from(chain.len() == 2);
        }
        chain.remove(at);
    }

    /// Forgets the counts, not who maps what.
    pub fn reset_counts(&mut self) {
        self.counts = ChainCounts::default();
        (self.adding, self.removing) = (Work::default(), Work::default());
        self.uses.fill(0);
    }

    /// The counters.
    pub fn counts(&self) -> ChainCounts {
        self.counts
    }

    /// The work of adding, and of removing.
    pub fn work(&self) -> (Work, Work) {
        (self.adding, self.removing)
    }
}

/// The work of the kinds that keep counts, from the events of page tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// With a count for each page.
    pub object: Work,
    /// With a count for each run of a folio.
    pub folio: Work,
    /// With a count for each page and no objects.
    pub lazy: Work,
}

impl Counted {
    /// `pages` entries of one mapping were made or dropped, in `runs` runs of one folio each; of them
    /// `hot` struct pages are already in the cache.
    pub fn entries(&mut self, pages: u64, runs: u64, hot: u64) {
        for work in [&mut self.object, &mut self.lazy] {
            work.operations += pages;
            work.atomics += pages;
            work.misses += pages - hot;
        }
        self.folio.operations += runs;
        self.folio.atomics += runs;
        self.folio.misses += runs.saturating_sub(hot);
    }

    /// A mapping was linked to its object, or unlinked: a lock, an element, and the object's line.
    pub fn mapping(&mut self) {
        for work in [&mut self.object, &mut self.folio] {
            work.operations += 1;
            work.atomics += 2;
            work.misses += 2;
            work.slab += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_chain_counts_as_the_direct_pointer_variant_does() {
        let mut chains = Chains::default();
        chains.page(0);
        (1..=3).for_each(|mapper| chains.add(0, mapper));
        let counts = chains.counts();
        assert_eq!((counts.add_first, counts.add_second, counts.add_more), (1, 1, 2));
        // 2 elements for the second, 1 for the third.
        assert_eq!(chains.work().0.slab, 3);
        chains.remove(0, 1);
        assert_eq!(chains.counts().walked, 3);
        chains.remove(0, 3);
        assert_eq!(chains.counts().walked, 4);
        chains.remove(0, 2);
        assert_eq!(chains.counts().remove_first, 1);
        // Every element that was allocated is freed.
        assert_eq!(chains.work().1.slab, 3);
    }

    proptest! {
        #[test]
        fn elements_balance_and_identities_hold(steps in prop::collection::vec((0u32..4, 0u32..6), 1..200)) {
            let mut chains = Chains::default();
            chains.page(3);
            let mut held: Vec<(u32, u32)> = Vec::new();
            for (page, mapper) in steps {
                match held.iter().position(|&pair| pair == (page, mapper)) {
                    Some(at) => {
                        held.swap_remove(at);
                        chains.remove(page, mapper);
                    }
                    None => {
                        held.push((page, mapper));
                        chains.add(page, mapper);
                    }
                }
            }
            for (page, mapper) in held {
                chains.remove(page, mapper);
            }
            let (counts, (adding, removing)) = (chains.counts(), chains.work());
            prop_assert_eq!(counts.add_first + counts.add_more, adding.operations);
            prop_assert_eq!(adding.operations, removing.operations);
            prop_assert_eq!(adding.slab, removing.slab);
            prop_assert_eq!(counts.remove_first + counts.walks, removing.operations);
        }
    }
}
