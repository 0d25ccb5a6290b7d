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
    /// There are `pages` pages from now on, of which the new ones are not dirty.
    pub fn grow(&mut self, pages: u32) {
        crate::policy::grow(&mut self.dirty, pages);
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
