//! Files of the kernel that hold another value for the time of a run.
//!
//! One pagelab at a time: two that each save and restore the same file would leave it with a value
//! that neither found.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use pagelab_experiment::{Failure, Setting};
use rustix::fs::{FlockOperation, flock};

use super::failed;
use super::journal::Journal;
use super::undo::Undo;

/// The mode of transparent huge pages.
pub const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// The machine's inclination to swap.
pub const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

/// Writes what `setting` asks for, after saving what was there. The swappiness is left out when the
/// cgroup has its own.
pub fn apply(setting: &Setting, own_swappiness: bool, journal: &mut Journal) -> Result<(), Failure> {
    let thp = setting.thp.map(|mode| (PathBuf::from(THP), mode.to_string()));
    let swappiness = setting.swappiness.filter(|_| !own_swappiness);
    let swappiness = swappiness.map(|value| (PathBuf::from(SWAPPINESS), value.to_string()));
    let others = setting.set.iter().map(|file| (PathBuf::from(&file.path), file.value.clone()));
    for (path, value) in thp.into_iter().chain(swappiness).chain(others) {
        let before = read(&path)?;
        if before == value {
            continue;
        }
        lock(journal)?;
        journal
            .enter(Undo::Restore { path: path.clone(), value: before })
            .map_err(|e| failed("the journal of the set-up cannot be written", &e))?;
        fs::write(&path, &value).map_err(|e| {
            Failure::unsupported(
                format!("{} cannot be set to '{value}': {e}", path.display()),
                "run as root, with a value that this kernel knows",
            )
        })?;
    }
    Ok(())
}

/// What to write to get the present state back: of a list with the choice in brackets, the choice.
pub fn read(path: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(path).map_err(|e| {
        Failure::unsupported(
            format!("{} cannot be read: {e}", path.display()),
            "leave this setting out on this kernel",
        )
    })?;
    let text = text.trim();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Ok(chosen.map_or(text, |(word, _)| word).to_owned())
}

/// Takes the lock that whoever changes settings holds until its process ends.
fn lock(journal: &Journal) -> Result<(), Failure> {
    static HELD: std::sync::Mutex<Option<File>> = std::sync::Mutex::new(None);
    let mut held = HELD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if held.is_some() {
        return Ok(());
    }
    let path = journal.folder().join("settings.lock");
    let file =
        File::create(&path).map_err(|e| failed(&format!("{} cannot be written", path.display()), &e))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Failure::refused("another pagelab is changing the kernel's settings", "wait until it has ended")
    })?;
    *held = Some(file);
    Ok(())
}
