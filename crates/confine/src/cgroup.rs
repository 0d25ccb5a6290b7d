//! The memory cgroup of a run, of version 2 or 1, whichever has the memory controller.
//!
//! It is a child of the first of these that this user may add one to: the caller's own cgroup and
//! its ancestors, up to the root that is visible. Version 2 lets only the ancestors of a cgroup
//! without processes of their own hand the memory controller on, so the caller's own cgroup itself
//! is rarely one of them; root finds the root of the hierarchy, a user the delegated slice above.

use std::fs;
use std::path::{Path, PathBuf};

use pagelab_kernel::cgroup::Group;
use pagelab_kernel::hierarchy::{Hierarchy, Version, has_memory, hierarchy};
use rustix::fs::{Access, access};

use super::journal::Journal;
use super::problem::{Problem, not_noted};
use super::undo::Undo;
use super::warnings;

/// What a run may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Memory, bytes.
    pub memory: u64,
    /// Swap, bytes.
    pub swap: u64,
    /// Whether no swap may be used, not even the machine's.
    pub no_swap: bool,
}

/// A memory cgroup with its limits in force.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    version: Version,
    /// The cgroup of version 2 with the pressure (PSI) of the same tasks.
    observer: Option<PathBuf>,
    /// What could not be bounded.
    pub notes: Vec<String>,
}

/// That hierarchy, and the cgroup in it that takes a child of this user's.
fn place() -> Result<(Hierarchy, PathBuf), String> {
    let hierarchy = hierarchy().ok_or(
        "no cgroup hierarchy with the memory controller is mounted (boot with cgroup_enable=memory, or mount one)",
    )?;
    match parent(&hierarchy) {
        Some(parent) => Ok((hierarchy, parent)),
        None if rustix::process::geteuid().is_root() => Err(format!(
            "{} accepts no memory cgroup, not even from root (mounted read-only, or hidden by a container); \
            mount it writable",
            hierarchy.mount.display()
        )),
        None => Err("this user may not create a memory cgroup; run as root, or with: systemd-run --user \
            --scope -p Delegate=yes pagelab …"
            .to_owned()),
    }
}

/// Where a memory cgroup of this user's would be made.
///
/// # Errors
/// Why there is none, with the remedy.
pub fn available() -> Result<PathBuf, String> {
    place().map(|(_, parent)| parent)
}

/// A warning where `limit`, bytes, is more than the machine's memory.
pub fn above_memory(limit: u64) -> Option<String> {
    let machine = rustix::system::sysinfo();
    let total = (machine.totalram as u64).saturating_mul(machine.mem_unit.into());
    let text = || {
        format!(
            "the memory limit of {} MiB {} ({} MiB), so nothing will be paged because of it",
            limit >> 20,
            warnings::ABOVE_MEMORY.0,
            total >> 20
        )
    };
    (limit > total).then(text)
}

/// Whether a cgroup that is made here is one of version 2.
pub fn version_two() -> bool {
    hierarchy().is_some_and(|hierarchy| hierarchy.version == Version::Two)
}

/// Whether a cgroup that is made here has the pressure of its tasks alone, where the kernel has
/// PSI.
pub fn has_pressure() -> bool {
    version_two() || observers().is_some()
}

/// Where version 2 is mounted beside the memory controller of version 1, and takes cgroups of this
/// user's.
pub(crate) fn observers() -> Option<PathBuf> {
    pagelab_kernel::hierarchy::unified().filter(|mount| access(mount, Access::WRITE_OK).is_ok())
}

/// A cgroup of version 2 for what version 1 does not count: pressure.
fn observer(journal: &mut Journal) -> Result<Option<PathBuf>, Problem> {
    let Some(mount) = observers() else { return Ok(None) };
    let path = mount.join(journal.name());
    journal.enter(Undo::RemoveCgroup { path: path.clone() }).map_err(not_noted)?;
    fs::create_dir(&path).map_err(|e| Problem::Failed(format!("making the cgroup {}", path.display()), e))?;
    Ok(Some(path))
}

