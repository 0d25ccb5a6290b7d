//! Every physical page, counted by what it is used for and how often it is mapped.
//!
//! One pass over /proc/kpageflags and /proc/kpagecount (root), in large reads shared among the CPUs:
//! no call for each page. The flags do not tell executables from other files, so before the pass
//! every process's executable file mappings are looked up in its pagemap (`executables.rs`).
//!
//! The machine goes on meanwhile: a page that changes its use during the pass is counted where it was
//! when its entry was read.

mod executables;
mod flags;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde::Serialize;

use crate::root::Root;
use executables::PageBits;
pub use executables::{FileNumber, executable_files};
pub use flags::Use;

/// Pages in one read of each file: 64 K pages are 512 KiB of entries and 256 MiB of memory.
const CHUNK: u64 = 64 << 10;
const ENTRY: usize = 8;

/// Upper ends of the classes of [`Census::sharing`]; the last has none.
pub const SHARING: [u64; 8] = [1, 2, 4, 8, 16, 64, 256, u64::MAX];

/// Why there is no census.
#[derive(Debug, thiserror::Error)]
pub enum CensusError {
    /// The files may not be read or do not exist.
    #[error("{path} cannot be read ({source}): the exact count needs root and CONFIG_PROC_PAGE_MONITOR")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// Pages by use, and how they are shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Census {
    /// Pages of each [`Use`], in the order of [`Use::ALL`].
    pub pages: [u64; Use::ALL.len()],
    /// File pages of any use that are dirty or being written.
    pub dirty: u64,
    /// Anonymous pages in transparent huge pages.
    pub transparent_huge: u64,
    /// Pages on the lists of evictable pages that were referenced recently (active).
    pub active: u64,
    /// Mapped pages by how often they are mapped, in the classes of [`SHARING`]: anonymous, shared
    /// memory, executables, other files.
    pub sharing: [[u64; SHARING.len()]; 4],
}

impl Census {
    /// Counts every page of the machine with as many threads as there are CPUs.
    ///
    /// # Errors
    /// When the kernel's page files cannot be read.
    pub fn take(root: &Root) -> Result<Self, CensusError> {
        let open = |name: &str| {
            let path = root.path().join("proc").join(name);
            File::open(&path)
                .map_err(|source| CensusError::Unreadable { path: path.display().to_string(), source })
        };
        let (flags, counts) = (open("kpageflags")?, open("kpagecount")?);
        let executables = executables::find(root);
        let next = AtomicU64::new(0);
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let count_some = || -> io::Result<Self> {
            let mut census = Self::default();
            let mut buffers = [vec![0; CHUNK as usize * ENTRY], vec![0; CHUNK as usize * ENTRY]];
            loop {
                let first = next.fetch_add(1, Ordering::Relaxed) * CHUNK;
                let [flag_bytes, count_bytes] = &mut buffers;
                let pages = read_entries(&flags, flag_bytes, first)?;
                if pages == 0 {
                    return Ok(census);
                }
                let counted = read_entries(&counts, count_bytes, first)?;
                for (page, bits) in entries(&flag_bytes[..pages * ENTRY]).enumerate() {
                    let mapped = if page < counted { entry(count_bytes, page) } else { 0 };
                    census.add(bits, mapped, &executables, first + page as u64);
                }
            }
        };
        let parts: Vec<io::Result<Self>> = thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads).map(|_| thread::Builder::new().spawn_scoped(scope, count_some)).collect();
            workers
                .into_iter()
                .map(|w| w?.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
                .collect()
        });
        let mut whole = Self::default();
        for part in parts {
            let path = "/proc/kpageflags".to_owned();
            whole.merge(&part.map_err(|source| CensusError::Unreadable { path, source })?);
        }
        Ok(whole)
    }

    /// The pages of one use.
    pub fn of(&self, what: Use) -> u64 {
        self.pages[what as usize]
    }

    /// Every page that exists.
    pub fn total(&self) -> u64 {
        self.pages.iter().sum()
    }

    fn add(&mut self, bits: u64, mapped: u64, executables: &PageBits, page: u64) {
        let Some(what) = Use::of(bits, || executables.contains(page)) else { return };
        self.pages[what as usize] += 1;
        let file = matches!(what, Use::Executable | Use::MappedFile | Use::UnmappedFile);
        self.dirty += u64::from(file && bits & (flags::DIRTY | flags::WRITEBACK) != 0);
        self.transparent_huge += u64::from(what == Use::Anonymous && bits & flags::THP != 0);
        self.active += u64::from(bits & (flags::LRU | flags::ACTIVE) == flags::LRU | flags::ACTIVE);
        let row = match what {
            Use::Anonymous => 0,
            Use::Shared => 1,
            Use::Executable => 2,
            Use::MappedFile => 3,
            _ => return,
        };
        if mapped > 0 {
            let class = SHARING.partition_point(|end| *end < mapped);
            self.sharing[row][class] += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        let add = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
        add(&mut self.pages, &other.pages);
        self.dirty += other.dirty;
        self.transparent_huge += other.transparent_huge;
        self.active += other.active;
        for (to, from) in self.sharing.iter_mut().zip(&other.sharing) {
            add(to, from);
        }
    }
}

/// Reads a chunk from page `first` on; how many whole entries there were, 0 at the end.
fn read_entries(file: &File, buffer: &mut [u8], first: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], first * ENTRY as u64 + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // The kernel refuses a position behind the last page with EINVAL.
            Err(e) if filled == 0 && first > 0 && e.kind() == io::ErrorKind::InvalidInput => break,
            Err(e) => return Err(e),
        }
    }
    Ok(filled / ENTRY)
}

fn entries(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<ENTRY>().0.iter().map(|chunk| u64::from_ne_bytes(*chunk))
}

fn entry(bytes: &[u8], index: usize) -> u64 {
    bytes.as_chunks::<ENTRY>().0.get(index).map_or(0, |chunk| u64::from_ne_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_five_pages() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path().join("proc");
        std::fs::create_dir(&proc).unwrap();
        let flags = [
            flags::LRU | flags::ANON | flags::MMAP | flags::SWAPBACKED | flags::ACTIVE,
            flags::LRU | flags::DIRTY,
            flags::LRU | flags::MMAP,
            flags::SLAB,
            flags::NOPAGE,
        ];
        let counts = [3_u64, 0, 100, 0, 0];
        let bytes = |words: &[u64]| words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>();
        std::fs::write(proc.join("kpageflags"), bytes(&flags)).unwrap();
        std::fs::write(proc.join("kpagecount"), bytes(&counts)).unwrap();
        let census = Census::take(&Root::new(folder.path())).unwrap();
        assert_eq!(census.total(), 4, "what is no page is not counted");
        assert_eq!(census.of(Use::Anonymous), 1);
        assert_eq!((census.of(Use::UnmappedFile), census.dirty), (1, 1));
        assert_eq!((census.of(Use::MappedFile), census.of(Use::Slab), census.active), (1, 1, 1));
        assert_eq!(census.sharing[0][2], 1, "3 mappings are in the class up to 4");
        assert_eq!(census.sharing[3][6], 1, "100 mappings are in the class up to 256");
    }

    #[test]
    fn missing_files_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = Census::take(&Root::new(folder.path())).unwrap_err().to_string();
        assert!(error.contains("needs root"), "{error}");
    }
}
