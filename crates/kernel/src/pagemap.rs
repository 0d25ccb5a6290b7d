//! Which pages of a region are present and which are swapped.
//!
//! Anonymous pages: `/proc/self/pagemap`, whose bits "present" (63) and "swapped" (62) every
//! process may read about itself; present means mapped by this process. Pages of files and of
//! shared memory: mincore(2), which says whether the page cache has the page, mapped or not. (The
//! kernel hides that from a process that neither owns nor may write the file; the scratch file is
//! the process's own.)
//!
//! All memory is allocated in advance: a look during a run is charged to nobody's memory limit.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::region::Region;

/// Pages looked up with one system call.
const BLOCK: usize = 1 << 15;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;

/// One look at a region: a bit for each page.
#[derive(Clone, Debug)]
pub struct Snapshot {
    present: Bits,
    swapped: Bits,
}

impl Snapshot {
    /// Room for a region of `pages` pages.
    pub fn new(pages: usize) -> Self {
        Self { present: Bits::new(pages), swapped: Bits::new(pages) }
    }

    /// Whether each page is present.
    pub fn present(&self) -> impl Iterator<Item = bool> {
        self.present.flags()
    }

    /// Whether this page is present.
    pub fn is_present(&self, page: usize) -> bool {
        self.present.words[page / 64] >> (page % 64) & 1 != 0
    }

    /// Sets this page as present.
    pub fn put_present(&mut self, page: usize) {
        self.present.put(page, true);
    }

    /// The pages that are present in `before` and absent here, ascending.
    pub fn gone_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = usize> + 'a {
        let words = before.present.words.iter().zip(&self.present.words).map(|(before, now)| before & !now);
        words.enumerate().flat_map(|(at, word)| {
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| at * 64 + bit)
        })
    }

    /// Whether each page is in swap.
    pub fn swapped(&self) -> impl Iterator<Item = bool> {
        self.swapped.flags()
    }
}

/// Looks at regions of one backing.
#[derive(Debug)]
pub struct SnapshotReader {
    source: Source,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Source {
    Pagemap(File),
    Mincore,
}

impl SnapshotReader {
    /// Reads regions of anonymous memory.
    ///
    /// # Errors
    /// When the kernel has no `/proc/self/pagemap`.
    pub fn anonymous() -> io::Result<Self> {
        Ok(Self { source: Source::Pagemap(File::open("/proc/self/pagemap")?), buffer: vec![0; BLOCK * 8] })
    }

    /// Reads regions of a file, or of shared memory, which is one of the kernel's.
    pub fn file() -> Self {
        Self { source: Source::Mincore, buffer: vec![0; BLOCK] }
    }

    /// Fills `snapshot` with the state of `region`. Allocates nothing.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn read(&mut self, region: &Region, snapshot: &mut Snapshot) -> io::Result<()> {
        snapshot.present.clear();
        snapshot.swapped.clear();
        let first = region.base() as usize / region.page_size();
        let mut page = 0;
        while page < region.pages() {
            let count = BLOCK.min(region.pages() - page);
            match &self.source {
                Source::Pagemap(file) => {
                    let entries = &mut self.buffer[..count * 8];
                    file.read_exact_at(entries, (first + page) as u64 * 8)?;
                    for (i, entry) in entries.chunks_exact(8).enumerate() {
                        let entry = u64::from_ne_bytes(entry.try_into().expect("8 bytes"));
                        snapshot.present.put(page + i, entry & PRESENT != 0);
                        snapshot.swapped.put(page + i, entry & SWAPPED != 0);
                    }
                }
                Source::Mincore => {
                    let flags = &mut self.buffer[..count];
                    // SAFETY: the range lies within the region, and `flags` has one byte for each
                    // of its pages.
                    let result = unsafe {
                        let start = region.base().add(page * region.page_size());
                        libc::mincore(start.cast(), count * region.page_size(), flags.as_mut_ptr().cast())
                    };
                    if result != 0 {
                        return Err(io::Error::last_os_error());
                    }
                    for (i, flag) in flags.iter().enumerate() {
                        snapshot.present.put(page + i, flag & 1 != 0);
                    }
                }
            }
            page += count;
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Bits {
    words: Vec<u64>,
    length: usize,
}

impl Bits {
    fn new(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(64)], length }
    }

    fn clear(&mut self) {
        self.words.fill(0);
    }

    fn put(&mut self, at: usize, flag: bool) {
        self.words[at / 64] |= u64::from(flag) << (at % 64);
    }

    fn flags(&self) -> impl Iterator<Item = bool> {
        (0..self.length).map(|at| self.words[at / 64] >> (at % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Filler;
    use crate::region::write_file;

    #[test]
    fn pages_are_present_once_written() {
        let region = Region::base_pages(200).unwrap();
        let mut reader = SnapshotReader::anonymous().unwrap();
        let mut snapshot = Snapshot::new(200);
        reader.read(&region, &mut snapshot).unwrap();
        assert!(!snapshot.present().chain(snapshot.swapped()).any(|flag| flag));
        // SAFETY: page 77 of the region.
        unsafe { region.base().add(77 * region.page_size()).write_volatile(1) };
        reader.read(&region, &mut snapshot).unwrap();
        assert!(snapshot.present().enumerate().all(|(page, flag)| flag == (page == 77)));
        region.populate(|_, _| {});
        reader.read(&region, &mut snapshot).unwrap();
        assert!(snapshot.present().all(|flag| flag));
    }

    #[test]
    fn pages_that_left_are_those_of_the_first_snapshot_alone() {
        let (mut before, mut after) = (Snapshot::new(200), Snapshot::new(200));
        [0, 63, 64, 77, 199].into_iter().for_each(|page| before.put_present(page));
        [63, 77, 150].into_iter().for_each(|page| after.put_present(page));
        assert_eq!(after.gone_since(&before).collect::<Vec<_>>(), [0, 64, 199]);
        assert!(after.is_present(77) && !after.is_present(199));
    }

    #[test]
    fn file_pages_are_present_while_the_cache_has_them() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = write_file(&folder.path().join("x"), 100, &Filler::default(), |_, _| {}).unwrap();
        let region = Region::file(&file, 100).unwrap();
        let mut reader = SnapshotReader::file();
        let mut snapshot = Snapshot::new(100);
        let mut bytes = vec![0; 100 * region.page_size()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        reader.read(&region, &mut snapshot).unwrap();
        assert!(snapshot.present().all(|flag| flag));
    }
}
