//! Reads the page frames of a file's cached pages: how many mappings each has (`/proc/kpagecount`),
//! and whether it is on the active list (`/proc/kpageflags`). Needs root.
//!
//! The kernel shows the frame numbers of mapped pages only (`/proc/self/pagemap`), so this module
//! maps the cached pages briefly. The mapping must not influence reclaim:
//!
//! - The kernel faults the pages in, as the buffer of a write(2), because another process may
//!   truncate the file meanwhile. MADV_POPULATE_READ would mark the pages as accessed.
//! - The mapping has the advice MADV_RANDOM, so the kernel starts no read-ahead. Since 6.3, it also
//!   marks no page as accessed when the mapping is removed.
//! - On older kernels, the mapping gets the advice MADV_SEQUENTIAL before its removal, which has the
//!   same effect.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::lifetime::in_memory;
use crate::page_cache::{self, WINDOW};
use crate::region::page_size;

/// Documentation/admin-guide/mm/pagemap.rst.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;
/// include/uapi/linux/kernel-page-flags.h.
const ACTIVE: u64 = 1 << 6;
/// Frames less than this far apart are read together.
const GAP: u64 = 64;
/// Pages that the kernel maps around a fault if they are cached (`fault_around_bytes`).
const AROUND: usize = 16;
const ENTRY: usize = 8;
/// Maximum number of buffers of a write (`UIO_MAXIOV`).
const MAX_VECTORS: usize = 1024;

/// Pages of a file whose frames were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Pages whose frames were read.
    pub pages: u64,
    /// Of these, mapped by a process.
    pub mapped: u64,
    /// Of these, on the active list; `None` if the kernel sorts pages into generations (MGLRU),
    /// which no kernel file shows.
    pub active: Option<u64>,
}

/// Reads the page frames of files, of several at a time: faulting, reading and unmapping them one by
/// one takes longer.
#[derive(Debug)]
pub struct FrameReader {
    pagemap: File,
    flags: File,
    counts: File,
    /// Receives the bytes copied from the pages.
    sink: File,
    generations: bool,
    window: Window,
    /// The mapped ranges, and the files that they belong to.
    ranges: Vec<Range>,
    found: Vec<Frames>,
    /// The error since the last [`Self::take`].
    failed: io::Result<()>,
    bytes: Vec<u8>,
}

/// A mapped range of a file.
#[derive(Debug)]
struct Range {
    /// The first page in the window, and the number of pages.
    first: usize,
    pages: usize,
    /// Cached pages according to cachestat(2); `None` on a kernel without it.
    cached: Option<u64>,
    /// The file's position in `found`.
    file: usize,
}

impl FrameReader {
    /// Opens the kernel's files.
    ///
    /// # Errors
    /// When the caller may not read them, or the kernel has none.
    pub fn open() -> io::Result<Self> {
        let (flags, counts) = (File::open("/proc/kpageflags")?, File::open("/proc/kpagecount")?);
        Ok(Self {
            pagemap: File::open("/proc/self/pagemap")?,
            flags,
            counts,
            sink: in_memory("pagelab-frames")?,
            generations: has_generations(),
            window: Window::new((WINDOW / page_size() as u64) as usize)?,
            ranges: Vec::new(),
            found: Vec::new(),
            failed: Ok(()),
            bytes: Vec::new(),
        })
    }

    /// Reads the frames of the cached pages in the first `bytes` bytes of `file`.
    ///
    /// # Errors
    /// When the file cannot be mapped.
    pub fn look(&mut self, file: &File, bytes: u64) -> io::Result<Frames> {
        self.add(file, bytes, None)?;
        Ok(self.take()?[0])
    }

    /// Adds a file, of which [`Self::take`] returns the cached pages in the first `bytes` bytes.
    /// `cached` is their number, if known from cachestat(2).
    ///
    /// # Errors
    /// When the file cannot be mapped.
    pub fn add(&mut self, file: &File, bytes: u64, cached: Option<u64>) -> io::Result<()> {
        let number = self.found.len();
        self.found.push(Frames { active: (!self.generations).then_some(0), ..Frames::default() });
        self.map_file(file, bytes, cached, number).inspect_err(|_| {
            self.found.pop();
            self.ranges.retain(|range| range.file != number);
        })
    }

