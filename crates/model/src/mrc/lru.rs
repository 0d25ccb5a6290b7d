//! Exact LRU at every size in one pass.
//!
//! LRU with f frames misses exactly the references whose stack distance (different pages referenced
//! since the page's last reference, itself included) is above f: R. L. Mattson, J. Gecsei,
//! D. R. Slutz and I. L. Traiger, "Evaluation techniques for storage hierarchies", IBM Systems
//! Journal 9(2), 1970. So a histogram of distances gives the whole curve.
//!
//! Distances are counted on a bitmap over time that has a mark at the last reference of each page
//! (B. T. Bennett and V. J. Kruskal, "LRU stack processing", IBM Journal of Research and
//! Development 19(4), 1975): the distance is the number of marks from the page's own to now. Where
//! they keep a tree of partial sums, here two flat levels hold the number of marks *before* each block
//! and superblock. A new mark then changes no sum, and taking out an old one those between it and
//! now. All counters of a superblock are gone through each time, whether they change or not: the
//! compiler makes vector operations of a loop of fixed length over aligned counters, which was measured to
//! be quicker than a loop over those alone that change. When the time line is full the marks are moved together; a page's new place is its rank.

use pagelab_reference::Stream;
use prefetch_index::prefetch_index;

const WORDS: usize = 4;
/// Places in a block: half a cache line.
const BLOCK: usize = WORDS * 64;
/// Blocks in a superblock; the counts within it fit 16 bits.
const BLOCKS: usize = 128;
const SUPERBLOCK: usize = BLOCK * BLOCKS;

/// So many references ahead what is known of a page is fetched into the processor's cache.
const AHEAD: usize = 32;

/// The place of a page that has not been referenced.
const NEVER: u32 = u32::MAX;

/// The counters of a superblock's blocks.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Inner([u16; BLOCKS]);

/// Superblocks in a group.
const GROUP: usize = 16;

/// The counters of some superblocks.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Outer([u32; GROUP]);

impl Inner {
    /// One less in every block after this one.
    #[inline(always)]
    fn lower_after(&mut self, block: usize) {
        for (n, count) in self.0.iter_mut().enumerate() {
            *count = count.wrapping_sub(u16::from(n as u16 > block as u16));
        }
    }
}

impl Outer {
    /// One less in every superblock after this one, which may be before the group.
    #[inline(always)]
    fn lower_after(&mut self, superblock: i32) {
        for (n, count) in self.0.iter_mut().enumerate() {
            *count = count.wrapping_sub(u32::from(n as i32 > superblock));
        }
    }
}

/// Stack distances of a stream that is fed reference by reference. 4 bytes a page and half a byte a
/// page for the time line.
#[derive(Debug)]
pub struct StackDistances {
    /// The place of each page's mark.
    last: Vec<u32>,
    bits: Vec<[u64; WORDS]>,
    /// Marks before each block of a superblock, from its beginning. Of blocks after now: anything.
    inner: Vec<Inner>,
    /// Marks before each superblock, in groups. Of superblocks after now: anything.
    outer: Vec<Outer>,
    /// The place of the next mark.
    now: usize,
    marks: u32,
}

impl StackDistances {
    /// For the pages `0..pages`.
    ///
    /// # Panics
    /// When there are more than 2^30 pages.
    pub fn new(pages: u32) -> Self {
        assert!(pages <= 1 << 30, "at most 2^30 pages");
        let mut new = Self {
            last: vec![NEVER; pages as usize],
            bits: Vec::new(),
            inner: Vec::new(),
            outer: Vec::new(),
            now: 0,
            marks: 0,
        };
        new.stretch();
        new
    }

    /// Pages that have a mark.
    pub fn pages_seen(&self) -> u32 {
        self.marks
    }

    /// Adds page numbers, so that there are at least `pages`.
    ///
    /// # Panics
    /// When there are more than 2^30.
    pub fn grow(&mut self, pages: u32) {
        assert!(pages <= 1 << 30, "at most 2^30 pages");
        self.last.resize(self.last.len().max(pages as usize), NEVER);
    }

    /// Makes the time line long enough: four times the pages.
    fn stretch(&mut self) {
        let superblocks = (4 * self.last.len()).div_ceil(SUPERBLOCK) + 1;
        self.bits.resize(superblocks * BLOCKS, [0; WORDS]);
        self.inner.resize(superblocks, Inner([0; BLOCKS]));
        self.outer.resize(superblocks.div_ceil(GROUP), Outer([0; GROUP]));
    }

    /// Marks up to and including this place.
    #[inline]
    fn rank(&self, place: usize) -> u32 {
        let (block, within) = (place / BLOCK, place % BLOCK);
        let words = &self.bits[block];
        let mut count = 0;
        for (i, word) in words.iter().enumerate() {
            // All ones below the word of the place, zero above it.
            let mask = match (within / 64).cmp(&i) {
                std::cmp::Ordering::Greater => u64::MAX,
                std::cmp::Ordering::Equal => u64::MAX >> (63 - within % 64),
                std::cmp::Ordering::Less => 0,
            };
            count += (word & mask).count_ones();
        }
        let superblock = block / BLOCKS;
        let before = self.outer[superblock / GROUP].0[superblock % GROUP];
        before + u32::from(self.inner[superblock].0[block % BLOCKS]) + count
    }

