//! Finds the cached pages of files: of all files below given directories, and of the files that
//! processes have open or mapped.
//!
//! It reads no file, and opens only directories and regular files. A bounded number of threads
//! walks the directories, and takes the files of large directories in parts.

mod asker;
mod processes;
mod walk;

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use pagelab_counters::views::files::Looked;

use crate::page_frames::FrameReader;
use asker::{Asker, MAX_THREADS};
use walk::{Job, Queue};

/// The files to examine, and the figures to collect.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Directories, with everything below them, or files.
    pub directories: Vec<PathBuf>,
    /// Whether to add the files that processes have open or mapped, as far as the user may see
    /// them.
    pub of_processes: bool,
    /// Whether to read the page frames for mapped and active pages, if the caller may.
    pub frames: bool,
    /// The number of files to keep, those with the most cached pages.
    pub keep: usize,
}

/// Examines the files.
///
/// # Errors
/// When one of the directories cannot be read at all.
pub fn look(order: &Order) -> io::Result<Looked> {
    let mut jobs = Vec::new();
    for path in &order.directories {
        let metadata = std::fs::metadata(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        // One name per directory, however the caller spells it.
        let path = std::fs::canonicalize(path)?;
        jobs.push(if metadata.is_dir() { Job::Directory { path, of: None } } else { Job::File(path) });
    }
    if order.of_processes {
        jobs.extend(processes::all().into_iter().map(Job::Process));
    }
    let (queue, seen) = (Queue::new(jobs), Mutex::default());
    let frames = order.frames.then(FrameReader::open).and_then(Result::ok).map(Mutex::new);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let work = || {
        let mut asker = Asker::new(frames.as_ref(), &seen, order.of_processes, order.keep);
        queue.work(&mut asker);
        asker.finish();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::page_size;
    use pagelab_counters::views::files::Reason;
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, symlink};

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
        assert_eq!(looked.total.mapped, None, "page frames were not read");
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
