//! Walks directories with several threads, which share a stack of jobs and take the newest first.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pagelab_counters::views::files::Reason;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::asker::{Asker, FileSystem};
use super::processes;

/// Files per job.
const PART: usize = 512;

/// A unit of work.
pub enum Job {
    /// A directory, and the device and file system of its parent.
    Directory { path: PathBuf, of: Option<(u64, FileSystem)> },
    /// Some files of a directory.
    Part(Arc<Open>, Vec<CString>),
    /// One file.
    File(PathBuf),
    /// The files that a process has open or mapped.
    Process(u64),
}

/// An open directory.
#[derive(Debug)]
pub struct Open {
    directory: File,
    path: PathBuf,
    of: FileSystem,
}

/// The jobs that the threads share.
pub struct Queue {
    state: Mutex<State>,
    more: Condvar,
}

struct State {
    jobs: Vec<Job>,
    working: usize,
}

impl Queue {
    pub fn new(jobs: Vec<Job>) -> Self {
        Self { state: Mutex::new(State { jobs, working: 0 }), more: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Job) {
        self.state().jobs.push(job);
        self.more.notify_one();
    }

    /// Runs jobs until no job is queued or running.
    pub fn work(&self, asker: &mut Asker) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop() {
                state.working += 1;
                drop(state);
                self.perform(job, asker);
                state = self.state();
                state.working -= 1;
            } else if state.working == 0 {
                self.more.notify_all();
                return;
            } else {
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn perform(&self, job: Job, asker: &mut Asker) {
        match job {
            Job::Directory { path, of } => self.list(&path, of, asker),
            Job::Part(directory, names) => {
                let path = directory.path.to_string_lossy();
                for name in names {
                    let whole = || joined(&directory.path, name.to_bytes()).to_string_lossy().into_owned();
                    match open(&directory.directory, &name) {
                        Ok(file) => asker.ask(file, directory.of, &path, whole),
                        Err(error) => asker.looked.leave_out(reason(error), whole),
                    }
                }
            }
            Job::File(path) => {
                let whole = || path.to_string_lossy().into_owned();
                let above = path.parent().unwrap_or(&path).to_string_lossy();
                let opened = match std::fs::symlink_metadata(&path) {
                    Ok(found) if !found.is_file() => return asker.looked.leave_out(Reason::Special, whole),
                    _ => open(CWD, &path),
                };
                match opened {
                    Ok(file) => {
                        let of = FileSystem::of(&file);
                        asker.ask(file, of, &above, whole);
                    }
                    Err(error) => asker.looked.leave_out(reason(error), whole),
                }
            }
            Job::Process(process) => processes::ask(process, asker),
        }
    }

    /// Lists a directory and turns its entries into new jobs.
    fn list(&self, path: &Path, above: Option<(u64, FileSystem)>, asker: &mut Asker) {
        let name = || path.to_string_lossy().into_owned();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match openat(CWD, path, flags, Mode::empty()) {
            Ok(directory) => File::from(directory),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                return asker.looked.leave_out(Reason::Vanished, name);
            }
            Err(_) => return asker.looked.leave_out(Reason::UnreadableDirectory, name),
        };
        let Ok(found) = fstat(&directory) else { return asker.looked.leave_out(Reason::Vanished, name) };
        // The same directory may be given twice, or be mounted in two places.
        if !asker.is_new(found.st_dev, found.st_ino) {
            return;
        }
        let of = match above {
            Some((device, of)) if device == found.st_dev => of,
            _ => FileSystem::of(&directory),
        };
        if of == FileSystem::Pseudo {
            return asker.looked.leave_out(Reason::Pseudo, name);
        }
        let Ok(mut entries) = Dir::read_from(&directory) else {
            return asker.looked.leave_out(Reason::UnreadableDirectory, name);
        };
        let open = Arc::new(Open { directory, path: path.to_owned(), of });
        let mut names = Vec::new();
        while let Some(Ok(entry)) = entries.read() {
            let own = entry.file_name();
            if matches!(own.to_bytes(), b"." | b"..") {
                continue;
            }
            let whole = || joined(path, own.to_bytes());
            match kind(&open.directory, entry.file_type(), own) {
                FileType::Directory => {
                    self.push(Job::Directory { path: whole(), of: Some((found.st_dev, of)) })
                }
                FileType::RegularFile => {
                    names.push(own.to_owned());
                    if names.len() == PART {
                        self.push(Job::Part(Arc::clone(&open), std::mem::take(&mut names)));
                    }
                }
                other => {
                    let reason = if other == FileType::Symlink { Reason::Link } else { Reason::Special };
                    asker.looked.leave_out(reason, || whole().to_string_lossy().into_owned());
                }
            }
        }
        if !names.is_empty() {
            self.perform(Job::Part(open, names), asker);
        }
    }
}

/// The type of an entry; some file systems do not report it in a listing.
fn kind(directory: &File, listed: FileType, name: &std::ffi::CStr) -> FileType {
    if listed != FileType::Unknown {
        return listed;
    }
    let found = rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    found.map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
}

/// Opens a file without side effects: does not wait for a pipe's writer, and keeps the access time
/// if the caller may.
pub fn open(
    directory: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg + Copy,
) -> rustix::io::Result<File> {
    open_with(directory, name, OFlags::NOFOLLOW)
}

/// Like [`open`], with `flags` instead of `O_NOFOLLOW`.
pub fn open_with(
    directory: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg + Copy,
    flags: OFlags,
) -> rustix::io::Result<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match openat(&directory, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(&directory, name, flags, Mode::empty()),
        other => other,
    };
    opened.map(File::from)
}

/// Why a file could not be opened.
pub fn reason(error: Errno) -> Reason {
    match error {
        Errno::NOENT | Errno::STALE => Reason::Vanished,
        Errno::LOOP => Reason::Link,
        Errno::NXIO | Errno::NODEV => Reason::Special,
        _ => Reason::UnreadableFile,
    }
}

fn joined(path: &Path, name: &[u8]) -> PathBuf {
    path.join(OsStr::from_bytes(name))
}