    /// Takes out the mark at a place.
    #[inline]
    fn unmark(&mut self, place: usize) {
        let (block, superblock) = (place / BLOCK, place / SUPERBLOCK);
        self.bits[block][place % BLOCK / 64] &= !(1 << (place % 64));
        self.marks -= 1;
        self.inner[superblock].lower_after(block % BLOCKS);
        let newest = (self.now - 1) / SUPERBLOCK;
        if superblock == newest {
            return;
        }
        let (first, last) = (superblock / GROUP, newest / GROUP);
        self.outer[first].lower_after((superblock % GROUP) as i32);
        self.outer[first + 1..=last].iter_mut().for_each(|group| group.lower_after(-1));
    }

    /// Sets the mark of `page` at the end of the time line.
    #[inline]
    fn mark(&mut self, page: u32) {
        let place = self.now;
        if place.is_multiple_of(BLOCK) {
            let superblock = place / SUPERBLOCK;
            let before = &mut self.outer[superblock / GROUP].0[superblock % GROUP];
            if place.is_multiple_of(SUPERBLOCK) {
                *before = self.marks;
            }
            self.inner[superblock].0[place / BLOCK % BLOCKS] = (self.marks - *before) as u16;
        }
        self.bits[place / BLOCK][place % BLOCK / 64] |= 1 << (place % 64);
        self.last[page as usize] = place as u32;
        self.marks += 1;
        self.now += 1;
    }

    /// Moves the marks together at the beginning of the time line.
    #[cold]
    fn compact(&mut self) {
        for page in 0..self.last.len() {
            if self.last[page] != NEVER {
                self.last[page] = self.rank(self.last[page] as usize) - 1;
            }
        }
        self.stretch();
        self.now = self.marks as usize;
        for (block, words) in self.bits.iter_mut().enumerate() {
            for (i, word) in words.iter_mut().enumerate() {
                let first = block * BLOCK + i * 64;
                *word = match self.now.saturating_sub(first) {
                    0 => 0,
                    n if n >= 64 => u64::MAX,
                    n => (1 << n) - 1,
                };
            }
            self.inner[block / BLOCKS].0[block % BLOCKS] =
                (block % BLOCKS * BLOCK).min(self.now.saturating_sub(block / BLOCKS * SUPERBLOCK)) as u16;
        }
        for (superblock, count) in self.outer.iter_mut().flat_map(|group| &mut group.0).enumerate() {
            *count = (superblock * SUPERBLOCK).min(self.now) as u32;
        }
    }

    /// Has the processor fetch the place of a page that is referenced later, and the marks about that of one that is
    /// referenced sooner: a reference alone takes so many instructions that the next one's misses would not begin before
    /// it is done.
    #[inline]
    fn fetch(&self, later: u32, sooner: u32) {
        prefetch_index(&self.last, later as usize);
        prefetch_index(&self.bits, self.last[sooner as usize] as usize / BLOCK);
    }

    /// References a page: its stack distance, 1 when it was also referenced last; `None` for the first
    /// reference to it.
    ///
    /// # Panics
    /// When the page is not below the number of pages.
    #[inline]
    pub fn reference(&mut self, page: u32) -> Option<u32> {
        let last = self.last[page as usize];
        let distance = if last == NEVER {
            None
        } else {
            let place = last as usize;
            if place + 1 == self.now {
                return Some(1);
            }
            let distance = self.marks - self.rank(place) + 1;
            self.unmark(place);
            Some(distance)
        };
        if self.now == self.inner.len() * SUPERBLOCK {
            self.last[page as usize] = NEVER;
            self.compact();
        }
        self.mark(page);
        distance
    }

    /// The pages that have a mark by their last reference, the oldest first.
    pub fn by_last_reference(&self) -> Vec<u32> {
        let marked = |page: &u32| self.last[*page as usize] != NEVER;
        let mut pages: Vec<u32> = (0..self.last.len() as u32).filter(marked).collect();
        pages.sort_unstable_by_key(|&page| self.last[page as usize]);
        pages
    }

    /// Takes a page out, as if it had never been referenced.
    pub fn forget(&mut self, page: u32) {
        let last = std::mem::replace(&mut self.last[page as usize], NEVER);
        if last != NEVER {
            self.unmark(last as usize);
        }
    }
}

/// The curve of a stream that is fed piece by piece: nothing of it is kept, and its pages need not be known before.
#[derive(Debug)]
pub struct LruCounting {
    distances: StackDistances,
    /// References at each distance; those to a page for the first time stand at 0.
    histogram: Vec<u32>,
    /// Distances at which the count went beyond 32 bits, once for each time.
    carried: Vec<u32>,
    references: u64,
}

impl Default for LruCounting {
    fn default() -> Self {
        Self { distances: StackDistances::new(0), histogram: vec![0], carried: Vec::new(), references: 0 }
    }
}

