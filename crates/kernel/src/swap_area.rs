//! Swap areas: their format, whether one is pagelab's, switching one on.
//!
//! The format is the kernel's (include/linux/swap.h): a header page with a magic word, a version,
//! the number of the last page and a label. By its label an area is known as pagelab's: nothing
//! without it is ever taken out of use.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::region::page_size;

/// The highest priority that a swap area can have.
const HIGHEST: i32 = 0x7fff;
const PREFER: i32 = 0x8000;

/// The volume's name in the header, and where it begins.
const LABEL: &[u8; 16] = b"pagelab\0\0\0\0\0\0\0\0\0";
const LABEL_AT: usize = 1024 + 3 * 4 + 16;

/// Makes `file`, `bytes` long, a swap area.
pub fn write_header(file: &File, bytes: u64) -> io::Result<()> {
    file.write_all_at(&header(page_size(), bytes)?, 0)
}

fn header(page: usize, bytes: u64) -> io::Result<Vec<u8>> {
    let last = u32::try_from(bytes / page as u64).ok().and_then(|pages| pages.checked_sub(1));
    let last = last
        .filter(|&last| last >= 10)
        .ok_or_else(|| io::Error::other(format!("{bytes} bytes is not a valid size for swap")))?;
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

/// A swap area in use.
#[derive(Debug, PartialEq, Eq)]
struct Area {
    path: PathBuf,
    /// Bytes.
    size: u64,
    /// Bytes.
    used: u64,
    priority: i32,
}

/// The areas of a text of `/proc/swaps`.
fn areas(swaps: &str) -> impl Iterator<Item = Area> {
    swaps.lines().skip(1).filter_map(|line| {
        let mut parts = line.split_ascii_whitespace();
        let path = PathBuf::from(unescaped(parts.next()?));
        let mut numbers = parts.skip(1);
        let mut bytes = || numbers.next()?.parse::<u64>().ok()?.checked_mul(1024);
        let (size, used) = (bytes()?, bytes()?);
        Some(Area { path, size, used, priority: numbers.next()?.parse().ok()? })
    })
}

fn swaps() -> String {
    crate::files::text("/proc/swaps").unwrap_or_default()
}

/// What the kernel uses as swap now.
pub fn all() -> Vec<PathBuf> {
    areas(&swaps()).map(|area| area.path).collect()
}

/// The bytes of all swap; `None` where the kernel does not say.
pub fn total() -> Option<u64> {
    let text = crate::files::text("/proc/swaps").ok()?;
    Some(areas(&text).map(|area| area.size).sum())
}

/// Whether the kernel uses `path` as swap now.
pub fn in_use(path: &Path) -> bool {
    areas(&swaps()).any(|area| area.path == path)
}

/// Bytes used of the swap area `path`; `None` when it is not in use.
pub fn used(path: &Path) -> Option<u64> {
    areas(&swaps()).find(|area| area.path == path).map(|area| area.used)
}

/// Bytes free in all swap areas but `path`.
pub fn free_beside(path: &Path) -> u64 {
    let swaps = swaps();
    let others = areas(&swaps).filter(|area| area.path != path);
    others.map(|area| area.size.saturating_sub(area.used)).sum()
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

/// The priority of a new area among those of a text of `/proc/swaps`: the lowest above them all.
fn priority(swaps: &str) -> i32 {
    areas(swaps).map(|area| area.priority).fold(0, i32::max).saturating_add(1).min(HIGHEST)
}

/// Switches swap on, with the lowest priority at which the load's pages go there and to no other swap.
pub fn on(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a terminated string and flags; the call takes nothing else.
    if unsafe { libc::swapon(name.as_ptr(), PREFER | priority(&swaps())) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Switches swap off; `false` where it was not in use as swap.
///
/// # Errors
/// When the kernel refuses.
pub fn off(path: &Path) -> io::Result<bool> {
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
        let swaps =
            "Filename\tType\tSize\tUsed\tPriority\n/a\\040b file\t\t64\t8\t-2\n/dev/c partition 1 1 5\n";
        let area = |path: &str, size, used, priority| Area { path: path.into(), size, used, priority };
        let found: Vec<_> = areas(swaps).collect();
        assert_eq!(found, [area("/a b", 65_536, 8192, -2), area("/dev/c", 1024, 1024, 5)]);
        assert_eq!((priority(""), priority(swaps)), (1, 6));
        assert!(super::header(4096, 4096).is_err());
        assert!(super::header(4096, u64::MAX).is_err());
    }
}
