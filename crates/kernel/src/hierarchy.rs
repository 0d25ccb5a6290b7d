//! Which mounted cgroup hierarchy has a controller, and where the caller is in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;

/// A version of cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Version 1.
    One,
    /// Version 2.
    Two,
}

/// A mounted hierarchy.
#[derive(Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Which one.
    pub version: Version,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The cgroup of the caller, or of the process asked for, as a folder below the mount.
    pub own: PathBuf,
}

/// The hierarchy with the memory controller.
pub fn hierarchy() -> Option<Hierarchy> {
    of("memory")
}

/// The memory cgroup of the process `pid`.
pub fn memory_of(pid: u32) -> Option<PathBuf> {
    of_process("memory", &pid.to_string()).map(|hierarchy| hierarchy.own)
}

/// The hierarchy with this controller.
pub fn of(controller: &str) -> Option<Hierarchy> {
    of_process(controller, "self")
}

fn of_process(controller: &str, process: &str) -> Option<Hierarchy> {
    let read = |path: &str| files::text(path).unwrap_or_default();
    find(controller, &read("/proc/self/mountinfo"), &read(&format!("/proc/{process}/cgroup")), |mount| {
        fs::read_to_string(mount.join("cgroup.controllers")).is_ok_and(|text| has(&text, controller))
    })
}

/// Where version 2 is mounted, with or without the memory controller: every cgroup of it has the
/// pressure of its tasks.
pub fn unified() -> Option<PathBuf> {
    let mountinfo = files::text("/proc/self/mountinfo").unwrap_or_default();
    mounts(&mountinfo).find(|mount| mount.kind == "cgroup2").map(|mount| mount.path)
}

/// Where it is mounted.
pub fn mount() -> Option<PathBuf> {
    hierarchy().map(|hierarchy| hierarchy.mount)
}

/// Whether a list of controllers has the memory controller.
pub fn has_memory(text: &str) -> bool {
    has(text, "memory")
}

fn has(text: &str, controller: &str) -> bool {
    text.split_ascii_whitespace().any(|word| word == controller)
}

/// The hierarchy with the controller, from the texts of `/proc/self/mountinfo` and
/// `/proc/self/cgroup`; `unified_has` says whether version 2 mounted there has it.
fn find(
    controller: &str,
    mountinfo: &str,
    cgroups: &str,
    unified_has: impl Fn(&Path) -> bool,
) -> Option<Hierarchy> {
    let own_of = |wanted: &dyn Fn(&str) -> bool| {
        cgroups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then(|| path.to_owned())
        })
    };
    for Mount { root, path: mount, kind, options } in mounts(mountinfo) {
        let (version, own) = match kind {
            "cgroup" if options.split(',').any(|o| o == controller) => {
                (Version::One, own_of(&|c: &str| c.split(',').any(|c| c == controller)))
            }
            "cgroup2" if unified_has(&mount) => (Version::Two, own_of(&str::is_empty)),
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

/// A mount.
struct Mount<'a> {
    /// The part of the file system that it shows.
    root: &'a str,
    path: PathBuf,
    kind: &'a str,
    options: &'a str,
}

/// The mounts of the text of `/proc/self/mountinfo`.
fn mounts(mountinfo: &str) -> impl Iterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, path) = (left.next()?, PathBuf::from(left.next()?));
        let mut right = right.split(' ');
        let (kind, options) = (right.next().unwrap_or_default(), right.nth(1).unwrap_or_default());
        Some(Mount { root, path, kind, options })
    })
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
        let found = find("memory", HYBRID, own, |_| false).unwrap();
        assert_eq!(found.version, Version::One);
        assert_eq!(found.own, Path::new("/sys/fs/cgroup/memory/user.slice"));
        assert_eq!(
            find("memory", HYBRID, own, |_| true).unwrap().own,
            Path::new("/sys/fs/cgroup/unified/init.scope")
        );
        assert_eq!(find("memory", "", own, |_| true), None);
    }

    #[test]
    fn a_container_sees_a_part() {
        let mounts = "30 18 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = find("memory", mounts, "9:memory:/docker/abc/inner\n", |_| false).unwrap();
        assert_eq!(found.own, Path::new("/sys/fs/cgroup/memory/inner"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(mounts: String, own: String) {
            let _ = find("memory", &mounts, &own, |_| true);
        }
    }
}
