//! Pages of a file in the page cache, from cachestat(2) (Linux 6.5) or else mincore(2).
//!
//! Both hide the pages of a file that the caller neither owns nor may write. mincore(2) then
//! reports every page as present (since 5.2), so this module uses it only for files whose pages it
//! shows.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use crate::files::is_capable;
use crate::region::{Region, page_size};

/// The number of the system call, the same on every architecture.
const CACHESTAT: libc::c_long = 451;

/// Maximum number of bytes mapped at a time.
pub(crate) const WINDOW: u64 = 256 << 20;

/// Pages of a range of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// In the cache.
    pub pages: u64,
    /// Of these, dirty. `None` from mincore.
    pub dirty: Option<u64>,
    /// Of these, under writeback. `None` from mincore.
    pub writeback: Option<u64>,
    /// Evicted not long ago: reading them now is a refault. `None` from mincore.
    pub recently_evicted: Option<u64>,
}

/// That of the first `bytes` bytes; `None` when the kernel says nothing.
pub fn of(file: &File, bytes: u64) -> Option<Cached> {
    match cachestat(file, 0, bytes) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        Err(_) => by_mincore(file, bytes),
    }
}

/// The number of cached pages in `bytes` bytes from `offset`; 0 bytes means up to the end of the
/// file.
///
/// # Errors
/// When the kernel has no cachestat(2), or hides the file's pages from the caller.
pub fn in_range(file: &File, offset: u64, bytes: u64) -> io::Result<u64> {
    cachestat(file, offset, bytes).map(|found| found.pages)
}

fn cachestat(file: &File, offset: u64, bytes: u64) -> io::Result<Cached> {
    let range = [offset, bytes];
    // cached, dirty, under writeback, evicted, recently evicted
    let mut found = [0_u64; 5];
    // SAFETY: the range has two words and the answer five, as the kernel defines them.
    let result = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), found.as_mut_ptr(), 0) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let [pages, dirty, writeback, _, recently_evicted] = found;
    let [dirty, writeback, recently_evicted] = [dirty, writeback, recently_evicted].map(Some);
    Ok(Cached { pages, dirty, writeback, recently_evicted })
}

/// Like [`of`], from mincore(2) alone, which also sees the file below an overlay.
pub fn by_mincore(file: &File, bytes: u64) -> Option<Cached> {
    if !shows_pages(file) {
        return None;
    }
    let mut pages = 0;
    let mut from = 0;
    while from < bytes {
        let here = (bytes - from).min(WINDOW);
        let region = Region::part_to_end(file, from, here).ok()?;
        pages += resident(&region)?.iter().filter(|&&page| page & 1 != 0).count() as u64;
        from += here;
    }
    Some(Cached { pages, ..Cached::default() })
}

/// One byte per page of a file mapping; its lowest bit is set if the page is cached.
pub(crate) fn resident(region: &Region) -> Option<Vec<u8>> {
    let mut present = vec![0_u8; region.pages()];
    let bytes = region.pages() * page_size();
    // SAFETY: the range is the mapping, the vector has a byte for each page of it.
    let result = unsafe { libc::mincore(region.base().cast(), bytes, present.as_mut_ptr()) };
    (result == 0).then_some(present)
}

/// Whether mincore(2) shows the file's pages to the caller (`can_do_mincore` of mm/mincore.c).
fn shows_pages(file: &File) -> bool {
    /// linux/capability.h
    const CAP_FOWNER: u32 = 3;
    let own = file.metadata().is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
    let writable = || {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
    };
    own || is_capable(CAP_FOWNER) || writable()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn both_interfaces_see_written_pages() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes = 8 * page_size() + 1;
        file.write_all(&vec![1; bytes]).unwrap();
        assert_eq!(by_mincore(&file, bytes as u64).unwrap().pages, 9, "including the last, partial page");
        assert_eq!(by_mincore(&file, 0).unwrap().pages, 0);
        if let Ok(found) = cachestat(&file, 0, bytes as u64) {
            assert_eq!(found.pages, 9);
            assert_eq!(in_range(&file, 0, 0).unwrap(), 9, "all of it");
            assert_eq!(in_range(&file, 7 * page_size() as u64, 0).unwrap(), 2);
        }
    }
}