impl Cgroup {
    /// Makes a cgroup named after the journal with `limits` in force, empty.
    pub fn make(limits: &Limits, swappiness: Option<u8>, journal: &mut Journal) -> Result<Self, Problem> {
        let (hierarchy, parent) = place().map_err(|why| {
            Problem::Unavailable(format!("the memory cannot be limited to {} bytes", limits.memory), why)
        })?;
        if hierarchy.version == Version::Two {
            hand_on(&parent, journal)?;
        }
        let path = parent.join(journal.name());
        journal.enter(Undo::RemoveCgroup { path: path.clone() }).map_err(not_noted)?;
        fs::create_dir(&path)
            .map_err(|e| Problem::Failed(format!("making the cgroup {}", path.display()), e))?;
        let mut new = Self { path, version: hierarchy.version, observer: None, notes: Vec::new() };
        new.bound(limits)?;
        if new.version == Version::One {
            new.observer = observer(journal)?;
        }
        if new.version == Version::One
            && let Some(swappiness) = swappiness
        {
            new.write("memory.swappiness", swappiness.into())?;
        }
        Ok(new)
    }

    fn bound(&mut self, limits: &Limits) -> Result<(), Problem> {
        let swap = if limits.no_swap { 0 } else { limits.swap };
        let (memory, both, value) = match self.version {
            Version::One => {
                ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", limits.memory.saturating_add(swap))
            }
            Version::Two => ("memory.max", "memory.swap.max", swap),
        };
        self.write(memory, limits.memory)?;
        self.notes.extend(above_memory(limits.memory));
        if self.path.join(both).exists() {
            self.write(both, value)?;
        } else {
            self.notes.push(format!("{}, so pagelab cannot limit the swap used", warnings::NO_SWAP_LIMIT.0));
        }
        Ok(())
    }

    fn write(&self, file: &str, value: u64) -> Result<(), Problem> {
        let path = self.path.join(file);
        fs::write(&path, value.to_string())
            .map_err(|e| Problem::Failed(format!("writing {value} to {}", path.display()), e))
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file with the pressure of its tasks, where the kernel has PSI. They have to join its
    /// folder too, where that is another.
    pub fn pressure(&self) -> Option<PathBuf> {
        let file = self.observer.as_ref().unwrap_or(&self.path).join("memory.pressure");
        file.exists().then_some(file)
    }

    /// 1 or 2.
    pub fn version(&self) -> u32 {
        match self.version {
            Version::One => 1,
            Version::Two => 2,
        }
    }

    /// The same, to be read.
    pub fn group(&self) -> Group<'_> {
        Group::new(&self.path)
    }
}

/// The nearest cgroup at or above the caller's own that takes a child with the memory controller.
fn parent(hierarchy: &Hierarchy) -> Option<PathBuf> {
    let mut at = if hierarchy.own.is_dir() { hierarchy.own.as_path() } else { hierarchy.mount.as_path() };
    loop {
        if takes_children(hierarchy, at) {
            return Some(at.to_owned());
        }
        if at == hierarchy.mount {
            return None;
        }
        at = at.parent()?;
    }
}

fn takes_children(hierarchy: &Hierarchy, path: &Path) -> bool {
    let writable = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    let read = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
    if !writable(path) || !writable(&path.join("cgroup.procs")) {
        return false;
    }
    if hierarchy.version == Version::One {
        return true;
    }
    let root = path == hierarchy.mount && !path.join("cgroup.type").exists();
    has_memory(&read("cgroup.subtree_control"))
        || has_memory(&read("cgroup.controllers"))
            && writable(&path.join("cgroup.subtree_control"))
            && (root || read("cgroup.procs").trim().is_empty())
}

/// Makes version 2 hand the memory controller on to the children of `parent`.
fn hand_on(parent: &Path, journal: &mut Journal) -> Result<(), Problem> {
    let path = parent.join("cgroup.subtree_control");
    if fs::read_to_string(&path).is_ok_and(|text| has_memory(&text)) {
        return Ok(());
    }
    journal
        .enter(Undo::Restore { path: path.clone(), value: "-memory".into() })
        .and_then(|()| fs::write(&path, "+memory"))
        .map_err(|e| Problem::Failed(format!("writing +memory to {}", path.display()), e))
}

#[cfg(test)]
mod tests {
    use super::above_memory;

    #[test]
    fn a_limit_above_the_machines_memory_is_warned_of() {
        assert_eq!(above_memory(1 << 20), None);
        let warning = above_memory(u64::MAX).unwrap();
        assert!(warning.starts_with("the memory limit of 17592186044415 MiB exceeds"), "{warning}");
    }
}
