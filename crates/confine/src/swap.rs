//! Swap of the run's own: a file, made, used, and removed again.
//!
//! It has a higher priority than all other swap, so the load's pages go there and not to the
//! machine's own. Other people's may go there too (`others`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use pagelab_kernel::files;
use pagelab_kernel::swap_area::{on, write_header};
use rustix::fs::{FallocateFlags, IFlags, fallocate, ioctl_getflags, ioctl_setflags};

use super::journal::Journal;
use super::problem::{Problem, not_noted};
use super::undo::Undo;

/// This machine or user cannot have it, and why.
pub(crate) fn unavailable(why: impl Into<String>) -> Problem {
    Problem::Unavailable("the run cannot have swap of its own".into(), why.into())
}

/// Whether this process may switch swap on (`CAP_SYS_ADMIN`, bit 21 of its effective capabilities).
pub fn permitted() -> bool {
    files::is_capable(21)
}

/// Whether the file system of `folder`, which need not be there yet, may take a swap file: those in
/// memory, of a network or over others do not (they have no block of a disk to name), the rest is
/// tried.
pub fn takes_file(folder: &Path) -> bool {
    /// tmpfs, ramfs, overlayfs, NFS, SMB, 9p, FUSE, ZFS (linux/magic.h).
    const NONE: [u32; 9] = [
        0x0102_1994,
        0x8584_58f6,
        0x794c_7630,
        0x6969,
        0xff53_4d42,
        0xfe53_4d42,
        0x0102_1997,
        0x6573_5546,
        0x2fc1_2fc1,
    ];
    let found = folder.ancestors().find_map(|folder| rustix::fs::statfs(folder).ok());
    found.is_none_or(|found| !NONE.contains(&(found.f_type as u32)))
}

/// Makes a swap file of `bytes` bytes in `folder` and switches it on.
pub fn file(folder: &Path, bytes: u64, journal: &mut Journal) -> Result<(), Problem> {
    let path = folder.join(format!("{}.swap", journal.name()));
    let doing = |what: &str| format!("{what} the swap file {}", path.display());
    journal.enter(Undo::RemoveFile { path: path.clone() }).map_err(not_noted)?;
    make(&path, bytes).map_err(|e| Problem::Failed(doing("making"), e))?;
    journal.enter(Undo::SwapOff { path: path.clone() }).map_err(not_noted)?;
    match on(&path) {
        Ok(()) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let _ = journal.undo_last();
            Err(unavailable(format!(
                "the file system of {} cannot hold a swap file\nhint: name a folder on another (ext4, xfs) with PAGELAB_SCRATCH_DIR, or use --swap zram",
                folder.display()
            )))
        }
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            let _ = journal.undo_last();
            Err(unavailable("the kernel does not let this process switch swap on"))
        }
        Err(error) => Err(Problem::Failed(doing("switching on"), error)),
    }
}

/// Makes the block device `path` swap, up to `bytes` bytes of it, and switches it on.
pub fn device(path: &Path, bytes: u64, journal: &mut Journal) -> Result<(), Problem> {
    let doing = |what: &str| format!("{what} swap on {}", path.display());
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| write_header(&file, bytes).and_then(|()| file.sync_all()))
        .map_err(|e| Problem::Failed(doing("making"), e))?;
    journal.enter(Undo::SwapOff { path: path.to_owned() }).map_err(not_noted)?;
    on(path).map_err(|e| Problem::Failed(doing("switching on"), e))
}

fn make(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    // btrfs takes no swap file that is copied on write; others do not know the flag.
    if let Ok(flags) = ioctl_getflags(&file) {
        let _ = ioctl_setflags(&file, flags | IFlags::NOCOW);
    }
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::NOTSUP) => write_zeros(&file, bytes)?,
        other => other?,
    }
    write_header(&file, bytes)?;
    file.sync_all()
}

fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(zeros.len() as u64);
        file.write_all(&zeros[..part as usize])?;
        left -= part;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_in_memory_takes_no_swap_file() {
        assert!(!takes_file(Path::new("/dev/shm/not/there")) || !Path::new("/dev/shm").is_dir());
        assert!(takes_file(Path::new("/sys/kernel/not-there")), "what is not known is tried");
    }
}
