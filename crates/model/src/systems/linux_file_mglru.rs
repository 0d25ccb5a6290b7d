//! Linux since 6.1 with the multi-generational LRU: file pages of one cgroup, read through
//! descriptors.
//!
//! A page that is read enters the oldest generation, or the second oldest where there are four
//! (`lru_gen_add_folio`). Reads do not move it: they count up to five (`folio_inc_refs`), and the
//! count's logarithm is the page's tier. Eviction takes the oldest generation from its old end. A
//! page whose tier is above a threshold moves to the next generation instead, and its count starts
//! again (`sort_folio`). The threshold is the last tier whose share of refaults is at most twice
//! that of the pages read once (`get_tier_idx`); a page returns as a refault while the generation
//! that it left is still the oldest (`lru_gen_refault`). A page read at least four times before it
//! left returns with a full count. A new generation begins when two are left, or three that are
//! unevenly filled (`should_run_aging`).
//!
//! Source: Documentation/mm/multigen_lru.rst, mm/vmscan.c, mm/workingset.c and mm/swap.c (Yu Zhao,
//! 6.1 to 6.12). Without swap only file pages compete. The model leaves out read-ahead, dirty
//! pages, mapped pages and folios of several pages.

use crate::paging::lists::Lists;
use crate::policy::{Policy, grow, grow_with};

use super::linux_mglru::{MAX_GENERATIONS, MIN_GENERATIONS, is_uneven};

/// `MAX_NR_TIERS`.
const TIERS: usize = 4;
/// Pages of a batch (`MIN_LRU_BATCH`), and the least number of refaults that counts.
const BATCH: u64 = 64;
/// The count of a page that every eviction spares (`BIT(LRU_REFS_WIDTH)`).
const MAX_COUNT: u8 = 4;
/// The first read only sets `PG_referenced`.
const READ_ONCE: u8 = 0;

/// An evicted page: the oldest generation, and its count.
type Shadow = Option<(u64, u8)>;

/// The counts of a tier: the mean of past generations (`avg_refaulted`, `avg_total`), and those of
/// the oldest one.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    past_refaulted: u64,
    past_total: u64,
    refaulted: u64,
    /// Evicted or spared.
    total: u64,
}

impl Tier {
    fn refaulted(self) -> u64 {
        self.past_refaulted + self.refaulted
    }

    fn total(self) -> u64 {
        self.past_total + self.total
    }

    /// `reset_ctrl_pos`.
    fn carry_over(&mut self) {
        let (refaulted, total) = (self.refaulted(), self.total());
        *self = Self { past_refaulted: refaulted / 2, past_total: total / 2, ..Self::default() };
    }
}

/// `lru_tier_from_refs`.
fn tier(count: u8) -> usize {
    (u32::from(count) + 1).next_power_of_two().trailing_zeros() as usize
}

/// The file pages of one cgroup.
#[derive(Debug)]
pub struct LinuxFileMglru {
    /// One list for each generation, by sequence number modulo [`MAX_GENERATIONS`].
    lists: Lists,
    youngest: u64,
    oldest: u64,
    /// Reads beyond the first, up to [`MAX_COUNT`]; `None`: not read since its count started again.
    counts: Vec<Option<u8>>,
    shadows: Vec<Shadow>,
    tiers: [Tier; TIERS],
    frames: u32,
    resident: usize,
}

