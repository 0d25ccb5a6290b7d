//! The steps that take back a set-up. Each can be done twice, and after a reboot, without harm.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// How long a cgroup may take to become empty, and a device to become free.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "kebab-case")]
pub enum Undo {
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
            Self::RemoveCgroup { path } => format!("cgroup {}", path.display()),
            Self::SwapOff { path } => format!("swap on {}", path.display()),
            Self::RemoveFile { path } => format!("file {}", path.display()),
            Self::RemoveZram { device, .. } => format!("device /dev/zram{device}"),
            Self::Restore { path, value } => format!("setting {} (was {value})", path.display()),
        }
    }

    /// Ends the processes that it concerns, before anything is undone: swap cannot be taken from a load
    /// that still runs.
    pub fn end_processes(&self) {
        if let Self::RemoveCgroup { path } = self {
            for pid in members(path) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }

    /// Does it; `Ok(false)` when there was nothing to do.
    pub fn perform(&self) -> io::Result<bool> {
        match self {
            Self::RemoveCgroup { path } => remove_cgroup(path),
            Self::SwapOff { path } => swap_off(path),
            Self::RemoveFile { path } => match fs::remove_file(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
                other => other.map(|()| true),
            },
            Self::RemoveZram { device, bytes } => remove_zram(*device, *bytes),
            Self::Restore { path, value } => fs::write(path, value).map(|()| true),
        }
    }
}

/// The processes in a cgroup.
fn members(path: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

fn remove_cgroup(path: &Path) -> io::Result<bool> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        Undo::RemoveCgroup { path: path.to_owned() }.end_processes();
        // Version 1 keeps page cache charged to a cgroup that nobody is in; this gives it back.
        let _ = fs::write(path.join("memory.force_empty"), "0");
        match fs::remove_dir(path) {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(e) => return Err(e),
        }
    }
}

fn swap_off(path: &Path) -> io::Result<bool> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a terminated string; the call takes nothing else.
    if unsafe { libc::swapoff(name.as_ptr()) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // It was not in use as swap, or never made.
        Some(libc::EINVAL | libc::ENOENT) => Ok(false),
        _ => Err(error),
    }
}

fn remove_zram(device: u32, bytes: u64) -> io::Result<bool> {
    let size = match fs::read_to_string(format!("/sys/block/zram{device}/disksize")) {
        Ok(size) => size,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    // The number may be somebody else's by now: ours has our size, or none yet.
    if !matches!(size.trim().parse::<u64>(), Ok(size) if size == 0 || size == bytes) {
        return Ok(false);
    }
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match fs::write("/sys/class/zram-control/hot_remove", device.to_string()) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            other => return other.map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_needs_no_undoing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent");
        for undo in [
            Undo::RemoveCgroup { path: path.clone() },
            Undo::RemoveFile { path: path.clone() },
            Undo::RemoveZram { device: 4_000_000, bytes: 1 },
        ] {
            assert!(!undo.perform().unwrap(), "{undo:?}");
        }
        fs::write(&path, "old").unwrap();
        assert!(Undo::Restore { path: path.clone(), value: "new".into() }.perform().unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(Undo::RemoveFile { path: path.clone() }.perform().unwrap());
        assert!(!path.exists());
    }
}
