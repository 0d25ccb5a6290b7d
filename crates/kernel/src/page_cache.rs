//! What the page cache holds of a file: cachestat(2), kernel 6.5 and later, else mincore(2).

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::region::{Region, page_size};

/// The number of the system call, the same on every architecture.
const CACHESTAT: libc::c_long = 451;

/// Pages of a range of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// In the cache.
    pub pages: u64,
    /// Evicted not long ago: reading them now is a refault. `None` from mincore.
    pub recently_evicted: Option<u64>,
}

/// That of the first `bytes` bytes; `None` when the kernel says nothing.
pub fn of(file: &File, bytes: u64) -> Option<Cached> {
    cachestat(file, bytes).or_else(|| mincore(file, bytes))
}

fn cachestat(file: &File, bytes: u64) -> Option<Cached> {
    let range = [0_u64, bytes];
    // cached, dirty, under writeback, evicted, recently evicted
    let mut found = [0_u64; 5];
    // SAFETY: the range has two words and the answer five, as the kernel defines them.
    let result = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), found.as_mut_ptr(), 0) };
    (result == 0).then_some(Cached { pages: found[0], recently_evicted: Some(found[4]) })
}

fn mincore(file: &File, bytes: u64) -> Option<Cached> {
    let pages = bytes as usize / page_size();
    let region = Region::part(file, 0, pages).ok()?;
    let mut present = vec![0_u8; pages];
    // SAFETY: the range is the mapping, the vector has a byte for each page of it.
    let result = unsafe { libc::mincore(region.base().cast(), pages * page_size(), present.as_mut_ptr()) };
    (result == 0).then(|| Cached {
        pages: present.iter().filter(|&&p| p & 1 != 0).count() as u64,
        recently_evicted: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn both_interfaces_see_written_pages() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes = 8 * page_size();
        file.write_all(&vec![1; bytes]).unwrap();
        assert_eq!(mincore(&file, bytes as u64).unwrap().pages, 8);
        if let Some(found) = cachestat(&file, bytes as u64) {
            assert_eq!(found.pages, 8);
        }
    }
}
