//! The confinement of a load: a memory cgroup with a limit, swap of its own, kernel settings.
//!
//! Limits first, then load: everything is in force when [`Confinement::set_up`] returns, or nothing is.
//! Each thing is written to a journal before it is set up and undone in reverse order: by
//! [`Confinement::undo`], when dropped (an error, a panic), or from the journal by the next start of
//! pagelab ([`Recovery`]) after a kill -9 or a power failure.

mod area;
pub(crate) mod cgroup;
mod device;
pub(crate) mod folder;
pub(crate) mod guard;
pub(crate) mod hierarchy;
pub(crate) mod journal;
pub mod leftovers;
pub(crate) mod marked;
mod others;
pub(crate) mod recovery;
pub(crate) mod settings;
pub(crate) mod sizes;
pub(crate) mod swap;
pub(crate) mod sysctl;
mod turns;
pub(crate) mod undo;
pub(crate) mod zram;

use std::io;
use std::path::Path;

use pagelab_experiment::setting::Swap;
use pagelab_experiment::{Experiment, Failure, Setting};

pub use self::journal::{anything_set_up, close};
pub use self::recovery::Recovery;
pub use self::turns::Turn;

use self::cgroup::{Cgroup, Limits};
use self::folder::scratch_folder;
use self::guard::Room;
use self::journal::Journal;
use self::undo::Undo;
use crate::environment::entries;
use crate::place::Place;
use crate::region::page_size;

/// Whether what is swapped stays in memory, compressed: the swap is zram, or zswap is on.
pub(crate) fn compresses(setting: &Setting) -> bool {
    let zswap = setting.set.iter().find(|file| file.path == ZSWAP).map(|file| file.value.clone());
    let zswap = zswap.or_else(|| sysctl::read(Path::new(ZSWAP)).ok());
    setting.swap == Some(Swap::Zram) || zswap.is_some_and(|on| ["Y", "y", "1"].contains(&on.trim()))
}

/// Whether pages go to zswap before they go to a swap device.
pub(crate) const ZSWAP: &str = "/sys/module/zswap/parameters/enabled";

/// Swap beyond what the load can fill, for slots that the kernel hands out in clusters to each
/// processor.
pub(crate) const SWAP_SLACK: u64 = 16 << 20;

/// What is in force around a load. Undone when dropped.
#[derive(Debug)]
pub struct Confinement {
    journal: Journal,
    place: Place,
    cgroup: Option<Cgroup>,
    limit: Option<u64>,
    notes: Vec<String>,
}

impl Confinement {
    /// Sets up what `setting` asks for around `experiment`. A swap «file» is the block device `swap_device`
    /// where there is one; it is overwritten.
    ///
    /// What the setting says is in force when this returns: what a plan found possible and is not any more is
    /// an error.
    ///
    /// # Errors
    /// [`Failure`] of kind refused when the load could press the machine or the disk has no room;
    /// [`Failure`] of kind system when the system refuses something that it should allow. Nothing is left
    /// of a failed set-up.
    pub fn set_up(
        experiment: &Experiment,
        setting: &Setting,
        swap_device: Option<&Path>,
    ) -> Result<Self, Failure> {
        let page = page_size() as u64;
        let need = experiment.footprint(page);
        let mut new = Self {
            journal: Journal::open()
                .map_err(|e| failed("the journal of the set-up cannot be written", &e))?,
            place: Place::default(),
            cgroup: None,
            limit: None,
            notes: Vec::new(),
        };
        let run = new.journal.name().to_owned();
        new.journal
            .enter(Undo::EndProcesses { run })
            .map_err(|e| failed("the journal of the set-up cannot be written", &e))?;
        let swap = setting.swap;
        let swap_bytes = match (swap, setting.swap_size) {
            (None | Some(Swap::None), _) => 0,
            (_, Some(size)) => size.bytes(page).next_multiple_of(page),
            (_, None) => need.anonymous + SWAP_SLACK,
        };
        if let Some(limit) = setting.limit().map(|size| size.bytes(page)) {
            let limits = Limits { memory: limit, swap: swap_bytes, no_swap: swap == Some(Swap::None) };
            match Cgroup::make(&limits, setting.swappiness, &mut new.journal) {
                Ok(cgroup) => {
                    new.limit = Some(limit);
                    new.notes.extend(cgroup.notes.iter().cloned());
                    new.cgroup = Some(cgroup);
                }
                Err(cgroup::Problem::Unavailable(why)) => {
                    return Err(Failure::unsupported(
                        format!("the memory cannot be limited to {limit} bytes"),
                        why,
                    ));
                }
                Err(cgroup::Problem::Failed(what, error)) => return Err(failed(&what, &error)),
            }
        }
        let in_ram = new.limit.map_or(need.total(), |limit| limit.min(need.total()));
        let zram = if compresses(setting) { swap_bytes } else { 0 };
        guard::memory(
            in_ram.saturating_add(zram),
            new.limit.is_some(),
            crate::environment::memory_available(),
        )?;
        let own_swappiness = new.cgroup.as_ref().is_some_and(|c| c.has_swappiness);
        new.notes.extend(settings::apply(setting, own_swappiness, &mut new.journal)?);
        settings::save(experiment, &mut new.journal)?;
        new.add_swap(swap, swap_bytes, swap_device)?;
        if new.journal.swap().is_some() {
            new.notes.extend(others::warning());
        }
        if need.file > 0 {
            new.add_scratch(need.file)?;
        }
        new.describe(swap, swap_bytes, setting);
        Ok(new)
    }

