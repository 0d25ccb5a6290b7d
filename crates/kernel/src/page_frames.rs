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

use rustix::mm::{Advice, madvise};

use crate::lifetime::in_memory;
use crate::page_cache::{self, WINDOW};
use crate::region::{Region, page_size};

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

/// Reads the page frames of files.
#[derive(Debug)]
pub struct FrameReader {
    pagemap: File,
    flags: File,
    counts: File,
    /// Receives the bytes copied from the pages.
    sink: File,
    generations: bool,
    bytes: Vec<u8>,
}

impl FrameReader {
    /// Opens the kernel's files.
    ///
    /// # Errors
    /// When the caller may not read them, or the kernel has none.
    pub fn open() -> io::Result<Self> {
        let (flags, counts) = (File::open("/proc/kpageflags")?, File::open("/proc/kpagecount")?);
        let pagemap = File::open("/proc/self/pagemap")?;
        let sink = in_memory("pagelab-frames")?;
        Ok(Self { pagemap, flags, counts, sink, generations: has_generations(), bytes: Vec::new() })
    }

    /// Reads the frames of the cached pages in the first `bytes` bytes of `file`.
    ///
    /// # Errors
    /// When the file cannot be mapped.
    pub fn look(&mut self, file: &File, bytes: u64) -> io::Result<Frames> {
        let mut found = Frames { active: (!self.generations).then_some(0), ..Frames::default() };
        let mut from = 0;
        while from < bytes {
            let here = (bytes - from).min(WINDOW);
            // Skip ranges without cached pages; without cachestat(2), check every page.
            let cached = page_cache::in_range(file, from, here).ok();
            if cached != Some(0) {
                self.look_at(&Region::part_to_end(file, from, here)?, cached, &mut found)?;
            }
            from += here;
        }
        Ok(found)
    }

    /// Reads the frames of a mapped range. `cached` is the number of cached pages from cachestat(2),
    /// `None` on a kernel without it.
    fn look_at(&mut self, region: &Region, cached: Option<u64>, found: &mut Frames) -> io::Result<()> {
        advise(region, Advice::Random)?;
        if cached == Some(region.pages() as u64) {
            return self.look_at_run(region, 0, region.pages(), found);
        }
        let present = page_cache::resident(region).ok_or_else(io::Error::last_os_error)?;
        let mut first = 0;
        for run in present.chunk_by(|a, b| a & 1 == b & 1) {
            if run[0] & 1 == 1 {
                self.look_at_run(region, first, run.len(), found)?;
            }
            first += run.len();
        }
        // A kernel with cachestat(2) is newer than 6.3.
        if cached.is_none() { advise(region, Advice::Sequential) } else { Ok(()) }
    }

    /// Maps a page, and reads it in if it has left the cache meanwhile. A page beyond the end of a
    /// truncated file stays unmapped.
    fn map(&self, region: &Region, page: usize) {
        // SAFETY: the page is within the mapping; the kernel reads it, and fails if there is none.
        unsafe {
            let from = region.base().add(page * page_size()).cast();
            libc::pwrite(self.sink.as_raw_fd(), from, 1, 0);
        }
    }

    fn look_at_run(
        &mut self,
        region: &Region,
        first: usize,
        pages: usize,
        found: &mut Frames,
    ) -> io::Result<()> {
        let page = region.base() as usize / page_size() + first;
        (0..pages)
            .filter(|at| *at == 0 || (page + at).is_multiple_of(AROUND))
            .for_each(|at| self.map(region, first + at));
        let mut frames = Vec::with_capacity(pages);
        let mut absent = Vec::new();
        for (at, entry) in entries(&self.pagemap, page as u64, pages, &mut self.bytes)?.enumerate() {
            if is_present(entry) { frames.push(entry & FRAME) } else { absent.push(at) }
        }
        for at in absent {
            self.map(region, first + at);
            let mut found = entries(&self.pagemap, (page + at) as u64, 1, &mut self.bytes)?;
            frames.extend(found.find(|&entry| is_present(entry)).map(|entry| entry & FRAME));
        }
        frames.sort_unstable();
        found.pages += frames.len() as u64;
        for group in frames.chunk_by(|a, b| b - a < GAP) {
            let (start, end) = (group[0], group[group.len() - 1]);
            let length = (end - start + 1) as usize;
            let counts: Vec<u64> = entries(&self.counts, start, length, &mut self.bytes)?.collect();
            let of = |frame: u64| (frame - start) as usize;
            // One of the frame's mappings is this one.
            let mapped = |frame: &&u64| counts.get(of(**frame)).is_some_and(|&count| count > 1);
            found.mapped += group.iter().filter(mapped).count() as u64;
            if let Some(active) = &mut found.active {
                let flags: Vec<u64> = entries(&self.flags, start, length, &mut self.bytes)?.collect();
                let is_active = |frame: &&u64| flags.get(of(**frame)).is_some_and(|bits| bits & ACTIVE != 0);
                *active += group.iter().filter(is_active).count() as u64;
            }
        }
        Ok(())
    }
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

fn advise(region: &Region, advice: Advice) -> io::Result<()> {
    // SAFETY: the range is the whole mapping; neither advice changes its contents.
    unsafe {
        madvise(region.base().cast(), region.pages() * page_size(), advice)?;
    }
    Ok(())
}
