//! Recovery: what killed pagelabs left is undone from their journals.
//!
//! A journal that others could have written is not followed, nor a line of one that names what pagelab never
//! sets up. It goes on in a thread, so that a slow undoing holds up only what needs the machine as it was:
//! [`wait`] is for that.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::leftovers;
use super::locks;
use super::store::{
    EXTENSION, LEFTOVER, Line, REFUSED, boot, folder, is_own, keep, lock_of_the_dead, perform, sentence,
    steps, turn,
};
use super::undo::Undo;
use pagelab_kernel::files;

/// How long recovery may hold up the command that it comes before.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Between two samples whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Whether this process is at it.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);

/// A recovery that has begun.
#[derive(Debug)]
pub struct Recovery {
    said: Receiver<String>,
    /// Of what could not be removed before and is tried once more, for which nobody waits.
    later: Receiver<String>,
}

/// Says that it has ended, however it ends.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        UNDER_WAY.store(false, Ordering::Release);
    }
}

impl Recovery {
    /// Begins to remove what dead pagelabs left.
    pub fn begin() -> Self {
        let ((say, said), (say_later, later)) = (mpsc::channel(), mpsc::channel());
        if anything_left() {
            UNDER_WAY.store(true, Ordering::Release);
            let (ended, other) = (Ended, say.clone());
            let started = thread::Builder::new().name("recovery".into()).spawn(move || {
                remove_all(&say);
                drop((say, ended));
                leftovers::try_again(&|sentence| drop(say_later.send(sentence)));
            });
            if let Err(error) = started {
                let _ = other.send(format!("cannot search for leftovers of a killed run: {error}"));
            }
        }
        Self { said, later }
    }

    /// What was removed, and what could not be, a sentence each: all of it, or where that takes
    /// longer than a second what is known until then.
    pub fn first(&self) -> Vec<String> {
        let deadline = Instant::now() + TIMEOUT;
        let mut said = Vec::new();
        loop {
            match self.said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(sentence) => said.push(sentence),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    said.push("still removing leftovers of a killed run".to_owned());
                    break;
                }
            }
        }
        said
    }

    /// What was said since.
    pub fn rest(&self) -> Vec<String> {
        self.said.try_iter().chain(self.later.try_iter()).collect()
    }
}

/// Whether this process is still removing what dead pagelabs left.
pub fn under_way() -> bool {
    UNDER_WAY.load(Ordering::Acquire)
}

