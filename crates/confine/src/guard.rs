//! What a load may take of a machine that belongs to others.

use std::path::Path;

use super::Problem;

/// What stays free on a disk beyond the run's own files: this share of the disk, and at least
/// [`DISK_BYTES`].
const DISK_SHARE: u64 = 20;
const DISK_BYTES: u64 = 256 << 20;

/// The size of a file system and what this user may still write to it, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    total: u64,
    free: u64,
}

impl Room {
    /// That of the file system of `folder`; `None` when it does not say.
    pub fn of(folder: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(folder).ok()?;
        Some(Self {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            free: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }
}

/// Refuses a load of more than half of the memory available.
pub fn memory(wanted: u64, bounded: bool, available: Option<u64>) -> Result<(), Problem> {
    let remedy = || {
        if bounded {
            "use fewer pages or references, or a smaller --memory (or --swap-size, with zram)"
        } else {
            "use fewer pages, or bound it with --memory"
        }
    };
    let refused = |what| Problem::Refused(what, remedy().to_owned());
    match available {
        None => Err(refused("the memory available is unknown (no MemAvailable in /proc/meminfo)".into())),
        Some(available) if wanted > available / 2 => Err(refused(format!(
            "a load of {wanted} bytes in memory is more than half of the {available} bytes available"
        ))),
        Some(_) => Ok(()),
    }
}

/// Refuses a file that would leave too little room on its disk.
pub fn disk(folder: &Path, wanted: u64, room: Option<Room>) -> Result<(), Problem> {
    let Some(Room { total, free }) = room else { return Ok(()) };
    let keep = (total / DISK_SHARE).max(DISK_BYTES);
    if wanted.saturating_add(keep) <= free {
        return Ok(());
    }
    Err(Problem::Refused(
        format!(
            "a file of {wanted} bytes in {} would leave less than {keep} of {free} bytes free",
            folder.display()
        ),
        "make room, or name a folder on another disk with PAGELAB_SCRATCH_DIR".into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_memory_is_the_most() {
        assert!(memory(100, true, Some(200)).is_ok());
        for available in [Some(199), None] {
            assert!(matches!(memory(100, false, available), Err(Problem::Refused(..))));
        }
        assert!(memory(u64::MAX, false, Some(u64::MAX)).is_err());
    }

    #[test]
    fn a_disk_keeps_a_twentieth() {
        let gib = 1u64 << 30;
        let room = Some(Room { total: 100 * gib, free: 10 * gib });
        assert!(disk(Path::new("/x"), 5 * gib, room).is_ok());
        assert!(disk(Path::new("/x"), 5 * gib + 1, room).is_err());
        assert!(disk(Path::new("/x"), u64::MAX, room).is_err());
        assert!(disk(Path::new("/x"), u64::MAX, None).is_ok());
        assert!(disk(Path::new("/x"), 1, Some(Room { total: gib, free: DISK_BYTES })).is_err());
    }
}
