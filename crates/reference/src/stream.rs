//! A reference stream in memory: dense page numbers in the order in which they are referenced.

/// A sequence of references to the pages `0..pages`.
///
/// Page numbers are dense, so that targets can index by them; they are 32 bits wide, which is
/// 16 TiB of 4 KiB pages and half the memory traffic of 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    pages: u32,
    references: Vec<u32>,
}

impl Stream {
    /// A stream over the pages `0..pages`.
    ///
    /// # Panics
    /// When a reference names a page outside `0..pages`.
    pub fn new(pages: u32, references: Vec<u32>) -> Self {
        assert!(references.iter().all(|&page| page < pages), "a reference is outside the region");
        Self { pages, references }
    }

    /// The size of the region in pages; not every page need be referenced.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The page numbers in the order of reference.
    pub fn references(&self) -> &[u32] {
        &self.references
    }

    /// The page numbers alone.
    pub fn into_references(self) -> Vec<u32> {
        self.references
    }

    /// The number of references.
    pub fn len(&self) -> usize {
        self.references.len()
    }

    /// Whether nothing is referenced.
    pub fn is_empty(&self) -> bool {
        self.references.is_empty()
    }
}