impl LruCounting {
    /// Counts the next references, which name pages below `pages`.
    ///
    /// # Panics
    /// When a reference is not below `pages`, or there are more than 2^30 pages.
    pub fn take(&mut self, pages: u32, references: &[u32]) {
        self.distances.grow(pages);
        crate::policy::grow(&mut self.histogram, pages + 1);
        self.references += references.len() as u64;
        let Some(&last) = references.last() else { return };
        let at = |n: usize| references.get(n).copied().unwrap_or(last);
        // Distances that are not counted yet: their places in the histogram are fetched meanwhile.
        let mut found = [0; AHEAD];
        for (n, &page) in references.iter().enumerate() {
            self.distances.fetch(at(n + AHEAD), at(n + AHEAD / 2));
            // Distances begin at 1: the entry 0 is free for the first references.
            let distance = self.distances.reference(page).unwrap_or(0);
            prefetch_index(&self.histogram, distance as usize);
            let before = std::mem::replace(&mut found[n % AHEAD], distance);
            if n >= AHEAD {
                self.count(before);
            }
        }
        found[..references.len().min(AHEAD)].iter().for_each(|&distance| self.count(distance));
    }

    #[inline]
    fn count(&mut self, distance: u32) {
        let count = &mut self.histogram[distance as usize];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.carried.push(distance);
        }
    }

    /// The curve of what was fed.
    pub fn finish(mut self) -> LruCurve {
        self.histogram.truncate(self.distances.pages_seen() as usize + 1);
        let mut counts: Vec<u64> = self.histogram.into_iter().map(u64::from).collect();
        for distance in self.carried {
            counts[distance as usize] += 1 << 32;
        }
        LruCurve::of_distances(self.references, counts)
    }
}

/// Misses of LRU at every number of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LruCurve {
    references: u64,
    /// Misses with f frames at index f; the last entry are the first references, which always miss.
    misses: Vec<u64>,
}

impl LruCurve {
    /// Reads the stream once.
    ///
    /// # Panics
    /// When the stream has more than 2^30 pages.
    pub fn of(stream: &Stream) -> Self {
        let mut counting = LruCounting::default();
        counting.take(stream.pages(), stream.references());
        counting.finish()
    }

    /// Of the references at each stack distance, up to the number of pages; at 0 the first ones to each page.
    pub(super) fn of_distances(references: u64, mut counts: Vec<u64>) -> Self {
        let first = std::mem::take(&mut counts[0]);
        let mut left = references;
        for count in &mut counts {
            left -= *count;
            *count = left;
        }
        debug_assert_eq!(left, first);
        Self { references, misses: counts }
    }

    /// References in the stream.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Pages that are referenced; with as many frames only the first references miss.
    pub fn pages(&self) -> u32 {
        self.misses.len() as u32 - 1
    }

    /// Misses with this many frames, the first references included; with 0 frames all miss.
    pub fn misses(&self, frames: u32) -> u64 {
        self.misses[(frames as usize).min(self.misses.len() - 1)]
    }

    /// Misses a reference; `None` for an empty stream.
    pub fn miss_ratio(&self, frames: u32) -> Option<f64> {
        (self.references > 0).then(|| self.misses(frames) as f64 / self.references as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lru_misses;
    use pagelab_reference::Pattern;
    use proptest::prelude::*;

    fn agrees(stream: &Stream, frames: u32) {
        let curve = LruCurve::of(stream);
        assert_eq!(curve.misses(frames), lru_misses(stream, frames), "{frames} frames");
    }

    proptest! {
        #[test]
        fn distances_are_places_on_a_stack(
            operations in proptest::collection::vec((0u32..50, 0u8..10), 0..3000),
        ) {
            let mut distances = StackDistances::new(50);
            let mut stack: Vec<u32> = Vec::new();
            for (page, operation) in operations {
                let place = stack.iter().rev().position(|&p| p == page);
                stack.retain(|&p| p != page);
                if operation == 0 {
                    distances.forget(page);
                } else {
                    stack.push(page);
                    prop_assert_eq!(distances.reference(page), place.map(|n| n as u32 + 1));
                }
                prop_assert_eq!(distances.pages_seen() as usize, stack.len());
            }
        }

        #[test]
        fn the_curve_is_what_each_size_gives(seed: u64, pages in 1u32..300, n in 1u64..3000, frames in 1u32..350) {
            agrees(&Pattern::Zipf(0.7).stream(pages.into(), n, seed).unwrap(), frames);
        }
    }

    #[test]
    fn long_streams_with_many_compactions_agree() {
        for (pattern, pages) in
            [(Pattern::Uniform, 40_000), (Pattern::Zipf(1.0), 100_000), (Pattern::Linear, 70_000)]
        {
            let stream = pattern.stream(pages, 2_000_000, 5).unwrap();
            let curve = LruCurve::of(&stream);
            for frames in [1, 100, 30_000, 69_999, 70_000] {
                assert_eq!(
                    curve.misses(frames),
                    lru_misses(&stream, frames),
                    "{pattern} with {frames} frames"
                );
            }
            assert_eq!(curve.misses(0), 2_000_000);
            assert_eq!(curve.misses(u32::MAX), u64::from(curve.pages()));
        }
    }
}
