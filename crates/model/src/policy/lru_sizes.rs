//! LRU of several sizes on one time line: what a smaller memory holds, a larger one holds too, so that a mark for each size at
//! its oldest page tells the misses of all.
//!
//! Source: R. L. Mattson, J. Gecsei, D. R. Slutz and I. L. Traiger, "Evaluation techniques for storage hierarchies", IBM Systems
//! Journal 9(2), 1970. A reference moves a mark for each size that it misses in, where a line for each size would take a place
//! in each.

use super::time_line::{NEVER, TimeLine};
use prefetch_index::prefetch_index;

/// References that are fetched ahead.
const AHEAD: usize = super::AHEAD;

/// The most sizes, each of which a reference may have to go by.
pub(crate) const MAX_SIZES: usize = 200;

/// LRU of several sizes; 4 bytes a page, and half a byte for the line.
#[derive(Debug)]
pub(crate) struct LruSizes {
    /// Frames, each number once, the least first.
    sizes: Vec<u32>,
    /// The place of each page's last reference.
    last: Vec<u32>,
    line: TimeLine,
    /// Where what each size holds begins: the larger, the earlier.
    marks: Vec<u32>,
    /// Different pages referenced so far, up to the largest size.
    seen: u32,
    /// References by the number of sizes that they missed in.
    counts: Vec<u64>,
}

impl LruSizes {
    /// Empty memories of so many frames (at least 1), up to [`MAX_SIZES`].
    pub fn new(frames: impl Iterator<Item = u32>) -> Self {
        let mut sizes: Vec<u32> = frames.collect();
        sizes.sort_unstable();
        sizes.dedup();
        assert!(sizes.len() <= MAX_SIZES, "{} sizes", sizes.len());
        Self {
            last: Vec::new(),
            line: TimeLine::new(),
            marks: vec![1; sizes.len()],
            seen: 0,
            counts: vec![0; sizes.len() + 1],
            sizes,
        }
    }

    /// Whether there is no size.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// There are `pages` pages from now on.
    pub fn grow(&mut self, pages: u32) {
        super::grow_with(&mut self.last, pages, NEVER);
    }

    /// References these pages in turn.
    ///
    /// # Panics
    /// When one is not below the number of pages.
    pub fn take(&mut self, references: &[u32]) {
        let Some(&last) = references.last() else { return };
        let at = |n: usize| references.get(n).copied().unwrap_or(last) as usize;
        for (n, &page) in references.iter().enumerate() {
            prefetch_index(&self.last, at(n + AHEAD));
            self.line.fetch(self.last[at(n + AHEAD / 2)]);
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
        if self.line.is_full() {
            self.line.move_together(0, &mut self.last, &mut self.marks);
        }
        let place = std::mem::replace(&mut self.last[page as usize], self.line.take());
        self.line.leave(place);
        let mut missed = 0;
        for (mark, &size) in self.marks.iter_mut().zip(&self.sizes) {
            if place >= *mark {
                break;
            }
            missed += 1;
            // Not full yet: all that was referenced is in it.
            if self.seen >= size {
                *mark = self.line.behind_oldest(*mark);
            }
        }
        self.counts[missed] += 1;
        self.seen += u32::from(missed == self.sizes.len() && self.seen < self.sizes[missed - 1]);
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
        for frames in sizes {
            assert_eq!(all.misses(frames), lru_misses(&stream, frames), "{frames} frames");
        }
    }
}
