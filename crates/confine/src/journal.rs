//! The journal: what was set up, written before it is set up. A kill -9 loses nothing that was written; only steps that
//! outlast the kernel are synced as well, because a loss of power undoes all others.
//!
//! One file for each confinement, a line of JSON for each step, in the folder `PAGELAB_STATE_DIR`,
//! else `/var/lib/pagelab` for root and `$XDG_STATE_HOME/pagelab` for others. Its owner holds a lock
//! on the file, which the kernel drops however the owner ends; a file that can be locked is therefore
//! a dead owner's.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::recovery;
use super::store::{self, EXTENSION, Line, boot, folder, others_restore, perform, turn};
use super::undo::{TIMEOUT, Undo};

/// Confinements of this process so far.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Journals that this process has open; from [`CLOSED`] on, none is opened any more.
static OPEN: AtomicUsize = AtomicUsize::new(0);
const CLOSED: usize = 1 << 31;
/// How often a journal that another start removed is begun again.
const TRIES: u32 = 100;

/// Whether this process may have set up something on the machine that it has not undone yet.
pub fn anything_set_up() -> bool {
    !OPEN.load(Ordering::Acquire).is_multiple_of(CLOSED)
}

/// Sees to it that nothing more is set up, where nothing is; whether that is so.
pub fn close() -> bool {
    OPEN.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Acquire).is_ok()
        || OPEN.load(Ordering::Acquire) == CLOSED
}

/// Counts a journal as open until it is dropped.
#[derive(Debug)]
struct Counted;

impl Counted {
    fn new() -> io::Result<Self> {
        let new = Self;
        match OPEN.fetch_add(1, Ordering::AcqRel) {
            CLOSED.. => drop(new),
            _ => return Ok(new),
        }
        Err(io::Error::new(io::ErrorKind::Interrupted, "pagelab is ending"))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The steps to undo, in memory and on the disk.
#[derive(Debug)]
pub struct Journal {
    name: String,
    path: PathBuf,
    file: File,
    boot: String,
    steps: Vec<Undo>,
    /// Where the line of each step begins in the file.
    begins: Vec<u64>,
    /// Dropped last.
    _counted: Counted,
}

/// A new, locked file at `path`. It is locked under the name `begun` first, so that nobody takes it for a dead owner's;
/// whoever removes it before it is locked makes this begin again.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn create(begun: &Path, path: &Path) -> io::Result<File> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", begun.display()));
    let attempt = || -> io::Result<File> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(begun)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.set_len(0)?;
        fs::rename(begun, path)?;
        Ok(file)
    };
    let mut tries = 0;
    loop {
        match attempt() {
            Err(error)
                if [ErrorKind::NotFound, ErrorKind::WouldBlock].contains(&error.kind()) && tries < TRIES =>
            {
                tries += 1;
                std::thread::sleep(Duration::from_micros(100));
            }
            made => return made.map_err(named),
        }
    }
}

impl Journal {
    /// Begins an empty journal, when this process has removed what dead pagelabs left: a setting
    /// must not be taken for the machine's own while it is still to be put back.
    ///
    /// # Errors
    /// When the folder or the file cannot be written.
    pub fn open() -> io::Result<Self> {
        recovery::wait();
        let folder = folder()?;
        let counted = Counted::new()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pagelab-{}-{number}", std::process::id());
        let path = folder.join(format!("{name}.{EXTENSION}"));
        let file = create(&path.with_extension("new"), &path)?;
        Ok(Self { name, path, file, boot: boot(), steps: Vec::new(), begins: Vec::new(), _counted: counted })
    }

    /// A name that is unique on this machine while the process lives, for whatever is set up.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the journal.
    pub fn folder(&self) -> &Path {
        self.path.parent().expect("a file in a folder")
    }

    /// Notes a step to undo; to be called before what it undoes is done.
    ///
    /// # Errors
    /// When it cannot be brought to the disk: then do not go on.
    pub fn enter(&mut self, undo: Undo) -> io::Result<()> {
        let line = Line::new(self.boot.clone(), undo);
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        let begin = self.file.metadata()?.len();
        self.file.write_all(text.as_bytes())?;
        if !line.undo.ends_with_the_kernel() {
            // With the file ext4, XFS and btrfs bring its new name to the disk.
            self.file.sync_all()?;
        }
        self.steps.push(line.undo);
        self.begins.push(begin);
        Ok(())
    }

    /// How many steps there are to undo.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The steps from number `first` on.
    pub fn since(&self, first: usize) -> impl Iterator<Item = &Undo> {
        self.steps[first..].iter()
    }

    /// Forgets the steps from number `first` on: what they would undo was not done.
    ///
    /// # Errors
    /// When that cannot be brought to the disk.
    pub fn retract(&mut self, first: usize) -> io::Result<()> {
        if let Some(&begin) = self.begins.get(first) {
            self.file.set_len(begin)?;
            if !self.steps[first..].iter().all(Undo::ends_with_the_kernel) {
                self.file.sync_data()?;
            }
            self.steps.truncate(first);
            self.begins.truncate(first);
        }
        Ok(())
    }

    /// The swap of its own that is in use.
    pub fn swap(&self) -> Option<&Path> {
        self.steps.iter().find_map(|step| match step {
            Undo::SwapOff { path } => Some(path.as_path()),
            _ => None,
        })
    }

    /// The number of the zram device that was added.
    pub fn zram(&self) -> Option<u32> {
        self.steps.iter().rev().find_map(|step| match step {
            Undo::RemoveZram { device, .. } => Some(*device),
            _ => None,
        })
    }

    /// What other pagelabs will write back to `path` when they end: the value it had before the first.
    /// For as long as the answer matters, hold [`turn`].
    pub fn others_restore(&self, path: &Path) -> Option<String> {
        others_restore(&self.path, path)
    }

    /// Undoes the newest step and forgets it.
    ///
    /// # Errors
    /// When it cannot be undone; then it stays.
    pub fn undo_last(&mut self) -> io::Result<()> {
        let Some(step) = self.steps.last() else { return Ok(()) };
        step.perform(TIMEOUT)?;
        self.retract(self.steps.len() - 1)
    }

    /// Undoes all steps, the newest first, and removes the journal; what could not be undone is
    /// said, and kept among the leftovers.
    pub fn undo(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        self.steps.iter().for_each(Undo::end_processes);
        // Until this journal is gone, so that of two that end at once one sees that it is the last.
        let restores = self.steps.iter().any(|step| matches!(step, Undo::Restore { .. }));
        let _turn = if restores { turn(self.folder()).ok() } else { None };
        while let Some(step) = self.steps.pop() {
            if let Err(error) = perform(&step, &self.path) {
                failed.push(Line { why: Some(error.to_string()), ..Line::new(self.boot.clone(), step) });
            }
        }
        let problems = failed.iter().map(store::sentence).collect();
        if store::keep(&self.path, &failed).is_ok() {
            let _ = fs::remove_file(&self.path);
        }
        problems
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.steps.is_empty() {
            // Undone wholly, or never used; what failed to be undone left the file in place.
            if fs::metadata(&self.path).is_ok_and(|m| m.len() == 0) {
                let _ = fs::remove_file(&self.path);
            }
            return;
        }
        for problem in self.undo() {
            // Standard error may be closed or full: a panic here would end the program before it
            // has undone the rest.
            let _ = writeln!(io::stderr(), "pagelab: {problem}");
        }
    }
}
