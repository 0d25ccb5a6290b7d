//! What one worker does again and again.

use std::fs::File;

use pagelab_experiment::experiments::Work;

use crate::region::{HugePages, Region, page_size};

/// A worker's work and what it holds for it.
pub(super) enum Worker<'a> {
    /// Maps so many pages, writes each, unmaps: an operation is a fault.
    Anon(usize),
    /// Maps the file, reads each page, unmaps: an operation is a page, of which one fault maps
    /// several (16 unless /sys/kernel/debug/fault_around_bytes says otherwise).
    File(&'a File, usize),
    /// Maps a page and unmaps it, untouched.
    Map,
    /// Forks a child that exits at once, with so many pages of page table to copy.
    Fork { _populated: Region },
}

impl<'a> Worker<'a> {
    /// Prepares; `None` when the kernel refuses.
    pub(super) fn new(work: Work, pages: usize, file: Option<&'a File>) -> Option<Self> {
        match work {
            Work::Anon => Some(Self::Anon(pages)),
            Work::File => Some(Self::File(file?, pages)),
            Work::Map => Some(Self::Map),
            Work::Fork => {
                let region = Region::anonymous(pages).ok()?;
                let _ = region.advise(HugePages::Forbidden);
                region.populate(|_, _| {});
                Some(Self::Fork { _populated: region })
            }
            Work::Build => None,
        }
    }

    /// Does it once; the operations made, `None` when the kernel refuses.
    pub(super) fn turn(&self, stop: impl Fn() -> bool) -> Option<u64> {
        match self {
            Self::Anon(pages) => {
                let region = Region::anonymous(*pages).ok()?;
                let _ = region.advise(HugePages::Forbidden);
                Some(touch(&region, *pages, true, stop))
            }
            Self::File(file, pages) => {
                let region = Region::part(file, 0, *pages).ok()?;
                Some(touch(&region, *pages, false, stop))
            }
            Self::Map => {
                for _ in 0..16 {
                    drop(Region::anonymous(1).ok()?);
                }
                Some(16)
            }
            Self::Fork { .. } => {
                // SAFETY: the child makes no call but _exit, which is safe in a child of a threaded
                // process too.
                let child = unsafe { libc::fork() };
                match child {
                    -1 => None,
                    // SAFETY: likewise.
                    0 => unsafe { libc::_exit(0) },
                    child => {
                        // SAFETY: no status is wanted; the child is ours.
                        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                        Some(1)
                    }
                }
            }
        }
    }
}

/// Touches every page until told to stop; how many.
fn touch(region: &Region, pages: usize, write: bool, stop: impl Fn() -> bool) -> u64 {
    for page in 0..pages {
        if page % 64 == 0 && stop() {
            return page as u64;
        }
        // SAFETY: below the region's pages, which are mapped; written only where they may be.
        unsafe {
            let at = region.base().add(page * page_size());
            if write {
                at.write_volatile(1);
            } else {
                std::hint::black_box(at.read_volatile());
            }
        }
    }
    pages as u64
}
