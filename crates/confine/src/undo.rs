//! The steps that take back a set-up. Each can be done twice, and after a reboot, without harm.
//!
//! A journal is a file: what it says is checked before it is done ([`Undo::check`]), so that
//! recovery never touches what pagelab could not have set up.

use std::io::{self, Write};

use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use pagelab_kernel::cgroup::Group;
use pagelab_kernel::{settings, swap_area, zram};

use super::{marked, others};

/// How long a cgroup may take to become empty, and a device to become free.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "kebab-case")]
pub enum Undo {
    /// Ends the processes of a run.
    EndProcesses {
        /// The run's name, which is its journal's.
        run: String,
    },
    /// Ends what runs in a cgroup of pagelab's and removes it.
    RemoveCgroup {
        /// Its folder.
        path: PathBuf,
    },
    /// Takes a swap file or device of pagelab's out of use.
    SwapOff {
        /// The file or device.
        path: PathBuf,
    },
    /// Removes a file of pagelab's.
    RemoveFile {
        /// The file.
        path: PathBuf,
    },
    /// Removes a zram device of pagelab's.
    RemoveZram {
        /// Its number.
        device: u32,
        /// The size that pagelab gave or was about to give it, in bytes.
        bytes: u64,
    },
    /// Writes back what a file of the kernel held.
    Restore {
        /// The file.
        path: PathBuf,
        /// What to write.
        value: String,
    },
}

impl Undo {
    /// Whether it concerns the running kernel alone, so that a reboot has undone it.
    pub fn ends_with_the_kernel(&self) -> bool {
        !matches!(self, Self::RemoveFile { .. })
    }

    /// What it takes back, in words.
    pub fn words(&self) -> String {
        match self {
            Self::EndProcesses { run } => format!("processes of the run {run}"),
            Self::RemoveCgroup { path } => format!("cgroup {}", path.display()),
            Self::SwapOff { path } => format!("swap on {}", path.display()),
            Self::RemoveFile { path } => format!("file {}", path.display()),
            Self::RemoveZram { device, .. } => format!("device /dev/zram{device}"),
            Self::Restore { path, value } => format!("setting {} (was {value})", path.display()),
        }
    }

    /// The shell command that does it by hand.
    pub fn command(&self) -> String {
        let quoted = |path: &Path| quoted(&path.to_string_lossy());
        match self {
            Self::EndProcesses { run } => {
                let variable = marked::VARIABLE;
                format!(
                    "grep -lsz '^{variable}={run}$' /proc/[0-9]*/environ | cut -d/ -f3 | xargs -r kill -9"
                )
            }
            Self::RemoveCgroup { path } => format!("rmdir {}", quoted(path)),
            Self::SwapOff { path } => format!("swapoff {}", quoted(path)),
            Self::RemoveFile { path } => format!("rm {}", quoted(path)),
            Self::RemoveZram { device, .. } => format!("echo {device} > {}", zram::REMOVE),
            Self::Restore { path, value } => format!("echo {} > {}", self::quoted(value), quoted(path)),
        }
    }

    /// Whether it restores a setting of the whole machine.
    pub fn restores_setting(&self) -> bool {
        matches!(self, Self::Restore { path, .. } if !path.ends_with("cgroup.subtree_control"))
    }

    /// Whether it is there to be undone still; where that cannot be seen, it is.
    pub fn is_due(&self) -> bool {
        match self {
            Self::EndProcesses { run } => !marked::find(run).is_empty(),
            Self::RemoveCgroup { path } | Self::RemoveFile { path } => fs::symlink_metadata(path).is_ok(),
            Self::SwapOff { path } => swap_area::in_use(path),
            Self::RemoveZram { device, .. } => zram::folder(*device).exists(),
            Self::Restore { path, value } => settings::read(path).map_or(true, |now| now != *value),
        }
    }