    fn map_file(&mut self, file: &File, bytes: u64, known: Option<u64>, number: usize) -> io::Result<()> {
        let mut from = 0;
        while from < bytes {
            let here = (bytes - from).min(WINDOW);
            // Skip ranges without cached pages; without cachestat(2), check every page.
            let cached = match known {
                Some(_) if here == bytes => known,
                _ => page_cache::in_range(file, from, here).ok(),
            };
            if cached != Some(0) {
                if !self.window.has_room(here) {
                    self.read_frames();
                }
                let (first, pages) = self.window.map(file, from, here)?;
                self.ranges.push(Range { first, pages, cached, file: number });
            }
            from += here;
        }
        Ok(())
    }

    /// Returns the frames of the files added since the last call, in their order.
    ///
    /// # Errors
    /// When the kernel's files cannot be read.
    pub fn take(&mut self) -> io::Result<Vec<Frames>> {
        self.read_frames();
        let found = std::mem::take(&mut self.found);
        std::mem::replace(&mut self.failed, Ok(())).map(|()| found)
    }

    /// Reads the frames of the mapped ranges, and removes the ranges.
    fn read_frames(&mut self) {
        if !self.ranges.is_empty() && self.failed.is_ok() {
            self.failed = self.read_ranges();
        }
        // A kernel with cachestat(2) is newer than 6.3.
        self.window.clear(self.ranges.iter().any(|range| range.cached.is_none()));
        self.ranges.clear();
    }

    fn read_ranges(&mut self) -> io::Result<()> {
        self.window.advise(Advice::Random)?;
        let is_whole = |range: &Range| range.cached == Some(range.pages as u64);
        let present = match self.ranges.iter().all(is_whole) {
            true => vec![1; self.window.used],
            false => self.window.resident()?,
        };
        let is_cached = |page: usize| present[page] & 1 == 1;
        let base = self.window.first_page();
        let mut starts = Vec::new();
        for range in &self.ranges {
            let mut before = false;
            for page in range.first..range.first + range.pages {
                let cached = is_cached(page);
                if cached && (!before || (base + page).is_multiple_of(AROUND)) {
                    starts.push(page);
                }
                before = cached;
            }
        }
        self.window.fault(&self.sink, &starts);
        let mut frames = Vec::with_capacity(self.window.used);
        let mut absent = Vec::new();
        let mut mapped = entries(&self.pagemap, base as u64, self.window.used, &mut self.bytes)?;
        for range in &self.ranges {
            for (page, entry) in (range.first..).zip(mapped.by_ref().take(range.pages)) {
                if is_present(entry) {
                    frames.push((entry & FRAME, range.file));
                } else if is_cached(page) {
                    absent.push((page, range.file));
                }
            }
        }
        drop(mapped);
        for (page, file) in absent {
            self.window.fault(&self.sink, &[page]);
            let mut entry = entries(&self.pagemap, (base + page) as u64, 1, &mut self.bytes)?;
            frames.extend(entry.find(|&entry| is_present(entry)).map(|entry| (entry & FRAME, file)));
        }
        frames.sort_unstable();
        self.count(&frames)
    }

    /// Adds the frames, in ascending order, each with the number of its file.
    fn count(&mut self, frames: &[(u64, usize)]) -> io::Result<()> {
        for group in frames.chunk_by(|a, b| b.0 - a.0 < GAP) {
            let start = group[0].0;
            let length = (group[group.len() - 1].0 - start + 1) as usize;
            let of = |frame: u64| (frame - start) as usize;
            let counts: Vec<u64> = entries(&self.counts, start, length, &mut self.bytes)?.collect();
            for &(frame, file) in group {
                self.found[file].pages += 1;
                // One of the frame's mappings is this one.
                self.found[file].mapped += u64::from(counts.get(of(frame)).is_some_and(|&count| count > 1));
            }
            if self.generations {
                continue;
            }
            let flags: Vec<u64> = entries(&self.flags, start, length, &mut self.bytes)?.collect();
            for &(frame, file) in group {
                let is_active = flags.get(of(frame)).is_some_and(|bits| bits & ACTIVE != 0);
                self.found[file].active = self.found[file].active.map(|active| active + u64::from(is_active));
            }
        }
        Ok(())
    }
}

/// Reserved addresses, in which files are mapped one after the other.
#[derive(Debug)]
struct Window {
    base: NonNull<u8>,
    pages: usize,
    /// The number of pages at the beginning that files occupy.
    used: usize,
}

impl Window {
    fn new(pages: usize) -> io::Result<Self> {
        let base = reserve(ptr::null_mut(), pages, MapFlags::empty())?;
        Ok(Self { base, pages, used: 0 })
    }

    fn has_room(&self, bytes: u64) -> bool {
        bytes.div_ceil(page_size() as u64) <= (self.pages - self.used) as u64
    }

