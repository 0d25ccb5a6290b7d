//! The thread beside the workers: it takes the lock of their address space (mmap_lock) for writing,
//! again and again, for mappings that are none of theirs.
//!
//! A kernel with a lock for each mapping (CONFIG_PER_VMA_LOCK, Linux 6.4 and later) handles faults
//! of other mappings meanwhile; one without has them wait (Corbet, "Concurrent page-fault handling
//! with per-VMA locks", LWN 2022).

use std::io;
use std::ptr;

use pagelab_experiment::experiments::{Beside, Faultscale};
use pagelab_kernel::region::page_size;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::harness::area::{Area, base_pages_only};

/// What it does.
pub(super) enum Other {
    /// Maps a page and unmaps it.
    Map,
    /// Takes the right to write a populated mapping and gives it back, with room around it, so that
    /// it is merged with no other.
    Protect(Area),
}

impl Other {
    /// Prepares; `None` where there is to be none.
    ///
    /// # Errors
    /// When the kernel refuses memory.
    pub(super) fn new(faultscale: &Faultscale) -> io::Result<Option<Self>> {
        Ok(match faultscale.beside {
            Beside::None => None,
            Beside::Map => Some(Self::Map),
            Beside::Protect => {
                base_pages_only();
                let mut area = Area::new(faultscale.beside_pages as usize)?;
                area.touch()?;
                Some(Self::Protect(area))
            }
        })
    }

    /// Does it once; the calls that were made.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn turn(&mut self) -> io::Result<u64> {
        match self {
            Self::Map => {
                // Not to be written, so that it is merged with no mapping of the workers'.
                let (rights, flags) = (ProtFlags::READ, MapFlags::PRIVATE | MapFlags::NORESERVE);
                // SAFETY: a new mapping at an address of the kernel's choice, unmapped before
                // anybody has its address.
                unsafe {
                    let at = mmap_anonymous(ptr::null_mut(), page_size(), rights, flags)?;
                    munmap(at, page_size())?;
                }
            }
            Self::Protect(area) => {
                area.protect()?;
                area.unprotect()?;
            }
        }
        Ok(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_calls_again_and_again() {
        for beside in [Beside::Map, Beside::Protect] {
            let faultscale = Faultscale { beside, beside_pages: 3, ..Faultscale::default() };
            let mut other = Other::new(&faultscale).unwrap().unwrap();
            assert_eq!((other.turn().unwrap(), other.turn().unwrap()), (2, 2));
        }
        assert!(Other::new(&Faultscale::default()).unwrap().is_none());
    }
}
