//! Which files the page cache holds: every file below some directories, and the files that
//! processes have open or mapped, each asked for its cached pages.
//!
//! No file is read and none is opened that is not a regular one. Directories are walked by a
//! bounded number of threads, which take files of large directories in parts.

mod processes;
mod walk;

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;

use pagelab_counters::views::files::{Bytes, Looked, Reason};
use rustix::fs::{FsWord, fstatfs};

use crate::page_cache::{self, Cached};
use crate::page_frames::FrameReader;
use crate::region::page_size;
use walk::{Job, Queue};

/// Threads at most.
const MAX_THREADS: usize = 8;

/// What to look at.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Everything below these directories; or files.
    pub directories: Vec<PathBuf>,
    /// The files that processes have open or mapped, as far as this user may see them.
    pub of_processes: bool,
    /// Whether page frames are looked at for mapped and active pages, where the caller may.
    pub frames: bool,
    /// Files that are kept, those with the most cached pages.
    pub keep: usize,
}

/// Looks at the files.
///
/// # Errors
/// When one of the directories cannot be read at all.
pub fn look(order: &Order) -> io::Result<Looked> {
    let mut jobs = Vec::new();
    for path in &order.directories {
        let metadata = std::fs::metadata(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        // One name for each, whatever it was called.
        let path = std::fs::canonicalize(path)?;
        jobs.push(if metadata.is_dir() { Job::Directory { path, of: None } } else { Job::File(path) });
    }
    if order.of_processes {
        jobs.extend(processes::all().into_iter().map(Job::Process));
    }
    let (queue, seen) = (Queue::new(jobs), Mutex::default());
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let work = || {
        let frames = order.frames.then(FrameReader::open).and_then(Result::ok);
        let mut asker =
            Asker { frames, seen: &seen, all_names: order.of_processes, looked: Looked::new(order.keep) };
        queue.work(&mut asker);
        asker.looked
    };
    let parts: Vec<io::Result<Looked>> = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| thread::Builder::new().spawn_scoped(scope, work)).collect();
        let panicked = || io::Error::other("a thread panicked");
        workers.into_iter().map(|worker| worker?.join().map_err(|_| panicked())).collect()
    });
    let mut whole = Looked::new(order.keep);
    for part in parts {
        whole.merge(part?);
    }
    Ok(whole)
}

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileSystem {
    /// Its files have pages in the cache.
    Cached,
    /// Its files' pages belong to files of another one, which only mincore(2) finds.
    Overlay,
    /// The kernel's own figures and settings, or huge pages set aside.
    Pseudo,
}

impl FileSystem {
    fn of(file: &File) -> Self {
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

/// Asks the kernel for files, each once.
struct Asker<'a> {
    frames: Option<FrameReader>,
    seen: &'a Mutex<HashSet<(u64, u64)>>,
    /// Whether a file with one link may be met twice.
    all_names: bool,
    looked: Looked,
}

impl Asker<'_> {
    /// Whether this is the first time that the file or directory is met.
    fn is_new(&self, device: u64, inode: u64) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert((device, inode))
    }

    /// Adds an open file.
    fn ask(&mut self, file: &File, of: FileSystem, directory: &str, name: impl Fn() -> String) {
        let Ok(metadata) = file.metadata() else {
            return self.looked.leave_out(Reason::Vanished, name);
        };
        if !metadata.is_file() {
            return self.looked.leave_out(Reason::Special, name);
        }
        let several = metadata.nlink() > 1;
        if (self.all_names || several) && !self.is_new(metadata.dev(), metadata.ino()) {
            // Of a file with one name the other one is a process's link to it.
            if several {
                self.looked.leave_out(Reason::Again, name);
            }
            return;
        }
        self.ask_new(file, metadata.len(), of, directory, name);
    }

    /// Adds a file that was not met before.
    fn ask_new(
        &mut self,
        file: &File,
        length: u64,
        of: FileSystem,
        directory: &str,
        name: impl Fn() -> String,
    ) {
        let found = match of {
            _ if length == 0 => {
                Some(Cached { pages: 0, dirty: Some(0), writeback: Some(0), recently_evicted: Some(0) })
            }
            FileSystem::Cached => page_cache::of(file, length),
            FileSystem::Overlay => page_cache::by_mincore(file, length),
            FileSystem::Pseudo => None,
        };
        let Some(found) = found else { return self.looked.leave_out(Reason::Unknown, name) };
        let bytes = self.bytes(file, length, &found);
        self.looked.add(directory, &bytes, name);
    }

    fn bytes(&mut self, file: &File, length: u64, found: &Cached) -> Bytes {
        let bytes = |pages: u64| pages * page_size() as u64;
        let (mut mapped, mut active) = (None, None);
        if found.pages == 0 {
            (mapped, active) = (Some(0), Some(0));
        } else if let Some(frames) = &mut self.frames
            && let Ok(seen) = frames.look(file, length)
        {
            mapped = Some(seen.mapped);
            active = seen.active;
        }
        Bytes {
            cached: bytes(found.pages),
            dirty: found.dirty.zip(found.writeback).map(|(dirty, writeback)| bytes(dirty + writeback)),
            mapped: mapped.map(bytes),
            active: active.map(bytes),
            evicted: found.recently_evicted.map(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_file_is_counted_once_and_the_rest_is_named() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let below = folder.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let page = page_size();
        for (name, pages) in [("one", 1), ("three", 3), ("empty", 0)] {
            File::create(below.join(name)).unwrap().write_all(&vec![7; pages * page]).unwrap();
        }
        std::fs::hard_link(below.join("three"), folder.path().join("again")).unwrap();
        symlink("one", below.join("link")).unwrap();
        std::os::unix::net::UnixListener::bind(below.join("socket")).unwrap();
        let directories = vec![folder.path().to_owned(), below.clone()];
        let mut looked = look(&Order { directories, keep: 9, ..Order::default() }).unwrap();
        assert_eq!((looked.looked_at, looked.with_pages), (3, 2));
        assert_eq!(looked.total.cached, 4 * page as u64);
        assert_eq!(looked.total.mapped, None, "nobody looked");
        let left_out: Vec<_> = looked.left_out.iter().map(|(reason, left)| (*reason, left.count)).collect();
        assert_eq!(left_out, [(Reason::Link, 1), (Reason::Special, 1), (Reason::Again, 1)]);
        let files: Vec<u64> = looked.files().iter().map(|row| row.bytes.cached / page as u64).collect();
        assert_eq!(files, [3, 1]);
        assert!(look(&Order { directories: vec![folder.path().join("none")], ..Order::default() }).is_err());
    }

    #[test]
    fn files_that_this_process_has_open_are_found() {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&vec![1; 5 * page_size()]).unwrap();
        let looked = look(&Order { of_processes: true, keep: 100_000, ..Order::default() }).unwrap();
        let name = format!("#{} (deleted)", file.metadata().unwrap().ino());
        let found = { looked }.files().iter().find(|row| row.name.ends_with(&name)).cloned();
        assert_eq!(found.unwrap().bytes.cached, 5 * page_size() as u64);
    }
}
