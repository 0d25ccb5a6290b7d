//! A mapping that one operation is done to: private anonymous memory in base pages, with room
//! beside it.

use std::io;
use std::ptr;

use pagelab_kernel::region::page_size;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mprotect, mremap_fixed,
    munmap,
};

/// What the span of a table of page-table entries is on x86-64 and on arm64 with pages of 4 KiB:
/// mappings that lie alike within it are moved table by table.
const SPAN: usize = 2 << 20;

/// Has this process have no transparent huge pages from now on: an advice would be too late for a
/// mapping that is populated as it is made. A kernel that cannot forbid them has none.
pub fn base_pages_only() {
    // SAFETY: concerns this process's own later mappings.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

/// The mapping, and the reserved addresses in which it lies and may be moved.
#[derive(Debug)]
pub struct Area {
    reserved: *mut u8,
    reserve: usize,
    base: *mut u8,
    bytes: usize,
    /// Where the mapping was, once it is unmapped or moved.
    left: Option<*mut u8>,
}

impl Area {
    /// A mapping of `pages` pages, none of which is there yet.
    ///
    /// # Errors
    /// When the kernel refuses addresses or the mapping.
    pub fn new(pages: usize) -> io::Result<Self> {
        let bytes = pages.checked_mul(page_size()).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        let reserve = 2 * bytes.next_multiple_of(SPAN) + 3 * SPAN;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: new addresses of the kernel's choice, without any right.
        let reserved = unsafe { mmap_anonymous(ptr::null_mut(), reserve, ProtFlags::empty(), flags)? };
        let reserved = reserved.cast::<u8>();
        let base = reserved.wrapping_add(reserved.align_offset(SPAN));
        let mut new = Self { reserved, reserve, base, bytes, left: None };
        new.map(MapFlags::empty())?;
        Ok(new)
    }

    /// Maps it anew, where it is.
    fn map(&mut self, more: MapFlags) -> io::Result<()> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED | more;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: within the reserved addresses, which are this area's own.
        unsafe { mmap_anonymous(self.base.cast(), self.bytes, rights, flags)? };
        Ok(())
    }

    fn advise(&mut self, advice: Advice) -> io::Result<()> {
        // SAFETY: this area's own mapping, whose content nobody needs.
        unsafe { madvise(self.base.cast(), self.bytes, advice)? };
        Ok(())
    }

    /// Writes a word of each page.
    pub fn touch(&mut self) -> io::Result<()> {
        for at in (0..self.bytes).step_by(page_size()) {
            // SAFETY: within the mapping.
            unsafe { self.base.add(at).cast::<u64>().write_volatile(at as u64 | 1) };
        }
        Ok(())
    }

    pub fn unmap(&mut self) -> io::Result<()> {
        // SAFETY: this area's own mapping, which nobody uses any more.
        unsafe { munmap(self.base.cast(), self.bytes)? };
        self.left = Some(self.base);
        Ok(())
    }

    pub fn protect(&mut self) -> io::Result<()> {
        // SAFETY: this area's own mapping, which nobody writes any more.
        unsafe { mprotect(self.base.cast(), self.bytes, MprotectFlags::READ)? };
        Ok(())
    }

    /// Undoes [`Self::protect`].
    pub fn unprotect(&mut self) -> io::Result<()> {
        // SAFETY: this area's own mapping.
        unsafe { mprotect(self.base.cast(), self.bytes, MprotectFlags::READ | MprotectFlags::WRITE)? };
        Ok(())
    }

    pub fn drop_pages(&mut self) -> io::Result<()> {
        self.advise(Advice::LinuxDontNeed)
    }

    pub fn free(&mut self) -> io::Result<()> {
        self.advise(Advice::LinuxFree)
    }

    pub fn cool(&mut self) -> io::Result<()> {
        self.advise(Advice::LinuxCold)
    }

    pub fn page_out(&mut self) -> io::Result<()> {
        self.advise(Advice::LinuxPageOut)
    }

    pub fn populate(&mut self) -> io::Result<()> {
        self.advise(Advice::LinuxPopulateWrite)
    }

    pub fn map_populated(&mut self) -> io::Result<()> {
        self.map(MapFlags::POPULATE)
    }

    /// Moves it behind itself, to where it lies alike within [`SPAN`].
    pub fn move_aligned(&mut self) -> io::Result<()> {
        self.move_by(self.bytes.next_multiple_of(SPAN))
    }

    /// Moves it a page further than that.
    pub fn move_off(&mut self) -> io::Result<()> {
        self.move_by(self.bytes.next_multiple_of(SPAN) + page_size())
    }

    fn move_by(&mut self, distance: usize) -> io::Result<()> {
        let to = self.base.wrapping_add(distance);
        // SAFETY: from this area's own mapping to addresses that it has reserved behind it.
        unsafe { mremap_fixed(self.base.cast(), self.bytes, self.bytes, MremapFlags::MAYMOVE, to.cast())? };
        self.left = Some(self.base);
        self.base = to;
        Ok(())
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let end = self.reserved.wrapping_add(self.reserve);
        // Where the mapping has been somebody else may have got a place meanwhile.
        let (before, after) = match self.left {
            Some(left) => (left, left.wrapping_add(self.bytes)),
            None => (end, end),
        };
        for (from, to) in [(self.reserved, before), (after, end)] {
            if from < to {
                // SAFETY: this area's own addresses, which nobody uses any more.
                let _ = unsafe { munmap(from.cast(), to.addr() - from.addr()) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_kernel::rusage;

    #[test]
    fn each_operation_does_what_it_is_called() {
        let faults = |work: &mut dyn FnMut()| {
            let before = rusage::thread().minor;
            work();
            rusage::thread().minor - before
        };
        let mut area = Area::new(64).unwrap();
        assert!(faults(&mut || area.touch().unwrap()) >= 64, "each first write");
        assert!(faults(&mut || area.touch().unwrap()) < 8);
        area.drop_pages().unwrap();
        assert!(faults(&mut || area.touch().unwrap()) >= 64, "the pages were dropped");
        area.move_off().unwrap();
        assert!(faults(&mut || area.touch().unwrap()) < 8, "the pages were moved along");
        let mut area = Area::new(64).unwrap();
        area.map_populated().unwrap();
        assert!(faults(&mut || area.touch().unwrap()) < 8, "the pages are there");
        area.unmap().unwrap();
        let mut area = Area::new(1024).unwrap();
        area.touch().unwrap();
        area.move_aligned().unwrap();
        assert!(faults(&mut || area.touch().unwrap()) < 8);
    }
}
