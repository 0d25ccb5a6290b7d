//! The files in the folder of the journals: their names, their lines, and which of them may be
//! followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pagelab_kernel::files;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::folder::own_folder;
use super::undo::{TIMEOUT, Undo};
use super::warnings;

/// What ends a journal's name.
pub(crate) const EXTENSION: &str = "journal";

/// A line of a journal.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The kernel's boot id at the time.
    pub boot: String,
    /// Why it could not be done, where it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(flatten)]
    pub undo: Undo,
}

impl Line {
    /// A step of the running kernel's that was not tried yet.
    pub fn new(boot: String, undo: Undo) -> Self {
        Self { boot, why: None, undo }
    }
}

/// Waits until no other pagelab is putting a file of the kernel back, or looking who does; until the
/// lock is dropped, none will.
///
/// # Errors
/// When the lock cannot be had.
pub fn turn(folder: &Path) -> io::Result<File> {
    let file = File::create(folder.join("restore.lock"))?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Does a step of the journal `own`; a file that another pagelab still needs as it is, is left to that
/// one, which has noted the same.
pub(crate) fn perform(step: &Undo, own: &Path) -> io::Result<bool> {
    match step {
        Undo::Restore { path, .. } if others_restore(own, path).is_some() => Ok(false),
        step => step.perform(TIMEOUT),
    }
}

/// What a living owner's journal other than `own` will write back to `path`.
pub(crate) fn others_restore(own: &Path, path: &Path) -> Option<String> {
    let folder = own.parent()?;
    let journals = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let others = journals.filter(|file| file != own && file.extension().is_some_and(|e| e == EXTENSION));
    others.filter(|file| lock_of_the_dead(file).is_none()).find_map(|file| {
        let lines = steps(&files::text(file).ok()?);
        lines.into_iter().find_map(|line| match line.undo {
            Undo::Restore { path: noted, value } if noted == path => Some(value),
            _ => None,
        })
    })
}

/// The lock of a journal whose owner is dead; None while it lives.
pub(crate) fn lock_of_the_dead(journal: &Path) -> Option<File> {
    // Neither a link nor a FIFO is a journal.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(journal).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// The steps of a journal's text. A line that is torn was not yet on the disk when its owner died, so
/// what it announces was never done.
pub(crate) fn steps(text: &str) -> Vec<Line> {
    text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

pub(crate) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

pub(crate) fn folder() -> io::Result<PathBuf> {
    let folder = if let Some(folder) = std::env::var_os("PAGELAB_STATE_DIR") {
        PathBuf::from(folder)
    } else if rustix::process::geteuid().is_root() {
        PathBuf::from("/var/lib/pagelab")
    } else if let Some(folder) = std::env::var_os("XDG_STATE_HOME") {
        Path::new(&folder).join("pagelab")
    } else {
        let home = std::env::var_os("HOME")
            .ok_or_else(|| io::Error::other("neither PAGELAB_STATE_DIR nor HOME is set"))?;
        Path::new(&home).join(".local/state/pagelab")
    };
    own_folder(&folder, "PAGELAB_STATE_DIR")?;
    Ok(folder)
}

/// What ends the name of a file of leftovers.
pub(crate) const LEFTOVER: &str = "leftover";

/// What ends the name of a journal that is not followed; nothing reads it again.
pub(crate) const REFUSED: &str = "refused";

/// What is said, once, of a step that failed.
pub(crate) fn sentence(line: &Line) -> String {
    format!(
        "{}: {}: {}; undo it with: {} (pagelab doctor --leftovers lists it until then)",
        warnings::NOT_UNDONE.0,
        line.undo.words(),
        line.why.as_deref().unwrap_or_default(),
        line.undo.command()
    )
}

/// Keeps the `failed` steps of the journal at `journal`.
pub(crate) fn keep(journal: &Path, failed: &[Line]) -> io::Result<()> {
    if failed.is_empty() { Ok(()) } else { write(&journal.with_extension(LEFTOVER), failed) }
}

/// Makes `lines` all that the file holds; without lines it is removed.
pub(crate) fn write(path: &Path, lines: &[Line]) -> io::Result<()> {
    if lines.is_empty() {
        return match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        };
    }
    let mut text = String::new();
    for line in lines {
        text += &serde_json::to_string(line)?;
        text.push('\n');
    }
    if files::text(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let new = path.with_extension(format!("{LEFTOVER}-{}", std::process::id()));
    let mut file: File = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_data())?;
    fs::rename(&new, path)
}

/// The most bytes of a journal: a confinement has some ten lines.
const MAX_JOURNAL_BYTES: u64 = 1 << 20;

/// Whether it is a file of this user's that nobody else can write, of a journal's size.
pub(crate) fn is_own(path: &Path) -> bool {
    let closed = |path: &Path| fs::metadata(path).is_ok_and(|found| found.mode() & 0o011 == 0);
    fs::symlink_metadata(path).is_ok_and(|found| {
        let alone = found.mode() & 0o022 == 0 || path.parent().is_some_and(closed);
        let own = found.uid() == rustix::process::geteuid().as_raw();
        found.is_file() && own && alone && found.len() <= MAX_JOURNAL_BYTES
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_torn_line_ends_the_journal() {
        let line = r#"{"boot":"b","undo":"remove-file","path":"/x"}"#;
        assert_eq!(steps(&format!("{line}\n{line}\n{}", &line[..20])).len(), 2);
        assert_eq!(steps(line)[0].undo, Undo::RemoveFile { path: "/x".into() });
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text: String) {
            let _ = steps(&text);
        }
    }
}
