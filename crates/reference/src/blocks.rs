//! A reference stream a block at a time: most targets never need all of it.

use crate::pattern::PatternError;
use crate::patterns::Generator;

/// A stream that is made as it is taken: no more of it is in memory than was asked for last.
pub struct Blocks {
    pages: u32,
    left: u64,
    generator: Generator,
    block: Vec<u32>,
}

impl Blocks {
    /// `references` references to the pages `0..pages`.
    pub(crate) fn new(pages: u32, references: u64, generator: Generator) -> Self {
        Self { pages, left: references, generator, block: Vec::new() }
    }

    /// The size of the region in pages; not every page need be referenced.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// References that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Makes room for blocks of `count` references.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn reserve(&mut self, count: usize) -> Result<(), PatternError> {
        self.block.clear();
        self.block.try_reserve_exact(count).map_err(|_| PatternError::Memory(4 * count as u64))
    }

    /// The next `count` references, fewer at the end of the stream and none after it.
    ///
    /// # Errors
    /// When a trace cannot be read, or there is no memory for so many.
    pub fn next(&mut self, count: usize) -> Result<&[u32], PatternError> {
        let count = usize::try_from(self.left).map_or(count, |left| left.min(count));
        if self.block.capacity() < count {
            self.reserve(count)?;
        }
        self.block.clear();
        (self.generator)(count, &mut self.block)?;
        self.left -= count as u64;
        debug_assert!(self.block.len() == count && self.block.iter().all(|&page| page < self.pages));
        Ok(&self.block)
    }
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks").field("pages", &self.pages).field("left", &self.left).finish_non_exhaustive()
    }
}
