//! LRU of several sizes in one list: what a smaller memory holds, a larger one holds too, so that the list of the largest, with
//! a mark at the oldest page of each smaller one, tells the misses of all.
//!
//! Source: R. L. Mattson, J. Gecsei, D. R. Slutz and I. L. Traiger, "Evaluation techniques for storage hierarchies", IBM Systems
//! Journal 9(2), 1970. A reference moves a mark for each size that it misses in, where a list for each size would move a page
//! in each.

use prefetch_index::prefetch_index;

/// What stands at a place whose page was moved.
const GONE: u32 = u32::MAX;

/// References, and places of the list behind a mark, that are fetched ahead.
const AHEAD: usize = 16;

/// Places of the list for each page, once it is moved together.
const ROOM: usize = 3;

/// The most sizes: their numbers fit a byte.
pub(crate) const MOST: usize = 200;

/// Where a page stands; 8 bytes.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u32,
    /// The number of the least size that holds it, or of sizes.
    band: u8,
}

/// LRU of several sizes; 8 bytes a page, and 12 for each of the largest size.
#[derive(Debug)]
pub(crate) struct LruSizes {
    /// Frames, each number once, the least first.
    sizes: Vec<u32>,
    table: Vec<Place>,
    /// Pages from the oldest on, with [`GONE`] between.
    list: Vec<u32>,
    /// Of each size a place in the list at its oldest page, or before it and behind all older ones.
    marks: Vec<usize>,
    /// Pages in the list.
    live: usize,
    /// References by the band of their page.
    counts: Vec<u64>,
}

impl LruSizes {
    /// Empty memories of so many frames (at least 1), up to [`MOST`].
    pub fn new(frames: impl Iterator<Item = u32>) -> Self {
        let mut sizes: Vec<u32> = frames.collect();
        sizes.sort_unstable();
        sizes.dedup();
        assert!(sizes.len() <= MOST, "{} sizes", sizes.len());
        Self {
            table: Vec::new(),
            list: Vec::with_capacity(64),
            marks: vec![0; sizes.len()],
            live: 0,
            counts: vec![0; sizes.len() + 1],
            sizes,
        }
    }

    /// There are `pages` pages from now on.
    pub fn grow(&mut self, pages: u32) {
        let absent = Place { at: 0, band: self.sizes.len() as u8 };
        super::grow_with(&mut self.table, pages, absent);
    }

    /// References these pages in turn.
    ///
    /// # Panics
    /// When one is not below the number of pages.
    pub fn take(&mut self, references: &[u32]) {
        let Some(&last) = references.last() else { return };
        for (n, &page) in references.iter().enumerate() {
            let later = references.get(n + AHEAD).copied().unwrap_or(last);
            prefetch_index(&self.table, later as usize);
            self.reference(page);
        }
    }

    /// Misses so far with so many frames, one of the sizes.
    pub fn misses(&self, frames: u32) -> u64 {
        let size = self.sizes.partition_point(|&size| size < frames);
        self.counts[size + 1..].iter().sum()
    }

    #[inline]
    fn reference(&mut self, page: u32) {
        let Place { at, band } = self.table[page as usize];
        self.counts[usize::from(band)] += 1;
        let absent = usize::from(band) == self.sizes.len();
        if !absent {
            if at as usize + 1 == self.list.len() {
                return;
            }
            self.list[at as usize] = GONE;
        }
        for size in 0..usize::from(band) {
            // Not full yet; then no larger one is.
            if self.live < self.sizes[size] as usize {
                break;
            }
            self.leave(size);
        }
        self.live += usize::from(absent);
        if self.list.len() == self.list.capacity() {
            self.move_together();
        }
        self.table[page as usize] = Place { at: self.list.len() as u32, band: 0 };
        self.list.push(page);
    }

    /// The oldest page of a full size is no longer in it.
    #[inline]
    fn leave(&mut self, size: usize) {
        let mut mark = self.marks[size];
        while self.list[mark] == GONE {
            mark += 1;
        }
        let oldest = self.list[mark];
        self.table[oldest as usize].band = size as u8 + 1;
        if size + 1 == self.sizes.len() {
            self.list[mark] = GONE;
            self.live -= 1;
        }
        self.marks[size] = mark + 1;
        self.fetch_behind(mark);
    }

    /// Has the processor fetch what is known of a page some places on.
    #[inline]
    fn fetch_behind(&self, place: usize) {
        if let Some(&page) = self.list.get(place + AHEAD) {
            prefetch_index(&self.table, if page == GONE { 0 } else { page as usize });
        }
    }

    /// Moves the pages together, in a longer list where this one has too little room.
    #[cold]
    fn move_together(&mut self) {
        let first = self.marks.last().copied().unwrap_or(0);
        let mut to = 0;
        // The larger a size, the older its mark.
        let mut left = self.marks.len();
        for from in first..self.list.len() {
            while left > 0 && self.marks[left - 1] == from {
                left -= 1;
                self.marks[left] = to;
            }
            self.fetch_behind(from);
            let page = self.list[from];
            if page != GONE {
                self.list[to] = page;
                self.table[page as usize].at = to as u32;
                to += 1;
            }
        }
        self.marks[..left].fill(to);
        self.list.truncate(to);
        self.list.reserve_exact(ROOM * (to + 21) - to);
    }
}

#[cfg(test)]
mod tests {
    use super::super::lru_misses;
    use super::super::naive::streams;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_size_has_the_misses_that_it_has_alone(
            stream in streams(), sizes in proptest::collection::vec(1u32..70, 1..8), piece in 1usize..100,
        ) {
            let mut all = LruSizes::new(sizes.iter().copied());
            all.grow(stream.pages());
            for references in stream.references().chunks(piece) {
                all.take(references);
            }
            for &frames in &sizes {
                prop_assert_eq!(all.misses(frames), lru_misses(&stream, frames), "{} frames", frames);
            }
        }
    }

    #[test]
    fn long_lists_are_moved_together() {
        let stream = pagelab_reference::Pattern::Zipf(0.8).stream(3000, 200_000, 1).unwrap();
        let sizes = [1, 10, 300, 299, 2000, 4000];
        let mut all = LruSizes::new(sizes.into_iter());
        for references in stream.references().chunks(1000) {
            all.grow(references.iter().max().unwrap() + 1);
            all.take(references);
        }
        assert!(all.list.capacity() < 20_000, "{}", all.list.capacity());
        for frames in sizes {
            assert_eq!(all.misses(frames), lru_misses(&stream, frames), "{frames} frames");
        }
    }
}