/// Waits until this process has removed what dead pagelabs left.
pub fn wait() {
    while under_way() {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Whether there is a journal at all.
fn anything_left() -> bool {
    let entries = folder().and_then(fs::read_dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| path.extension().is_some_and(|e| e == EXTENSION || e == "new" || e == LEFTOVER))
}

fn remove_all(say: &Sender<String>) {
    let Ok(folder) = folder() else { return };
    let Ok(found) = fs::read_dir(&folder) else { return };
    for entry in found.flatten() {
        let path = entry.path();
        match path.extension().and_then(|e| e.to_str()) {
            Some(EXTENSION) => {
                if lock_of_the_dead(&path).is_none() {
                    continue;
                }
                // Another start may be at it: whoever has the turn first does it.
                let _turn = turn(&folder);
                if let Some(_lock) = lock_of_the_dead(&path) {
                    recover_from(&path, Undo::check, say);
                }
            }
            Some("new") => remove_begun(&path),
            _ => {}
        }
    }
}

/// Removes a journal whose owner died between making and renaming it. A living owner that has not locked it yet makes
/// another ([`super::journal::create`]).
fn remove_begun(path: &Path) {
    if let Some(_lock) = lock_of_the_dead(path) {
        let _ = fs::remove_file(path);
    }
}

/// Undoes what the journal at `path` says and `check` finds to be pagelab's.
fn recover_from(path: &Path, check: fn(&Undo) -> Result<(), &'static str>, say: &Sender<String>) {
    // Nobody listens any more when the command has ended.
    let say = |sentence: String| drop(say.send(sentence));
    let refused = path.with_extension(REFUSED);
    let kept = format!("kept as {}, ignored from now on", refused.display());
    if !is_own(path) {
        let _ = fs::rename(path, &refused);
        say(format!("not undone, because another user could have written it: {} ({kept})", path.display()));
        return;
    }
    let Ok(text) = files::text(path) else { return };
    let now = boot();
    let (mut own, mut foreign): (Vec<Line>, Vec<String>) = (Vec::new(), Vec::new());
    for line in steps(&text) {
        if line.boot != now && line.undo.ends_with_the_kernel() {
            continue;
        }
        match check(&line.undo) {
            Ok(()) => own.push(line),
            Err(why) => foreign.push(format!(
                "left alone, although a journal names it ({kept}): {}: {why}",
                line.undo.words()
            )),
        }
    }
    own.iter().for_each(|line| line.undo.end_processes());
    let settings = own.iter().any(|line| line.undo.restores_setting());
    let Some(_lock) = (if settings { locks::lock_settings() } else { Some(None) }) else {
        say("another run has changed kernel settings; the next start after it ends restores those of a \
            killed run"
            .into());
        return;
    };
    let mut failed = Vec::new();
    for line in own.into_iter().rev() {
        match perform(&line.undo, path) {
            Ok(true) => say(format!("removed leftovers of a killed run: {}", line.undo.words())),
            Ok(false) => {}
            Err(error) => failed.push(Line { why: Some(error.to_string()), ..line }),
        }
    }
    failed.iter().map(sentence).for_each(say);
    let kept = keep(path, &failed).is_ok();
    if !foreign.is_empty() {
        let _ = fs::rename(path, &refused);
        foreign.into_iter().for_each(say);
    } else if kept {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::create;
    use super::super::store::others_restore;
    use super::*;
    use rustix::fs::{FlockOperation, flock};
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    /// The tests' own places are not where pagelab sets things up.
    fn any(_: &Undo) -> Result<(), &'static str> {
        Ok(())
    }

    fn said(path: &Path, check: fn(&Undo) -> Result<(), &'static str>) -> Vec<String> {
        let (say, said) = mpsc::channel();
        recover_from(path, check, &say);
        said.try_iter().collect()
    }

    #[test]
    fn a_journal_that_was_only_begun_is_removed_once_its_owner_is_dead() {
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("pagelab-1-0.new");
        let file = File::create(&begun).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove_begun(&begun);
        assert!(begun.exists(), "its owner lives");
        drop(file);
        remove_begun(&begun);
        assert!(!begun.exists());
    }

    #[test]
    fn journals_can_be_begun_while_another_start_looks_for_dead_ones() {
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("pagelab-1-0.new");
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    remove_begun(&begun);
                }
            });
            for number in 0..2_000 {
                let path = folder.path().join(format!("pagelab-1-{number}.journal"));
                let journal = create(&begun, &path);
                let made = journal.is_ok() && lock_of_the_dead(&path).is_none() && path.exists();
                if !made {
                    over.store(true, Ordering::Release);
                }
                assert!(made, "{number}: {journal:?}");
            }
            over.store(true, Ordering::Release);
        });
    }

    #[test]
    fn journal_of_foreign_objects_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (precious, own) = (folder.path().join("precious"), folder.path().join("pagelab-1-0.data"));
        let journal = folder.path().join("a.journal");
        let line = |path: &PathBuf| {
            let undo = Undo::RemoveFile { path: path.clone() };
            serde_json::to_string(&Line::new(boot(), undo)).unwrap() + "\n"
        };
        let write = |text: &str| {
            fs::write(&precious, "x").unwrap();
            fs::write(&own, "x").unwrap();
            fs::write(&journal, text).unwrap();
        };
        write(&(line(&precious) + &line(&own)));
        let told = said(&journal, Undo::check);
        assert!(precious.exists() && !own.exists(), "{told:?}");
        assert!(told.iter().any(|s| s.contains("left alone") && s.contains("precious")), "{told:?}");
        assert!(!journal.exists() && folder.path().join("a.refused").exists(), "told once");

        // Under a umask of 002, older pagelabs made journals that a group may write, in a folder
        // that nobody else may enter.
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        write(&line(&own));
        mode(&journal, 0o664);
        mode(folder.path(), 0o700);
        assert_eq!(said(&journal, Undo::check).len(), 1);
        assert!(!own.exists() && !journal.exists());

        write(&line(&own));
        mode(&journal, 0o664);
        mode(folder.path(), 0o755);
        let told = said(&journal, Undo::check);
        assert!(own.exists() && told[0].contains("another user could have written it"), "{told:?}");
        let link = folder.path().join("b.journal");
        write(&line(&own));
        std::os::unix::fs::symlink(&journal, &link).unwrap();
        assert!(lock_of_the_dead(&link).is_none());
        assert_eq!(said(&link, Undo::check).len(), 1);
        assert!(own.exists());
    }

    #[test]
    fn files_of_a_dead_owner_are_removed_even_after_a_reboot() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::write(&data, "x").unwrap();
        let kept = folder.path().join("kept");
        fs::write(&kept, "x").unwrap();
        let journal = folder.path().join("a.journal");
        let line = |undo: Undo| serde_json::to_string(&Line::new("before".into(), undo)).unwrap();
        let lines = [
            line(Undo::RemoveFile { path: data.clone() }),
            line(Undo::Restore { path: kept.clone(), value: "y".into() }),
        ];
        fs::write(&journal, lines.join("\n")).unwrap();
        let told = said(&journal, any);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(!data.exists() && !journal.exists());
        assert_eq!(fs::read_to_string(kept).unwrap(), "x", "a setting of an earlier boot is left alone");
    }

    #[test]
    fn a_file_is_put_back_by_the_last_that_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let setting = folder.path().join("setting");
        fs::write(&setting, "1").unwrap();
        let journal = |name: &str| {
            let undo = Undo::Restore { path: setting.clone(), value: "0".into() };
            let path = folder.path().join(name);
            let text = serde_json::to_string(&Line::new(boot(), undo)).unwrap() + "\n";
            fs::write(&path, text).unwrap();
            path
        };
        let (dead, living) = (journal("dead.journal"), journal("living.journal"));
        let owner = File::open(&living).unwrap();
        flock(&owner, FlockOperation::LockExclusive).unwrap();
        assert_eq!(said(&dead, any), Vec::<String>::new());
        assert!(!dead.exists() && fs::read_to_string(&setting).unwrap() == "1", "another needs it");
        assert_eq!(others_restore(&dead, &setting).as_deref(), Some("0"));
        drop(owner);
        assert_eq!(others_restore(&dead, &setting), None);
        assert_eq!(said(&living, any).len(), 1);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "0");
    }
}
