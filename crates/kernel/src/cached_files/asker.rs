//! Queries the kernel for the cached pages of open files, once per file.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

use pagelab_counters::views::files::{Bytes, Looked, Reason};
use rustix::fs::{FsWord, fstatfs};

use crate::page_cache::{self, Cached};
use crate::page_frames::FrameReader;
use crate::region::page_size;

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Its files have pages in the cache.
    Cached,
    /// An overlay: its files' pages belong to files of another file system. Only mincore(2) finds
    /// them; cachestat(2) reports none.
    Overlay,
    /// Statistics and settings of the kernel, or reserved huge pages.
    Pseudo,
}

impl FileSystem {
    pub fn of(file: &File) -> Self {
        let Ok(found) = fstatfs(file) else { return Self::Cached };
        match found.f_type {
            OVERLAY => Self::Overlay,
            kind if PSEUDO.contains(&kind) => Self::Pseudo,
            _ => Self::Cached,
        }
    }
}

/// include/uapi/linux/magic.h.
const OVERLAY: FsWord = 0x794c_7630;
/// proc, sysfs, cgroup, cgroup2, tracefs, debugfs, securityfs, bpf, pstore, configfs, devpts, mqueue,
/// binfmt_misc, autofs, efivarfs, selinuxfs, hugetlbfs, nsfs, rpc_pipefs, nfsd, fusectl.
const PSEUDO: [FsWord; 21] = [
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x7472_6163,
    0x6462_6720,
    0x7363_6673,
    0xcafe_4a11,
    0x6165_676c,
    0x6265_6570,
    0x1cd1,
    0x1980_0202,
    0x4249_4e4d,
    0x0187,
    0xde5e_81e4,
    0xf97c_ff8c,
    0x9584_58f6,
    0x6e73_6673,
    0x6759_6969,
    0x6e66_7364,
    0x6573_5543,
];

/// Maximum number of threads.
pub const MAX_THREADS: usize = 8;
/// Maximum number of open files that wait: with all threads, half of the usual limit of 1,024.
const MAX_WAITING: usize = 512 / MAX_THREADS;

/// Queries the kernel for the cached pages of files, once per file.
pub struct Asker<'a> {
    /// All threads share one reader: threads that map files contend for the lock of the address
    /// space.
    pub frames: Option<&'a Mutex<FrameReader>>,
    pub seen: &'a Mutex<HashSet<(u64, u64)>>,
    /// Whether a file with one link may be found twice.
    pub all_names: bool,
    pub looked: Looked,
    /// The files whose frames are read next, all at once.
    waiting: Vec<Waiting>,
}

struct Waiting {
    file: File,
    length: u64,
    /// Cached pages according to cachestat(2).
    cached: Option<u64>,
    directory: String,
    name: String,
    bytes: Bytes,
}

impl<'a> Asker<'a> {
    pub fn new(
        frames: Option<&'a Mutex<FrameReader>>,
        seen: &'a Mutex<HashSet<(u64, u64)>>,
        all_names: bool,
        keep: usize,
    ) -> Self {
        Self { frames, seen, all_names, looked: Looked::new(keep), waiting: Vec::new() }
    }

    /// Records a file or directory, and returns whether it is new.
    pub fn is_new(&self, device: u64, inode: u64) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert((device, inode))
    }

    /// Adds an open file, unless it was found before.
    pub fn ask(&mut self, file: File, of: FileSystem, directory: &str, name: impl Fn() -> String) {
        let Ok(metadata) = file.metadata() else {
            return self.looked.leave_out(Reason::Vanished, name);
        };
        if !metadata.is_file() {
            return self.looked.leave_out(Reason::Special, name);
        }
        let several = metadata.nlink() > 1;
        if (self.all_names || several) && !self.is_new(metadata.dev(), metadata.ino()) {
            // A file with one name was found before through a process's link to it.
            if several {
                self.looked.leave_out(Reason::Again, name);
            }
            return;
        }
        self.ask_new(file, metadata.len(), of, directory, name);
    }

    /// Adds a file that was not found before.
    pub fn ask_new(
        &mut self,
        file: File,
        length: u64,
        of: FileSystem,
        directory: &str,
        name: impl Fn() -> String,
    ) {
        let found = match of {
            _ if length == 0 => {
                Some(Cached { pages: 0, dirty: Some(0), writeback: Some(0), recently_evicted: Some(0) })
            }
            FileSystem::Cached => page_cache::of(&file, length),
            FileSystem::Overlay => page_cache::by_mincore(&file, length),
            FileSystem::Pseudo => None,
        };
        let Some(found) = found else { return self.looked.leave_out(Reason::Unknown, name) };
        let bytes = bytes(&found);
        if self.frames.is_none() || of != FileSystem::Cached || found.pages == 0 {
            return self.looked.add(directory, &bytes, name);
        }
        let cached = found.dirty.map(|_| found.pages);
        let directory = directory.to_owned();
        self.waiting.push(Waiting { file, length, cached, directory, name: name(), bytes });
        if self.waiting.len() == MAX_WAITING {
            self.finish();
        }
    }

    /// Reads the frames of the waiting files, and adds the files.
    pub fn finish(&mut self) {
        let Some(frames) = self.frames else { return };
        let mut frames = frames.lock().unwrap_or_else(PoisonError::into_inner);
        let add = |file: &Waiting| frames.add(&file.file, file.length, file.cached).is_ok();
        let is_mapped: Vec<bool> = self.waiting.iter().map(add).collect();
        let mut found = frames.take().unwrap_or_default().into_iter();
        drop(frames);
        for (Waiting { directory, name, mut bytes, .. }, is_mapped) in self.waiting.drain(..).zip(is_mapped) {
            if let Some(found) = is_mapped.then(|| found.next()).flatten() {
                bytes.mapped = Some(in_bytes(found.mapped));
                bytes.active = found.active.map(in_bytes);
            }
            self.looked.add(&directory, &bytes, || name);
        }
    }
}

/// The bytes of a file whose frames were not read.
fn bytes(found: &Cached) -> Bytes {
    let none = (found.pages == 0).then_some(0);
    Bytes {
        cached: in_bytes(found.pages),
        dirty: found.dirty.zip(found.writeback).map(|(dirty, writeback)| in_bytes(dirty + writeback)),
        mapped: none,
        active: none,
        evicted: found.recently_evicted.map(in_bytes),
    }
}

fn in_bytes(pages: u64) -> u64 {
    pages * page_size() as u64
}
