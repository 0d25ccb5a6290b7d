//! The names of processes, cgroups and files with requests. A process may exit or a file be closed
//! before the next sample, so the programs record their names.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pagelab_counters::views::cachestat::By;

use super::super::map::Map;

/// Components of a path that the programs record, the file's own first, and the bytes of each.
pub(super) const LEVELS: i16 = 12;
pub(super) const BYTES: i16 = 64;
/// Eight-byte words of a recorded name.
pub(super) const NAME_WORDS: usize = (LEVELS * BYTES / 8) as usize;
/// Maximum number of names kept.
const MAX_NAMES: usize = 1 << 16;
/// Maximum number of cgroups visited to find one.
const MAX_CGROUPS: usize = 1 << 14;
/// Possible mount points of the memory controller.
const CGROUPS: [&str; 3] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The names recorded by the programs, and the cgroups found.
#[derive(Debug, Default)]
pub(super) struct Names {
    noted: HashMap<[u32; 4], String>,
    cgroups: HashMap<u64, String>,
}

impl Names {
    /// Reads the names from the map.
    pub(super) fn update(&mut self, by: By, map: &Map<4, NAME_WORDS>) {
        if self.noted.len() > MAX_NAMES {
            self.noted.clear();
        }
        // The programs store a name once.
        let keys: Vec<_> = map.keys().into_iter().filter(|key| !self.noted.contains_key(key)).collect();
        if keys.is_empty() {
            return;
        }
        let mounts = if by == By::File { mount_points() } else { HashMap::new() };
        for key in keys {
            let Some(words) = map.get(key) else { continue };
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let name = match by {
                By::File => path(&bytes, mounts.get(&key[0]).map(PathBuf::as_path)),
                _ => text(&bytes),
            };
            self.noted.insert(key, name);
        }
    }

    /// Removes a name.
    pub(super) fn forget(&mut self, key: [u32; 4]) {
        self.noted.remove(&key);
    }

    /// The name of a process.
    pub(super) fn process(&self, key: [u32; 4], process: u64) -> String {
        let now = || crate::files::text(format!("/proc/{process}/comm")).ok();
        let name = self.noted.get(&key).cloned().or_else(now).unwrap_or_else(|| "?".to_owned());
        name.trim_end().to_owned()
    }

    /// The path of a file, or its device and inode if the programs saw only its pages.
    pub(super) fn file(&self, key: [u32; 4]) -> String {
        let inode = super::super::pair(key[2], key[3]);
        let by_number = || format!("inode {inode} of device {}:{}", key[0] >> 20, key[0] & 0xf_ffff);
        self.noted.get(&key).cloned().unwrap_or_else(by_number)
    }

    /// The path of a memory cgroup, by the inode number of its directory.
    pub(super) fn cgroup(&mut self, number: u64) -> String {
        if !self.cgroups.contains_key(&number) {
            self.cgroups = cgroups();
        }
        // A removed cgroup is not searched for again.
        self.cgroups.entry(number).or_insert_with(|| format!("cgroup {number}")).clone()
    }
}

/// The memory cgroups by the inode numbers of their directories.
fn cgroups() -> HashMap<u64, String> {
    let is_there = |root: &&&str| {
        let root = Path::new(root);
        root.join("memory.limit_in_bytes").exists() || root.join("cgroup.controllers").exists()
    };
    let Some(root) = CGROUPS.iter().find(is_there) else { return HashMap::new() };
    let mut found = HashMap::new();
    let mut folders = vec![PathBuf::from(root)];
    while let Some(folder) = folders.pop().filter(|_| found.len() < MAX_CGROUPS) {
        let Ok(metadata) = fs::metadata(&folder) else { continue };
        let below = folder.strip_prefix(root).unwrap_or(&folder);
        found.insert(metadata.ino(), Path::new("/").join(below).to_string_lossy().into_owned());
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// The mount point of each file system's root, by the kernel's device number.
fn mount_points() -> HashMap<u32, PathBuf> {
    let text = crate::files::text("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(mount_point).collect()
}

/// Parses `ID PARENT MAJOR:MINOR ROOT MOUNT-POINT …`; None unless ROOT is `/`.
fn mount_point(line: &str) -> Option<(u32, PathBuf)> {
    let mut words = line.split(' ').skip(2);
    let (major, minor) = words.next()?.split_once(':')?;
    let device = major.parse::<u32>().ok()?.checked_shl(20)? | minor.parse::<u32>().ok()?;
    (words.next()? == "/").then_some(())?;
    Some((device, words.next()?.replace("\\040", " ").into()))
}

/// Joins the recorded components, which are stored in reverse order. A path that reaches the root
/// of the file system, named `/`, begins with the mount point; any other begins with `…`.
fn path(bytes: &[u8], mount: Option<&Path>) -> String {
    let names: Vec<String> =
        bytes.chunks(BYTES as usize).map(text).take_while(|name| !name.is_empty()).collect();
    let reaches_root = names.last().is_some_and(|name| name == "/");
    let parts: Vec<&str> = names.iter().rev().map(String::as_str).filter(|name| *name != "/").collect();
    let below = parts.join("/");
    match mount {
        Some(mount) if reaches_root => mount.join(below).to_string_lossy().into_owned(),
        _ => format!("…/{below}"),
    }
}

/// The text before the first NUL byte; text that fills its place may be truncated and gets a `…`.
fn text(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let cut = if length + 1 == BYTES as usize && bytes.len() == BYTES as usize { "…" } else { "" };
    String::from_utf8_lossy(&bytes[..length]).into_owned() + cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(names: &[&str]) -> Vec<u8> {
        let mut bytes = vec![0; NAME_WORDS * 8];
        for (at, name) in names.iter().enumerate() {
            bytes[at * BYTES as usize..][..name.len()].copy_from_slice(name.as_bytes());
        }
        bytes
    }

    #[test]
    fn paths_are_put_together() {
        let bytes = noted(&["file", "b", "a", "/"]);
        assert_eq!(path(&bytes, Some(Path::new("/mnt"))), "/mnt/a/b/file");
        assert_eq!(path(&bytes, None), "…/a/b/file", "the mount point is unknown");
        assert_eq!(path(&noted(&["file", "b"]), Some(Path::new("/"))), "…/b/file", "the file is too deep");
        let long = "x".repeat(63);
        assert_eq!(path(&noted(&[&long, "/"]), Some(Path::new("/"))), format!("/{long}…"));
    }

    #[test]
    fn only_whole_file_systems_have_a_mount_point() {
        let line = "29 1 254:0 / /a\\040b rw,relatime - ext4 /dev/vda rw";
        assert_eq!(mount_point(line), Some((254 << 20, "/a b".into())));
        assert_eq!(mount_point("29 1 254:0 /x /y rw - ext4 /dev/vda rw"), None);
        assert_eq!(mount_point("no line"), None);
    }
}
