//! Write-backs of any policy: a page that was written must be written back before its frame is another's.
//!
//! A policy need not tell whom it evicts: a dirty page that misses has been evicted since, and had to be written. Those that
//! are dirty at the end are counted, too, as first references count among the misses: whatever was written must get to
//! the disk once.

/// Which pages are dirty, and how many had to be written back.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    dirty: Vec<bool>,
    written: u64,
}

impl Dirty {
    /// No page of `0..pages` is dirty.
    pub fn new(pages: u32) -> Self {
        Self { dirty: vec![false; pages as usize], written: 0 }
    }

    /// Takes note of a reference and whether it hit.
    #[inline]
    pub fn note(&mut self, page: u32, write: bool, hit: bool) {
        let dirty = &mut self.dirty[page as usize];
        self.written += u64::from(*dirty && !hit);
        *dirty = write || (*dirty && hit);
    }

    /// Write-backs, of the pages that are dirty now as well.
    pub fn write_backs(&self) -> u64 {
        self.written + self.dirty.iter().filter(|&&dirty| dirty).count() as u64
    }
}
