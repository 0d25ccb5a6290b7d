//! The mapping that an experiment references.
//!
//! Anonymous pages are populated by writing each one once, because a read of anonymous memory that
//! was never written only maps the kernel's shared zero page. Unless something else is asked for
//! the first half of every page is pseudo-random and differs from page to page; the second half
//! repeats one word. So no page is same-filled (zram would keep no more than one word of it), no
//! two are alike (KSM), and a page compresses to a little over half: the ratio is a property of the
//! load, and this one is modest.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::{mem, slice};

use rustix::fs::{Advice as FileAdvice, fadvise};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::content::Filler;
use crate::hugetlb;

/// A mapping of whole pages; unmapped when dropped.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    pages: usize,
    page_size: usize,
    /// Bytes mapped: those of the pages, rounded up to whole huge pages where it is made of these.
    mapped: usize,
}

/// What the kernel is told about huge pages in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// `MADV_NOHUGEPAGE`: every fault is for one base page, whatever the system's mode.
    Forbidden,
    /// Nothing: the system's mode decides.
    System,
    /// `MADV_HUGEPAGE`.
    Wanted,
}

/// The machine's base page size in bytes.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

impl Region {
    /// Maps `pages` pages of private anonymous memory, not yet populated.
    ///
    /// # Errors
    /// When the kernel refuses, or the size does not fit the address space.
    pub fn anonymous(pages: usize) -> io::Result<Self> {
        Self::mapped(length(pages)?, MapFlags::PRIVATE | MapFlags::NORESERVE)
    }

    /// The same in base pages, whatever the system's mode. A kernel without huge pages refuses to forbid them.
    ///
    /// # Errors
    /// As there.
    pub fn base_pages(pages: usize) -> io::Result<Self> {
        let region = Self::anonymous(pages)?;
        let _ = region.advise(HugePages::Forbidden);
        Ok(region)
    }

