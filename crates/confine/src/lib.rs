//! The confinement of a load: a memory cgroup with a limit, swap of its own, kernel settings.
//!
//! Limits first, then load: everything is in force when [`Confinement::set_up`] returns, or nothing is.
//! Each thing is written to a journal before it is set up and undone in reverse order: by
//! [`Confinement::undo`], when dropped (an error, a panic), or from the journal by the next start of
//! pagelab ([`Recovery`]) after a kill -9 or a power failure.

mod accounting;
pub mod cgroup;
pub mod folder;
pub mod guard;
mod journal;
pub mod leftovers;
mod locks;
pub mod marked;
mod others;
mod problem;
pub mod recovery;
mod set_up;
pub mod settings;
mod store;
pub mod swap;
mod turns;
mod undo;
mod warnings;
pub mod zram;

use std::path::{Path, PathBuf};

use pagelab_kernel::files::number;

pub use self::accounting::Accounting;
pub use self::journal::{anything_set_up, close};
pub use self::problem::Problem;
pub use self::recovery::Recovery;
pub use self::set_up::{OwnSwap, SetUp, SwapSource, zswap_is_on};
pub use self::turns::Turn;
pub use self::warnings::ALL as WARNINGS;

use self::cgroup::{Cgroup, Limits};
use self::folder::scratch_folder;
use self::guard::Room;
use self::journal::Journal;
use self::undo::Undo;

/// What is in force around a load. Undone when dropped.
#[derive(Debug)]
pub struct Confinement {
    journal: Journal,
    scratch: Option<PathBuf>,
    cgroup: Option<Cgroup>,
    limit: Option<u64>,
    settings: settings::Applied,
    notes: Vec<String>,
}

impl Confinement {
    /// Makes everything of `set_up`.
    ///
    /// All of it is in force when this returns: what a plan found possible and is not any more is
    /// an error.
    ///
    /// `available`: the bytes of memory that the load may take half of; `None`: unknown.
    ///
    /// # Errors
    /// Why not. Nothing is left of a failed set-up.
    pub fn set_up(set_up: &SetUp, available: Option<u64>) -> Result<Self, Problem> {
        let mut new = Self {
            journal: Journal::open().map_err(problem::not_noted)?,
            scratch: None,
            cgroup: None,
            limit: None,
            settings: settings::Applied::default(),
            notes: Vec::new(),
        };
        let run = new.journal.name().to_owned();
        new.journal.enter(Undo::EndProcesses { run }).map_err(problem::not_noted)?;
        if let Some(limit) = set_up.limit {
            let swap = set_up.swap.as_ref().map_or(0, |swap| swap.bytes);
            let limits = Limits { memory: limit, swap, no_swap: set_up.no_swap };
            let cgroup = Cgroup::make(&limits, set_up.cgroup_swappiness, &mut new.journal)?;
            new.limit = Some(limit);
            new.notes.extend(cgroup.notes.iter().cloned());
            new.cgroup = Some(cgroup);
        }
        guard::memory(set_up.memory(zswap_is_on()), new.limit.is_some(), available)?;
        new.settings = settings::apply(&set_up.settings, &mut new.journal)?;
        new.notes.append(&mut new.settings.notes);
        settings::save(&set_up.saved, &mut new.journal)?;
        if let Some(swap) = &set_up.swap {
            new.add_swap(swap)?;
            new.notes.extend(others::warning());
        }
        if set_up.scratch > 0 {
            new.add_scratch(set_up.scratch)?;
        }
        Ok(new)
    }

    fn add_swap(&mut self, swap: &OwnSwap) -> Result<(), Problem> {
        match &swap.source {
            _ if !swap::permitted() => {
                Err(swap::unavailable("swap of its own needs the capability CAP_SYS_ADMIN (run as root)"))
            }
            SwapSource::Device(device) => swap::device(device, swap.bytes, &mut self.journal),
            SwapSource::File => {
                let folder = with_room(swap.bytes, "the swap file")?;
                swap::file(&folder, swap.bytes, &mut self.journal)
            }
            SwapSource::Zram => zram::add(swap.bytes, &mut self.journal),
        }
    }

    fn add_scratch(&mut self, bytes: u64) -> Result<(), Problem> {
        let path = with_room(bytes, "scratch files")?.join(format!("{}.data", self.journal.name()));
        self.journal.enter(Undo::RemoveFile { path: path.clone() }).map_err(problem::not_noted)?;
        self.scratch = Some(path);
        Ok(())
    }

    /// The run's name: its processes have it in their environment.
    pub fn name(&self) -> &str {
        self.journal.name()
    }

    /// Marks what `command` starts, and what that starts, as the run's: it ends with the confinement.
    pub fn mark(&self, command: &mut std::process::Command) {
        command.env(marked::VARIABLE, self.name());
    }

    /// The file for an experiment on files, not yet made.
    pub fn scratch(&self) -> Option<&Path> {
        self.scratch.as_deref()
    }

    /// The cgroup with the limit.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// The number of the run's own zram device.
    pub fn zram(&self) -> Option<u32> {
        self.journal.zram()
    }

    /// What could not be bounded, and what settings hold that were written otherwise, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The limit, where the OOM killer has killed a process inside it.
    pub fn out_of_memory(&self) -> Option<u64> {
        self.limit.filter(|_| self.cgroup.as_ref().is_some_and(|c| c.group().kills() > 0))
    }

    /// Whether the kernel killed inside the limit although it could have swapped.
    pub fn killed_with_swap_left(&self) -> bool {
        let left = || self.cgroup.as_ref().and_then(|c| c.group().had_swap_left());
        self.journal.swap().is_some() && self.out_of_memory().is_some() && left() == Some(true)
    }

    /// What other people have in the run's own swap, a sentence. To be asked for when the load has ended.
    pub fn others_in_swap(&self) -> Option<String> {
        self.journal.swap().and_then(others::left_in)
    }

    /// A sentence for each setting that another program has changed since the set-up.
    pub fn changed_settings(&self) -> Vec<String> {
        self.settings.changed()
    }

    /// Undoes everything; what could not be undone, a sentence each. It is kept among the [`leftovers`].
    pub fn undo(mut self) -> Vec<String> {
        self.journal.undo()
    }
}

/// A file without a name, `bytes` long, on the disk of the scratch files: it is gone with the
/// processes that have it open.
///
/// # Errors
/// When the disk has no room, or makes no such file.
pub fn unnamed_file(bytes: u64) -> Result<std::fs::File, Problem> {
    let folder = with_room(bytes, "scratch files")?;
    let made = pagelab_kernel::lifetime::on_disk(&folder).and_then(|file| file.set_len(bytes).map(|()| file));
    made.map_err(|e| Problem::Failed(format!("a scratch file in {}", folder.display()), e))
}

/// The folder for scratch files, whose disk has room for `bytes` of `what`.
fn with_room(bytes: u64, what: &str) -> Result<PathBuf, Problem> {
    let folder = scratch_folder().map_err(|e| Problem::Failed(format!("no folder for {what}"), e))?;
    guard::disk(&folder, bytes, Room::of(&folder))?;
    Ok(folder)
}

/// The most that the device of `folder` reads ahead, in bytes.
pub fn read_ahead(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(folder).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    number(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"))?.checked_mul(1024)
}