    /// Maps `bytes` bytes of `file` from `offset`, read-only; the last page may be partial. Returns
    /// the first page in the window, and the number of pages.
    fn map(&mut self, file: &File, offset: u64, bytes: u64) -> io::Result<(usize, usize)> {
        let (first, pages) = (self.used, bytes.div_ceil(page_size() as u64) as usize);
        assert!(pages <= self.pages - first, "{pages} pages from {first} on");
        let (at, flags) = (self.address(first).cast(), MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: the addresses are in the window and used by no file. Nobody reads them but the
        // kernel, as another process may truncate the file meanwhile.
        unsafe { mmap(at, pages * page_size(), ProtFlags::READ, flags, file, offset)? };
        self.used += pages;
        Ok((first, pages))
    }

    /// Maps the pages, and reads in those that have left the cache meanwhile. A page beyond the end
    /// of a truncated file stays unmapped.
    fn fault(&self, sink: &File, pages: &[usize]) {
        let mut rest = pages;
        while !rest.is_empty() {
            let part = &rest[..rest.len().min(MAX_VECTORS)];
            let vectors: Vec<libc::iovec> = part
                .iter()
                .map(|&page| libc::iovec { iov_base: self.address(page).cast(), iov_len: 1 })
                .collect();
            // SAFETY: the pages are in the window; the kernel reads a byte of each, and stops at
            // one that it cannot read.
            let written = unsafe { libc::pwritev(sink.as_raw_fd(), vectors.as_ptr(), part.len() as i32, 0) };
            // Skip the page that stopped it.
            let done = usize::try_from(written).unwrap_or(0);
            rest = &rest[(done + usize::from(done < part.len()))..];
        }
    }

    /// One byte per page in use; its lowest bit is set if the page is cached.
    fn resident(&self) -> io::Result<Vec<u8>> {
        let mut present = vec![0_u8; self.used];
        // SAFETY: the range is in the window, and the vector has a byte for each of its pages.
        match unsafe { libc::mincore(self.base.as_ptr().cast(), self.bytes(), present.as_mut_ptr()) } {
            0 => Ok(present),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn advise(&self, advice: Advice) -> io::Result<()> {
        // SAFETY: the range is in the window; neither advice changes its contents.
        unsafe { madvise(self.base.as_ptr().cast(), self.bytes(), advice)? };
        Ok(())
    }

    /// Removes the files.
    fn clear(&mut self, is_old: bool) {
        if self.used == 0 {
            return;
        }
        if is_old {
            let _ = self.advise(Advice::Sequential);
        }
        // On failure, the files stay mapped until the next one takes their place.
        let _ = reserve(self.base.as_ptr().cast(), self.used, MapFlags::FIXED);
        self.used = 0;
    }

    fn address(&self, page: usize) -> *mut u8 {
        assert!(page < self.pages, "page {page} of {}", self.pages);
        // SAFETY: the page is in the window.
        unsafe { self.base.as_ptr().add(page * page_size()) }
    }

    fn first_page(&self) -> usize {
        self.base.as_ptr().addr() / page_size()
    }

    fn bytes(&self) -> usize {
        self.used * page_size()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the range is the window, and nobody holds a reference into it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.pages * page_size()) };
    }
}

// SAFETY: the window belongs to its owner alone, whichever thread that is on.
unsafe impl Send for Window {}

/// Reserves addresses for `pages` pages, without memory.
fn reserve(at: *mut libc::c_void, pages: usize, flags: MapFlags) -> io::Result<NonNull<u8>> {
    let flags = flags | MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice, or over pages of the window.
    let base = unsafe { mmap_anonymous(at, pages * page_size(), ProtFlags::empty(), flags)? };
    NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

fn is_present(entry: u64) -> bool {
    entry & PRESENT != 0 && entry & FRAME != 0
}

/// Whether reclaim sorts pages into generations (MGLRU).
fn has_generations() -> bool {
    let text = std::fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").unwrap_or_default();
    let digits = text.trim().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).is_ok_and(|enabled| enabled & 1 == 1)
}

/// Entries of one of the kernel's page files, starting at entry `first`.
fn entries<'a>(
    file: &File,
    first: u64,
    count: usize,
    bytes: &'a mut Vec<u8>,
) -> io::Result<impl Iterator<Item = u64> + use<'a>> {
    bytes.resize(bytes.len().max(count * ENTRY), 0);
    let read = file.read_at(&mut bytes[..count * ENTRY], first * ENTRY as u64)?;
    Ok(bytes[..read].as_chunks::<ENTRY>().0.iter().map(|entry| u64::from_ne_bytes(*entry)))
}
