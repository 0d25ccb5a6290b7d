//! Swap of the run's own: a file, made, used, and removed again.
//!
//! It has the highest priority, so the load's pages go there and not to the machine's own swap. The
//! format is the kernel's (include/linux/swap.h): a header page with a magic word, a version and the
//! number of the last page. Its label says that it is pagelab's: nothing without it is ever taken out of use.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, IFlags, fallocate, ioctl_getflags, ioctl_setflags};

use super::journal::Journal;
use super::undo::Undo;
use crate::region::page_size;

/// The highest priority that a swap area can have.
const PRIORITY: i32 = 0x7fff;
const PREFER: i32 = 0x8000;
/// The volume's name in the header, and where it begins.
const LABEL: &[u8; 16] = b"pagelab\0\0\0\0\0\0\0\0\0";
const LABEL_AT: usize = 1024 + 3 * 4 + 16;

/// Why there is no swap.
#[derive(Debug)]
pub enum Problem {
    /// This machine or user cannot have it; the reason.
    Unavailable(String),
    /// It went wrong.
    Failed(String, io::Error),
}

/// Whether this process may switch swap on (`CAP_SYS_ADMIN`, bit 21 of its effective capabilities).
pub fn permitted() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> 21 & 1 == 1)
}

/// Makes a swap file of `bytes` bytes in `folder` and switches it on.
pub fn file(folder: &Path, bytes: u64, journal: &mut Journal) -> Result<(), Problem> {
    let path = folder.join(format!("{}.swap", journal.name()));
    let doing = |what: &str| format!("{what} the swap file {}", path.display());
    let noted = |e| Problem::Failed("the journal of the set-up cannot be written".into(), e);
    journal.enter(Undo::RemoveFile { path: path.clone() }).map_err(noted)?;
    make(&path, bytes).map_err(|e| Problem::Failed(doing("making"), e))?;
    journal.enter(Undo::SwapOff { path: path.clone() }).map_err(noted)?;
    match on(&path) {
        Ok(()) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let _ = journal.undo_last();
            Err(Problem::Unavailable(format!(
                "the file system of {} cannot hold a swap file; name a folder on another (ext4, xfs) with PAGELAB_SCRATCH_DIR, or use --swap zram",
                folder.display()
            )))
        }
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            let _ = journal.undo_last();
            Err(Problem::Unavailable("the kernel does not let this process switch swap on".into()))
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
    journal
        .enter(Undo::SwapOff { path: path.to_owned() })
        .map_err(|e| Problem::Failed("the journal of the set-up cannot be written".into(), e))?;
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

/// Makes `file`, `bytes` long, a swap area.
pub fn write_header(file: &File, bytes: u64) -> io::Result<()> {
    file.write_all_at(&header(page_size(), bytes)?, 0)
}

fn header(page: usize, bytes: u64) -> io::Result<Vec<u8>> {
    let last = u32::try_from(bytes / page as u64).ok().and_then(|pages| pages.checked_sub(1));
    let last = last
        .filter(|&last| last >= 10)
        .ok_or_else(|| io::Error::other(format!("{bytes} bytes is no size for swap")))?;
    let mut header = vec![0; page];
    header[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    header[1028..1032].copy_from_slice(&last.to_ne_bytes());
    header[LABEL_AT..LABEL_AT + LABEL.len()].copy_from_slice(LABEL);
    header[page - 10..].copy_from_slice(b"SWAPSPACE2");
    Ok(header)
}

/// Whether the swap area at `path` is one that pagelab has made.
pub fn is_labelled(path: &Path) -> bool {
    let (mut found, mut magic) = ([0; 16], [0; 10]);
    File::open(path).is_ok_and(|file| {
        file.read_exact_at(&mut found, LABEL_AT as u64).is_ok()
            && file.read_exact_at(&mut magic, page_size() as u64 - 10).is_ok()
            && (&found, &magic) == (LABEL, b"SWAPSPACE2")
    })
}

/// Whether the first page of `path` was never written.
pub fn is_blank(path: &Path) -> bool {
    let mut page = vec![1; page_size()];
    File::open(path).is_ok_and(|file| file.read_exact_at(&mut page, 0).is_ok())
        && page.iter().all(|&b| b == 0)
}

/// Whether the kernel uses `path` as swap now.
pub fn in_use(path: &Path) -> bool {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let mut used = swaps.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next());
    used.any(|name| Path::new(&unescaped(name)) == path)
}

/// A path of `/proc/swaps`, where spaces and the like are octal (`\040`).
fn unescaped(name: &str) -> String {
    let (mut path, mut rest) = (String::new(), name);
    while let Some((before, after)) = rest.split_once('\\') {
        path.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(code.map_or('\\', char::from));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    path + rest
}

/// Switches swap on with the highest priority.
pub fn on(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a terminated string and flags; the call takes nothing else.
    if unsafe { libc::swapon(name.as_ptr(), PREFER | PRIORITY) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_the_kernels() {
        let header = header(4096, 96 << 20).unwrap();
        assert_eq!(header.len(), 4096);
        assert_eq!(&header[4086..], b"SWAPSPACE2");
        assert_eq!(u32::from_ne_bytes(header[1028..1032].try_into().unwrap()), 24_575);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, &header).unwrap();
        assert!(is_labelled(&path) && !is_blank(&path));
        std::fs::write(&path, vec![0; 8192]).unwrap();
        assert!(is_blank(&path) && !is_labelled(&path));
        assert!(!in_use(&path));
        assert_eq!(unescaped(r"/a\040b\"), r"/a b\");
        assert!(super::header(4096, 4096).is_err());
        assert!(super::header(4096, u64::MAX).is_err());
    }
}
