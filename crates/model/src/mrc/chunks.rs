//! The exact LRU curve of a stream that was cut into chunks of time, each read by somebody else.
//!
//! Source: Q. Niu, J. Dinan, Q. Lu and P. Sadayappan, "PARDA: A fast parallel reuse distance analysis algorithm", IPDPS
//! 2012. Within a chunk the distance of every reference but the first to each page is known at once ([`Chunk`]). The
//! first ones need what came before: a merge that holds the stack of all chunks so far references them in their order,
//! which gives each its distance, and then orders the chunk's pages as the chunk left them ([`Merge`]). It takes two
//! references for each different page of a chunk, however long that is; the curve is the sequential one in every
//! count.

use pagelab_reference::trace::{Densifier, TooManyPages};

use super::lru::{LruCurve, StackDistances};

/// What a chunk alone tells: 12 bytes a different page, 8 a distance that is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// References in the chunk.
    pub references: u64,
    /// References at each stack distance within the chunk; the entry 0 is empty.
    pub distances: Vec<u64>,
    /// The different pages by their first reference in the chunk.
    pub first: Vec<u64>,
    /// The same pages by their last one, the oldest first, as indices into `first`.
    pub last: Vec<u32>,
}

/// A chunk while it is read: some 40 bytes a different page.
#[derive(Default)]
pub struct Chunk {
    densifier: Densifier,
    stack: Option<StackDistances>,
    part: Part,
    numbers: Vec<u32>,
}

impl Chunk {
    /// Takes the chunk's next references; page numbers need not be dense.
    ///
    /// # Errors
    /// When there are more different pages than 32 bits number.
    ///
    /// # Panics
    /// When there are more than 2^30 different pages.
    pub fn take(&mut self, pages: &[u64]) -> Result<(), TooManyPages> {
        let stack = self.stack.get_or_insert_with(|| StackDistances::new(0));
        self.numbers.clear();
        self.densifier.number_all(pages, &mut self.numbers)?;
        stack.grow(self.densifier.pages());
        let part = &mut self.part;
        part.references += pages.len() as u64;
        part.distances.resize(self.densifier.pages() as usize + 1, 0);
        for (&page, &number) in pages.iter().zip(&self.numbers) {
            match stack.reference(number) {
                Some(distance) => part.distances[distance as usize] += 1,
                // Numbers follow each other as pages come.
                None => part.first.push(page),
            }
        }
        Ok(())
    }

    /// Different pages so far.
    pub fn pages(&self) -> u32 {
        self.densifier.pages()
    }

    /// What the chunk tells.
    pub fn finish(self) -> Part {
        let mut part = self.part;
        part.last = self.stack.map(|stack| stack.by_last_reference()).unwrap_or_default();
        while part.distances.last() == Some(&0) {
            part.distances.pop();
        }
        part
    }
}

/// Puts the parts together, in the order of their chunks: some 80 bytes a different page.
pub struct Merge {
    densifier: Densifier,
    stack: StackDistances,
    distances: Vec<u64>,
    references: u64,
    numbers: Vec<u32>,
}

impl Default for Merge {
    fn default() -> Self {
        Self {
            densifier: Densifier::default(),
            stack: StackDistances::new(0),
            distances: vec![0],
            references: 0,
            numbers: Vec::new(),
        }
    }
}

/// A part that no chunk gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Its pages by first and by last reference, or its counts, are not those of one chunk.
    #[error("the part is not of one chunk: its counts contradict each other")]
    Contradiction,
    /// There are too many different pages.
    #[error("the chunks have 2^30 different pages or more")]
    TooManyPages,
}

impl Merge {
    /// Takes the part of the next chunk.
    ///
    /// # Errors
    /// When it is none; nothing of it is taken then, unless there are too many pages.
    pub fn take(&mut self, part: &Part) -> Result<(), MergeError> {
        part.check()?;
        self.numbers.clear();
        let many = |_| MergeError::TooManyPages;
        self.densifier.number_all(&part.first, &mut self.numbers).map_err(many)?;
        if self.densifier.pages() > 1 << 30 {
            return Err(MergeError::TooManyPages);
        }
        self.stack.grow(self.densifier.pages());
        let length = self.distances.len().max(part.distances.len()).max(self.densifier.pages() as usize + 1);
        self.distances.resize(length, 0);
        for &page in &self.numbers {
            let distance = self.stack.reference(page).unwrap_or(0);
            self.distances[distance as usize] += 1;
        }
        for &index in &part.last {
            self.stack.reference(self.numbers[index as usize]);
        }
        for (all, &more) in self.distances.iter_mut().zip(&part.distances) {
            *all += more;
        }
        self.references += part.references;
        Ok(())
    }

