//! The memory cgroup of a run, of version 2 or 1, whichever has the memory controller.
//!
//! It is a child of the first of these that this user may add one to: the caller's own cgroup and its
//! ancestors, up to the root that is visible. Version 2 lets only the ancestors of a cgroup without
//! processes of their own hand the memory controller on, so the caller's own cgroup itself is rarely
//! one of them; root finds the root of the hierarchy, a user the delegated slice above.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::journal::Journal;
use super::undo::Undo;
use crate::cgroup::Group;
use crate::kernel;

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

/// Why there is no cgroup.
#[derive(Debug)]
pub enum Problem {
    /// This machine or user cannot have one; the reason and what to do.
    Unavailable(String),
    /// It went wrong: doing what, and how.
    Failed(String, io::Error),
}

/// A memory cgroup with its limits in force.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    version: Version,
    /// Whether it has a swappiness of its own (version 1).
    pub has_swappiness: bool,
    /// What could not be bounded.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A mounted hierarchy with the memory controller.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    version: Version,
    mount: PathBuf,
    /// The caller's cgroup, as a folder below the mount.
    own: PathBuf,
}

/// The hierarchy with the memory controller.
fn hierarchy() -> Option<Hierarchy> {
    let read = |path: &str| kernel::text(path).unwrap_or_default();
    find(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"), |mount| {
        fs::read_to_string(mount.join("cgroup.controllers")).is_ok_and(|text| has_memory(&text))
    })
}

/// Where it is mounted.
pub fn mount() -> Option<PathBuf> {
    hierarchy().map(|hierarchy| hierarchy.mount)
}

/// That hierarchy, and the cgroup in it that takes a child of this user's.
fn place() -> Result<(Hierarchy, PathBuf), String> {
    let hierarchy = hierarchy().ok_or(
        "no cgroup hierarchy with the memory controller is mounted (boot with cgroup_enable=memory, or mount one)",
    )?;
    let parent = parent(&hierarchy).ok_or(
        "this user may not make a memory cgroup; run as root, or with: systemd-run --user --scope -p Delegate=yes pagelab …",
    )?;
    Ok((hierarchy, parent))
}

/// Where a memory cgroup of this user's would be made.
///
/// # Errors
/// Why there is none, with the remedy.
pub fn available() -> Result<PathBuf, String> {
    place().map(|(_, parent)| parent)
}

impl Cgroup {
    /// Makes a cgroup named after the journal with `limits` in force, empty.
    pub fn make(limits: &Limits, swappiness: Option<u8>, journal: &mut Journal) -> Result<Self, Problem> {
        let (hierarchy, parent) = place().map_err(Problem::Unavailable)?;
        let noted = |e| Problem::Failed("the journal of the set-up cannot be written".into(), e);
        if hierarchy.version == Version::Two {
            hand_on(&parent, journal)?;
        }
        let path = parent.join(journal.name());
        journal.enter(Undo::RemoveCgroup { path: path.clone() }).map_err(noted)?;
        fs::create_dir(&path)
            .map_err(|e| Problem::Failed(format!("making the cgroup {}", path.display()), e))?;
        let mut new = Self { path, version: hierarchy.version, has_swappiness: false, notes: Vec::new() };
        new.bound(limits)?;
        if new.version == Version::One
            && let Some(swappiness) = swappiness
        {
            new.write("memory.swappiness", swappiness.into())?;
            new.has_swappiness = true;
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
        if self.path.join(both).exists() {
            self.write(both, value)?;
        } else {
            self.notes.push("the kernel does not account swap to cgroups (swapaccount=0), so the swap used is not bounded".into());
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

/// Whether a list of controllers has the memory controller.
fn has_memory(text: &str) -> bool {
    text.split_ascii_whitespace().any(|word| word == "memory")
}

/// The hierarchy with the memory controller, from the texts of `/proc/self/mountinfo` and
/// `/proc/self/cgroup`; `unified_has_memory` says whether version 2 mounted there has it.
fn find(mountinfo: &str, cgroups: &str, unified_has_memory: impl Fn(&Path) -> bool) -> Option<Hierarchy> {
    let own_of = |wanted: &dyn Fn(&str) -> bool| {
        cgroups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then(|| path.to_owned())
        })
    };
    for line in mountinfo.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let mut left = left.split(' ').skip(3);
        let (Some(root), Some(mount)) = (left.next(), left.next()) else { continue };
        let mut right = right.split(' ');
        let (kind, options) = (right.next().unwrap_or_default(), right.nth(1).unwrap_or_default());
        let mount = PathBuf::from(mount);
        let (version, own) = match kind {
            "cgroup" if options.split(',').any(|o| o == "memory") => {
                (Version::One, own_of(&|c: &str| c.split(',').any(|c| c == "memory")))
            }
            "cgroup2" if unified_has_memory(&mount) => (Version::Two, own_of(&str::is_empty)),
            _ => continue,
        };
        // The path is relative to the hierarchy's root, of which the mount may show only a part.
        let own = own.unwrap_or_default();
        let below = if root == "/" { own.as_str() } else { own.strip_prefix(root).unwrap_or_default() };
        let own = mount.join(below.trim_start_matches('/'));
        return Some(Hierarchy { version, own, mount });
    }
    None
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
    use super::*;
    use proptest::prelude::*;

    const HYBRID: &str = "25 18 0:22 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                          30 18 0:27 / /sys/fs/cgroup/memory rw,nosuid shared:5 - cgroup cgroup rw,memory\n";

    #[test]
    fn version_one_beside_a_version_two_without_memory() {
        let own = "9:memory:/user.slice\n4:cpu,cpuacct:/x\n0::/init.scope\n";
        let found = find(HYBRID, own, |_| false).unwrap();
        assert_eq!(found.version, Version::One);
        assert_eq!(found.own, Path::new("/sys/fs/cgroup/memory/user.slice"));
        assert_eq!(find(HYBRID, own, |_| true).unwrap().own, Path::new("/sys/fs/cgroup/unified/init.scope"));
        assert_eq!(find("", own, |_| true), None);
    }

    #[test]
    fn a_container_sees_a_part() {
        let mounts = "30 18 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = find(mounts, "9:memory:/docker/abc/inner\n", |_| false).unwrap();
        assert_eq!(found.own, Path::new("/sys/fs/cgroup/memory/inner"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(mounts: String, own: String) {
            let _ = find(&mounts, &own, |_| true);
        }
    }
}