    /// Whether pagelab could have set it up: a cgroup, swap or file by one of its names in a place
    /// that is its own, a file of the kernel's settings.
    ///
    /// # Errors
    /// What it is not, in words.
    pub fn check(&self) -> Result<(), &'static str> {
        let holds = |holds: bool, not: &'static str| if holds { Ok(()) } else { Err(not) };
        match self {
            Self::EndProcesses { run } => holds(is_named(Path::new(run), &[""]), "not a run of pagelab"),
            Self::RemoveCgroup { path } => {
                holds(
                    is_plain(path) && is_named(path, &[""]),
                    "not the name of a cgroup that pagelab makes",
                )?;
                holds(in_cgroups(path), "not in a cgroup file system")
            }
            Self::SwapOff { path } if zram::is_named(path) => {
                holds(zram::is_free_or_ours(path), "not swap that pagelab made")
            }
            Self::SwapOff { path } | Self::RemoveFile { path } => {
                let named = is_named(path, &["swap", "data"]);
                holds(named, "not the name of a file that pagelab makes")?;
                holds(in_own_folder(path), "not in a folder that only this user can write")
            }
            Self::RemoveZram { .. } => Ok(()),
            Self::Restore { path, value } => {
                let setting = path.starts_with("/sys") || path.starts_with("/proc/sys");
                let handed_on = path.ends_with("cgroup.subtree_control") && value == "-memory";
                let kernels = is_plain(path) && (setting || handed_on && in_cgroups(path));
                holds(kernels, "not a file of the kernel's settings")
            }
        }
    }

    /// Ends the processes that it concerns, before anything is undone: swap cannot be taken from a
    /// load that still runs.
    pub fn end_processes(&self) {
        match self {
            Self::RemoveCgroup { path } => tree(path).iter().for_each(|path| kill_members(path)),
            Self::EndProcesses { run } => drop(marked::end(run)),
            _ => {}
        }
    }

    /// Does it; `Ok(false)` when there was nothing to do. What is busy is tried again for
    /// `timeout`.
    ///
    /// # Errors
    /// What the system says, or that a setting is not as it was.
    pub fn perform(&self, timeout: Duration) -> io::Result<bool> {
        match self {
            Self::EndProcesses { run } => Ok(marked::end(run)),
            Self::RemoveCgroup { path } => remove_cgroup(path, timeout),
            Self::SwapOff { path } => swap_off(path),
            Self::RemoveFile { path } => match fs::remove_file(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
                other => other.map(|()| true),
            },
            Self::RemoveZram { device, bytes } => zram::remove(*device, *bytes, timeout),
            // The cgroup was removed.
            Self::Restore { path, .. } if path.ends_with(Group::HIGH) && !path.exists() => Ok(false),
            Self::Restore { path, value } => settings::restore(path, value),
        }
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+:,".contains(&b);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The processes in a cgroup.
fn members(path: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

/// Kills what runs in one cgroup: in one go where the kernel can, so that nothing is forked
/// meanwhile.
fn kill_members(path: &Path) {
    if write(&path.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for pid in members(path) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Writes to a file that is there.
fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// A cgroup with those that were made inside it, children before their parents; what is mounted
/// there is not followed.
fn tree(path: &Path) -> Vec<PathBuf> {
    let Ok(device) = fs::symlink_metadata(path).map(|found| found.dev()) else { return Vec::new() };
    let mut found = vec![path.to_owned()];
    let mut at = 0;
    while let Some(entries) = found.get(at).map(fs::read_dir) {
        let entries = entries.into_iter().flatten().flatten();
        let inside = entries.filter(|entry| entry.metadata().is_ok_and(|m| m.is_dir() && m.dev() == device));
        found.extend(inside.map(|entry| entry.path()));
        at += 1;
    }
    found.reverse();
    found
}

/// Removes a cgroup with all that a program under test may have made inside it.
fn remove_cgroup(path: &Path, timeout: Duration) -> io::Result<bool> {
    if matches!(path.try_exists(), Ok(false)) {
        return Ok(false);
    }
    let deadline = Instant::now() + timeout;
    loop {
        Undo::RemoveCgroup { path: path.to_owned() }.end_processes();
        // Of the cgroup itself, which comes last.
        let mut last = Ok(());
        for path in tree(path) {
            // Version 1 keeps page cache charged to a cgroup that nobody is in; this gives it back.
            let _ = write(&path.join("memory.force_empty"), "0");
            last = fs::remove_dir(&path);
        }
        match last {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(e) => return Err(e),
        }
    }
}

/// Whether a path says where it is: from the root, without steps back.
fn is_plain(path: &Path) -> bool {
    let plain = |c: Component<'_>| matches!(c, Component::RootDir | Component::Normal(_));
    path.is_absolute() && path.components().all(plain)
}

/// Whether the path ends in a name that a journal gives: `pagelab-PID-NUMBER`, with one of these
/// endings.
fn is_named(path: &Path, endings: &[&str]) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let (name, ending) = name.split_once('.').unwrap_or((name, ""));
    let numbers = name.strip_prefix("pagelab-").and_then(|rest| rest.split_once('-'));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    endings.contains(&ending) && numbers.is_some_and(|(pid, number)| digits(pid) && digits(number))
}

/// Whether the path is in a cgroup file system, or in a folder that is gone.
fn in_cgroups(path: &Path) -> bool {
    const CGROUP: i64 = 0x0027_e0eb;
    const CGROUP2: i64 = 0x6367_7270;
    let Some(folder) = path.parent() else { return false };
    match rustix::fs::statfs(folder) {
        #[allow(clippy::unnecessary_cast, reason = "its type differs between architectures")]
        Ok(found) => matches!(found.f_type as i64, CGROUP | CGROUP2),
        // Then nothing is done there either.
        Err(_) => true,
    }
}

/// Whether the path is in a folder that nobody else can write, or in one that is gone.
fn in_own_folder(path: &Path) -> bool {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return false };
    // As the kernel finds it, through links: a user may have linked to a larger disk.
    fs::metadata(folder).map_or(true, |found| {
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
    })
}

fn swap_off(path: &Path) -> io::Result<bool> {
    if let Some(why) = others::in_the_way(path) {
        return Err(io::Error::other(why));
    }
    swap_area::off(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_pagelab_could_have_set_up_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| Undo::RemoveFile { path: folder.path().join(name) };
        let restore = |path: &str| Undo::Restore { path: path.into(), value: "1".into() };
        let cgroup = |path: &str| Undo::RemoveCgroup { path: path.into() };
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        for undo in [
            file("pagelab-12-0.swap"),
            file("pagelab-12-3.data"),
            // A scratch folder can be named so.
            file("a/../pagelab-12-0.swap"),
            Undo::SwapOff { path: link.join("pagelab-12-0.swap") },
            Undo::SwapOff { path: "/dev/zram4000000".into() },
            Undo::SwapOff { path: "/dev/no/such/folder/pagelab-12-0.swap".into() },
            Undo::SwapOff { path: folder.path().join("pagelab-12-0.swap") },
            restore("/proc/sys/vm/swappiness"),
            restore("/sys/kernel/mm/transparent_hugepage/enabled"),
            restore("/sys/fs/cgroup/web.slice/memory.high"),
            cgroup("/no/such/place/pagelab-12-0"),
            Undo::EndProcesses { run: "pagelab-12-0".into() },
        ] {
            assert_eq!(undo.check(), Ok(()), "{undo:?}");
        }
        for undo in [
            file("precious"),
            file("pagelab-12.swap"),
            file("pagelab-12-0.db"),
            file("pagelab-x-0.swap"),
            Undo::RemoveFile { path: "pagelab-12-0.swap".into() },
            Undo::RemoveFile { path: "/tmp/pagelab-12-0.swap".into() },
            Undo::SwapOff { path: "/swapfile".into() },
            Undo::SwapOff { path: "/dev/null".into() },
            restore("/etc/passwd"),
            restore("/sys/../etc/passwd"),
            restore("/proc/self/mem"),
            Undo::Restore { path: folder.path().join("cgroup.subtree_control"), value: "-memory".into() },
            cgroup("/sys/fs/cgroup/memory"),
            Undo::EndProcesses { run: String::new() },
            Undo::SwapOff { path: "/dev/vda".into() },
            Undo::SwapOff { path: "/dev/zram0/../vda".into() },
            Undo::SwapOff { path: "/dev/mapper/zram0".into() },
            Undo::RemoveCgroup { path: folder.path().join("pagelab-12-0") },
        ] {
            assert!(undo.check().is_err(), "{undo:?}");
        }
    }

    #[test]
    fn missing_objects_need_no_undo() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent");
        for undo in [
            Undo::RemoveCgroup { path: path.clone() },
            Undo::RemoveFile { path: path.clone() },
            Undo::RemoveZram { device: 4_000_000, bytes: 1 },
            Undo::Restore { path: path.join(Group::HIGH), value: "max".into() },
        ] {
            assert!(!undo.perform(TIMEOUT).unwrap(), "{undo:?}");
        }
        fs::write(&path, "old").unwrap();
        assert!(Undo::Restore { path: path.clone(), value: "new".into() }.perform(TIMEOUT).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(Undo::RemoveFile { path: path.clone() }.perform(TIMEOUT).unwrap());
        assert!(!path.exists());
    }
}