    fn add_swap(&mut self, swap: Option<Swap>, bytes: u64, device: Option<&Path>) -> Result<(), Failure> {
        let made = match swap {
            None | Some(Swap::None) => return Ok(()),
            Some(_) if !swap::permitted() => Err(swap::Problem::Unavailable(
                "swap of its own needs the capability CAP_SYS_ADMIN (run as root)".into(),
            )),
            Some(Swap::File) => match device {
                Some(device) => swap::device(device, bytes, &mut self.journal),
                None => {
                    let folder = scratch_folder().map_err(|e| failed("no folder for the swap file", &e))?;
                    guard::disk(&folder, bytes, Room::of(&folder))?;
                    swap::file(&folder, bytes, &mut self.journal)
                }
            },
            Some(Swap::Zram) => zram::add(bytes, &mut self.journal),
        };
        match made {
            Ok(()) => Ok(()),
            Err(swap::Problem::Unavailable(why)) => {
                Err(Failure::unsupported("the run can have no swap of its own", why))
            }
            Err(swap::Problem::Failed(what, error)) => Err(failed(&what, &error)),
        }
    }

    fn add_scratch(&mut self, bytes: u64) -> Result<(), Failure> {
        let folder = scratch_folder().map_err(|e| failed("no folder for scratch files", &e))?;
        guard::disk(&folder, bytes, Room::of(&folder))?;
        let path = folder.join(format!("{}.data", self.journal.name()));
        self.journal
            .enter(Undo::RemoveFile { path: path.clone() })
            .map_err(|e| failed("the journal of the set-up cannot be written", &e))?;
        self.place.scratch = Some(path);
        Ok(())
    }

    fn describe(&mut self, swap: Option<Swap>, bytes: u64, setting: &Setting) {
        let own_swap = self.journal.swap().is_some();
        let kind = match swap {
            Some(Swap::None) if self.cgroup.is_some() => Some("none".to_owned()),
            Some(kind) if own_swap => Some(kind.to_string()),
            _ => None,
        };
        let in_cgroup = self.cgroup.as_ref().filter(|c| c.has_swappiness).and(setting.swappiness);
        let scratch = self.place.scratch.as_ref().and_then(|path| read_ahead(path.parent()?));
        self.place.environment = entries([
            ("disk.read-ahead", scratch.map(|v| v.to_string())),
            ("memory.limit", self.limit.map(|v| v.to_string())),
            ("swap.size", kind.as_ref().map(|_| bytes.to_string())),
            ("swap.kind", kind),
            ("swap.compressor", self.journal.zram().and_then(zram::compressor)),
            ("cgroup.version", self.cgroup.as_ref().map(|c| c.version().to_string())),
            ("vm.swappiness", in_cgroup.map(|v| v.to_string())),
        ]);
        self.place.zram = self.journal.zram();
        for file in &setting.set {
            // As the kernel has it now, which need not be as it was written.
            let now = sysctl::read(Path::new(&file.path)).ok();
            self.place.environment.extend(now.map(|value| (format!("set {}", file.path), value)));
        }
        if let Some(cgroup) = &self.cgroup {
            self.place.cgroup = Some(cgroup.path().to_owned());
            self.place.memory_stat = Some(cgroup.path().join("memory.stat"));
            let pressure = cgroup.path().join("memory.pressure");
            self.place.memory_pressure = pressure.exists().then_some(pressure);
        }
    }

    /// The run's name: its processes have it in their environment.
    pub(crate) fn name(&self) -> &str {
        self.journal.name()
    }

    /// Marks what `command` starts, and what that starts, as the run's: it ends with the confinement.
    pub fn mark(&self, command: &mut std::process::Command) {
        command.env(marked::VARIABLE, self.name());
    }

    /// Where the worker performs.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What could not be bounded, and what settings hold that were written otherwise, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The limit, where the kernel has killed a process inside it for want of memory.
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

    /// Undoes everything; what could not be undone, a sentence each. It is kept among the [`leftovers`].
    pub fn undo(mut self) -> Vec<String> {
        self.journal.undo()
    }
}

/// A file without a name, `bytes` long, on the disk of the scratch files: it is gone with the processes
/// that have it open.
///
/// # Errors
/// [`Failure`] of kind refused when the disk has no room, [`Failure`] of kind system when it makes no such file.
pub fn unnamed_file(bytes: u64) -> Result<std::fs::File, Failure> {
    let folder = scratch_folder().map_err(|e| failed("no folder for scratch files", &e))?;
    guard::disk(&folder, bytes, Room::of(&folder))?;
    let made = crate::lifetime::on_disk(&folder).and_then(|file| file.set_len(bytes).map(|()| file));
    made.map_err(|e| failed(&format!("a scratch file in {}", folder.display()), &e))
}

/// Refuses `bytes` of memory for a load if that could press this machine.
///
/// # Errors
/// [`Failure`] of kind refused.
pub fn refuse_beyond_half(bytes: u64) -> Result<(), Failure> {
    guard::memory(bytes, true, crate::environment::memory_available())
}

/// The same, with another remedy than that for a load.
///
/// # Errors
/// [`Failure`] of kind refused.
pub fn refuse_beyond_half_with(bytes: u64, remedy: &str) -> Result<(), Failure> {
    refuse_beyond_half(bytes).map_err(|failure| Failure::refused(failure.what, remedy))
}

/// The most that the device of `folder` reads ahead, in bytes.
fn read_ahead(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(folder).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let text = std::fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).ok()?;
    text.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::system(what, error)
}