impl LinuxFileMglru {
    /// Creates empty lists for `frames` (at least 1) frames and the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        let mut new = Self {
            lists: Lists::new(0, MAX_GENERATIONS as u8),
            youngest: MIN_GENERATIONS + 1,
            oldest: 0,
            counts: Vec::new(),
            shadows: Vec::new(),
            tiers: [Tier::default(); TIERS],
            frames: frames.max(1),
            resident: 0,
        };
        new.grow(pages);
        new
    }

    fn list(sequence: u64) -> u8 {
        (sequence % MAX_GENERATIONS) as u8
    }

    fn len(&self, sequence: u64) -> u64 {
        u64::from(self.lists.len(Self::list(sequence)))
    }

    /// `folio_mark_accessed`.
    fn accessed(&mut self, page: u32) {
        let count = &mut self.counts[page as usize];
        *count = Some(count.map_or(READ_ONCE, |count| (count + 1).min(MAX_COUNT)));
    }

    /// `inc_min_seq`: the oldest generation ends.
    fn end_oldest(&mut self) {
        // What is left of it joins the next one's old end.
        while let Some(page) = self.lists.tail(Self::list(self.oldest)) {
            self.lists.to_tail(Self::list(self.oldest + 1), page);
            self.counts[page as usize] = None;
        }
        self.oldest += 1;
        self.tiers.iter_mut().for_each(Tier::carry_over);
    }

    /// `should_run_aging`.
    fn should_age(&self) -> bool {
        let generations = self.youngest - self.oldest;
        let (young, old) = (self.len(self.youngest), self.len(self.oldest));
        generations < MIN_GENERATIONS
            || generations == MIN_GENERATIONS && is_uneven(young, old, self.resident as u64)
    }

    /// `inc_max_seq`. No page table maps the pages.
    fn age(&mut self) {
        if self.youngest + 1 - self.oldest == MAX_GENERATIONS {
            self.end_oldest();
        }
        self.youngest += 1;
    }

    /// `get_tier_idx`: the last tier that eviction does not spare.
    fn threshold(&self) -> usize {
        let first = self.tiers[0];
        let spared = (1..TIERS).find(|&tier| {
            let other = self.tiers[tier];
            let returns_no_more = other.refaulted() < BATCH
                || other.refaulted() * (first.total() + BATCH) <= (first.refaulted() + 1) * other.total() * 2;
            !returns_no_more
        });
        spared.unwrap_or(TIERS) - 1
    }

    /// Frees a batch of frames.
    fn reclaim(&mut self) {
        let target = BATCH.min(self.frames.into());
        let mut freed = 0;
        while freed < target && self.resident > 0 {
            // `try_to_inc_min_seq`
            while self.len(self.oldest) == 0 && self.oldest + MIN_GENERATIONS <= self.youngest {
                self.end_oldest();
            }
            if self.should_age() {
                self.age();
            }
            let threshold = self.threshold();
            while freed < target {
                let Some(page) = self.lists.tail(Self::list(self.oldest)) else { break };
                let count = self.counts[page as usize].unwrap_or(READ_ONCE);
                let tier = tier(count);
                self.tiers[tier].total += 1;
                if tier > threshold || count == MAX_COUNT {
                    self.lists.to_head(Self::list(self.oldest + 1), page);
                    self.counts[page as usize] = None;
                } else {
                    self.lists.remove(page);
                    self.resident -= 1;
                    self.counts[page as usize] = None;
                    self.shadows[page as usize] = Some((self.oldest, count));
                    freed += 1;
                }
            }
        }
    }

    fn read(&mut self, page: u32) {
        if self.resident >= self.frames as usize {
            self.reclaim();
        }
        if let Some((left, count)) = self.shadows[page as usize].take()
            && left == self.oldest
        {
            self.tiers[tier(count)].refaulted += 1;
            if count + 1 >= MAX_COUNT {
                self.counts[page as usize] = Some(MAX_COUNT);
            }
        }
        let second = self.oldest + MIN_GENERATIONS < self.youngest;
        self.lists.to_head(Self::list(self.oldest + u64::from(second)), page);
        self.resident += 1;
        self.accessed(page);
    }
}

impl Policy for LinuxFileMglru {
    fn reference(&mut self, page: u32) -> bool {
        let hit = self.lists.of(page).is_some();
        if hit {
            self.accessed(page);
        } else {
            self.read(page);
        }
        hit
    }

    fn grow(&mut self, pages: u32) {
        self.lists.grow(pages);
        grow(&mut self.counts, pages);
        grow_with(&mut self.shadows, pages, None);
    }

    fn resident(&self) -> usize {
        self.resident
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.lists.of(page).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tiers_are_logarithms_of_the_reads() {
        assert_eq!([0, 1, 2, 3, 4].map(tier), [0, 1, 2, 2, 3]);
    }

    #[test]
    fn a_file_that_fits_is_read_once() {
        let mut lists = LinuxFileMglru::new(1000, 1000);
        let all: Vec<u32> = (0..1000).collect();
        assert_eq!((lists.misses(&all), lists.misses(&all)), (1000, 0));
    }

    /// Pages read five times are spared once; a second scan without reads in between evicts them.
    #[test]
    fn pages_read_five_times_survive_a_scan() {
        let mut lists = LinuxFileMglru::new(10_000, 1000);
        let hot: Vec<u32> = (0..300).collect();
        (0..5).for_each(|_| {
            lists.misses(&hot);
        });
        lists.misses(&(300..1500).collect::<Vec<_>>());
        assert_eq!(lists.misses(&hot), 0);
        let mut once = LinuxFileMglru::new(10_000, 1000);
        once.misses(&hot);
        once.misses(&(300..1500).collect::<Vec<_>>());
        assert_eq!(once.misses(&hot), 300);
    }

    /// Misses of 400 pages that are read twice per round, between 500 new pages, after 100 rounds.
    fn late_misses(policy: &mut dyn Policy) -> u64 {
        let hot: Vec<u32> = (0..400).collect();
        let mut late = 0;
        for round in 0..200 {
            let misses = policy.misses(&hot);
            policy.misses(&hot);
            let next = 1000 + 500 * round;
            policy.misses(&(next..next + 500).collect::<Vec<_>>());
            late += if round >= 100 { misses } else { 0 };
        }
        late
    }

    /// Pages read twice return more often than pages read once, so eviction spares their tier.
    #[test]
    fn a_tier_whose_pages_return_is_spared() {
        let generations = late_misses(&mut LinuxFileMglru::new(200_000, 1000));
        let fifo = late_misses(&mut *crate::policy::PolicyKind::Fifo.build(200_000, 1000, None));
        assert!(generations * 2 < fifo, "{generations} against {fifo} misses of FIFO");
    }

    proptest! {
        #[test]
        fn frames_are_never_exceeded(
            references in proptest::collection::vec(0..200_u32, 1..3000), frames in 1..150_u32,
        ) {
            let mut lists = LinuxFileMglru::new(200, frames);
            let opt = crate::policy::opt_misses(&pagelab_reference::Stream::new(200, references.clone()), frames);
            prop_assert!(lists.misses(&references) >= opt);
            prop_assert!(lists.resident() <= frames as usize);
            let held = (0..200).filter(|&page| lists.contains(page) == Some(true)).count();
            prop_assert_eq!(held, lists.resident());
        }
    }
}