    /// New anonymous memory.
    fn mapped(length: usize, flags: MapFlags) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), length, protection, flags)? };
        Self::new(base.cast(), length / page_size())
    }

    /// Maps the first `pages` pages of `file`, shared, for reading and writing.
    ///
    /// # Errors
    /// When the file is too short or the kernel refuses.
    pub fn file(file: &File, pages: usize) -> io::Result<Self> {
        let length = length(pages)?;
        if file.metadata()?.len() < length as u64 {
            return Err(io::Error::other("the file is shorter than the mapping"));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice. Only this process uses the
        // scratch file, so nobody truncates it under the mapping.
        let base = unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0)? };
        Self::new(base.cast(), pages)
    }

    /// Maps `pages` pages of anonymous memory that forked children share.
    ///
    /// # Errors
    /// When the kernel refuses, or the size does not fit the address space.
    pub fn shared(pages: usize) -> io::Result<Self> {
        Self::mapped(length(pages)?, MapFlags::SHARED)
    }

    /// Maps private anonymous memory of `pages` base pages from the huge pages that are set aside,
    /// whole ones of the default size.
    ///
    /// # Errors
    /// When there are too few, or the kernel has none.
    pub fn huge(pages: usize) -> io::Result<Self> {
        let huge_page = hugetlb::page_size().ok_or(io::ErrorKind::Unsupported)? as usize;
        let mapped = length(pages)?.next_multiple_of(huge_page);
        let mut region = Self::mapped(mapped, MapFlags::PRIVATE | MapFlags::HUGETLB)?;
        region.pages = pages;
        Ok(region)
    }

    /// Maps `pages` pages of `file` from page `first` on, shared, for reading.
    ///
    /// # Errors
    /// When the file is too short or the kernel refuses.
    pub fn part(file: &File, first: usize, pages: usize) -> io::Result<Self> {
        let (offset, length) = (first as u64 * page_size() as u64, length(pages)?);
        if file.metadata()?.len() < offset + length as u64 {
            return Err(io::Error::other("the file is shorter than the mapping"));
        }
        // SAFETY: as in `file`.
        let base = unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, offset)? };
        Self::new(base.cast(), pages)
    }

    /// Maps `bytes` bytes of `file` from `offset`, shared and read-only; the last page may be
    /// partial. Another process may truncate the file meanwhile, so callers must not access the
    /// mapping.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn part_to_end(file: &File, offset: u64, bytes: u64) -> io::Result<Self> {
        let pages = usize::try_from(bytes).map_err(io::Error::other)?.div_ceil(page_size());
        let (length, protection) = (length(pages)?, ProtFlags::READ);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file, offset)? };
        Self::new(base.cast(), pages)
    }

    fn new(base: *mut u8, pages: usize) -> io::Result<Self> {
        let base = NonNull::new(base).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        let page_size = page_size();
        Ok(Self { base, pages, page_size, mapped: pages * page_size })
    }

    /// Advises the kernel about huge pages; a kernel without them refuses, and none are used.
    pub fn advise(&self, huge: HugePages) -> io::Result<()> {
        let advice = match huge {
            HugePages::System => return Ok(()),
            HugePages::Forbidden => Advice::LinuxNoHugepage,
            HugePages::Wanted => Advice::LinuxHugepage,
        };
        // SAFETY: the range is this mapping; neither advice changes its contents.
        unsafe { madvise(self.base.as_ptr().cast(), self.bytes(), advice)? };
        Ok(())
    }

    /// Keeps the kernel from merging this mapping with a neighbour: children do not inherit it, and
    /// the kernel merges only what is alike in that too.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn keep_apart(&self) -> io::Result<()> {
        // SAFETY: the range is this mapping; the advice changes neither its contents nor this
        // process's access.
        unsafe { madvise(self.base.as_ptr().cast(), self.bytes(), Advice::LinuxDontFork)? };
        Ok(())
    }

    /// Gives every page back; the mapping stays, and the next touch of a page is a fault.
    ///
    /// # Errors
    /// When the kernel refuses the advice.
    pub fn give_back(&self) -> io::Result<()> {
        self.give_back_part(0, self.pages)
    }

    /// The same of `pages` pages from `first` on.
    ///
    /// # Errors
    /// When the kernel refuses the advice.
    ///
    /// # Panics
    /// Where they are not all in the mapping.
    pub fn give_back_part(&self, first: usize, pages: usize) -> io::Result<()> {
        assert!(first <= self.pages && pages <= self.pages - first, "{pages} pages from {first} on");
        let (at, length) = (first * self.page_size, pages * self.page_size);
        // SAFETY: the range is within this mapping, whose content nobody needs.
        unsafe { madvise(self.base.as_ptr().add(at).cast(), length, Advice::LinuxDontNeed)? };
        Ok(())
    }

    /// The first byte.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The addresses.
    pub fn range(&self) -> std::ops::Range<usize> {
        let base = self.base().expose_provenance();
        base..base + self.bytes()
    }

    /// The number of pages.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// The size of a page in bytes.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.pages * self.page_size
    }

    /// Writes every page once, in order; `progress(done, pages)` is called after every 1,024 pages.
    pub fn populate(&self, progress: impl FnMut(u64, u64)) {
        self.populate_with(&Filler::default(), progress);
    }

    /// The same with what `filler` fills them with.
    pub fn populate_with(&self, filler: &Filler, mut progress: impl FnMut(u64, u64)) {
        for page in 0..self.pages {
            self.populate_page(page, filler);
            if (page + 1) % 1024 == 0 || page + 1 == self.pages {
                progress(page as u64 + 1, self.pages as u64);
            }
        }
    }

    /// Writes one page with what `filler` fills it with.
    ///
    /// # Panics
    /// When there is none of this number.
    pub fn populate_page(&self, page: usize, filler: &Filler) {
        self.populate_page_as(page, page as u64, filler);
    }

    /// The same with what `filler` fills page number `content` with.
    ///
    /// # Panics
    /// When there is no page of this number.
    pub fn populate_page_as(&self, page: usize, content: u64, filler: &Filler) {
        assert!(page < self.pages, "page {page} outside the region");
        let words = self.page_size / mem::size_of::<u64>();
        // SAFETY: the page lies within this mapping, which is writable, aligned to a page, and
        // referenced by nothing else while this slice lives.
        let memory =
            unsafe { slice::from_raw_parts_mut(self.base.as_ptr().add(page * self.page_size).cast(), words) };
        filler.fill(content, memory);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, and nobody holds a reference into it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

fn length(pages: usize) -> io::Result<usize> {
    pages
        .checked_mul(page_size())
        .filter(|&length| length > 0 && isize::try_from(length).is_ok())
        .ok_or_else(|| io::Error::other("the mapping does not fit the address space"))
}

/// Writes `pages` pages of `filler`'s to the file `path` (made or overwritten), brings them to the
/// disk and drops them from the page cache, so that whoever maps the file next has every page still
/// to read.
///
/// # Errors
/// Those of the file system; a full disk among them.
pub fn write_file(
    path: &Path,
    pages: usize,
    filler: &Filler,
    mut progress: impl FnMut(u64, u64),
) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    let mut content = vec![0u64; page_size() / mem::size_of::<u64>()];
    let mut output = BufWriter::with_capacity(1 << 20, &file);
    for page in 0..pages {
        filler.fill(page as u64, &mut content);
        for word in &content {
            output.write_all(&word.to_ne_bytes())?;
        }
        if (page + 1) % 1024 == 0 || page + 1 == pages {
            progress(page as u64 + 1, pages as u64);
        }
    }
    output.flush()?;
    drop(output);
    forget(&file)?;
    Ok(file)
}

/// Brings the file to the disk and drops it from the page cache.
///
/// # Errors
/// Those of the file system.
pub fn forget(file: &File) -> io::Result<()> {
    file.sync_all()?;
    Ok(fadvise(file, 0, None, FileAdvice::DontNeed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_file_has_the_written_data() {
        let folder = tempfile::tempdir().unwrap();
        let file = write_file(&folder.path().join("x"), 3, &Filler::default(), |_, _| {}).unwrap();
        let region = Region::file(&file, 3).unwrap();
        let words = page_size() / 8;
        let mut wanted = vec![0; words];
        Filler::default().fill(2, &mut wanted);
        // SAFETY: the third page of the mapping, read only.
        let got = unsafe { slice::from_raw_parts(region.base().cast::<u64>().add(2 * words), words) };
        assert_eq!(got, wanted);
        assert!(Region::file(&file, 4).is_err());
    }

    #[test]
    fn an_impossible_size_is_refused() {
        assert!(Region::anonymous(0).is_err());
        assert!(Region::anonymous(usize::MAX).is_err());
    }
}