    /// The curve of all chunks.
    pub fn finish(mut self) -> LruCurve {
        self.distances.truncate(self.stack.pages_seen() as usize + 1);
        LruCurve::of_distances(self.references, self.distances)
    }
}

impl Part {
    /// Whether the counts are those of a chunk.
    fn check(&self) -> Result<(), MergeError> {
        let mut met = vec![false; self.first.len()];
        for &index in &self.last {
            match met.get_mut(index as usize) {
                Some(met) if !*met => *met = true,
                _ => return Err(MergeError::Contradiction),
            }
        }
        let counted = self.distances.iter().sum::<u64>() + self.first.len() as u64;
        let right = self.last.len() == self.first.len()
            && counted == self.references
            && self.distances.first().is_none_or(|&none| none == 0)
            && self.distances.len() <= self.first.len() + 1;
        if right { Ok(()) } else { Err(MergeError::Contradiction) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_reference::{Pattern, Stream};
    use proptest::prelude::*;

    /// The curve of the stream cut at these places.
    fn cut(stream: &Stream, mut cuts: Vec<usize>) -> LruCurve {
        cuts.sort_unstable();
        cuts.push(stream.len());
        let mut merge = Merge::default();
        let mut begin = 0;
        for end in cuts {
            let mut chunk = Chunk::default();
            // Names that are not dense, in pieces of any length.
            let names: Vec<u64> =
                stream.references()[begin..end].iter().map(|&page| u64::from(page) << 33 | 5).collect();
            for piece in names.chunks(777) {
                chunk.take(piece).unwrap();
            }
            merge.take(&chunk.finish()).unwrap();
            begin = end;
        }
        merge.finish()
    }

    proptest! {
        #[test]
        fn any_chunks_give_the_sequential_curve_in_every_count(
            seed: u64, pages in 1u64..400, n in 0u64..4000, zipf: bool,
            places in proptest::collection::vec(0.0..1.0f64, 0..12),
        ) {
            let pattern = if zipf { Pattern::Zipf(0.9) } else { Pattern::Drift(0.25) };
            let stream = pattern.stream(pages, n.max(1), seed).unwrap();
            let cuts = places.iter().map(|place| (place * stream.len() as f64) as usize).collect();
            prop_assert_eq!(cut(&stream, cuts), LruCurve::of(&stream));
        }
    }

    #[test]
    fn long_chunks_give_the_sequential_curve() {
        for (pattern, pages) in
            [(Pattern::Uniform, 60_000), (Pattern::Zipf(1.0), 100_000), (Pattern::Linear, 70_000)]
        {
            let stream = pattern.stream(pages, 1_500_000, 5).unwrap();
            assert_eq!(
                cut(&stream, vec![100, 400_000, 400_001, 1_100_000]),
                LruCurve::of(&stream),
                "{pattern}"
            );
        }
    }

    #[test]
    fn foreign_parts_are_refused() {
        let part = || {
            let mut chunk = Chunk::default();
            chunk.take(&[7, 8, 7, 9]).unwrap();
            chunk.finish()
        };
        assert_eq!(
            part(),
            Part { references: 4, distances: vec![0, 0, 1], first: vec![7, 8, 9], last: vec![1, 0, 2] }
        );
        let wrong: [fn(&mut Part); 5] = [
            |part| part.last[0] = 3,
            |part| part.last[0] = 0,
            |part| part.references = 5,
            |part| part.distances = vec![1],
            |part| part.last.truncate(1),
        ];
        for spoil in wrong {
            let mut part = part();
            spoil(&mut part);
            let mut merge = Merge::default();
            assert_eq!(merge.take(&part), Err(MergeError::Contradiction), "{part:?}");
            assert_eq!(merge.finish(), LruCurve::of(&Stream::new(0, Vec::new())));
        }
    }
}
