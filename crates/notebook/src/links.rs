//! Links that others have planted on the way to a file that is to be written.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Links that lead to links, at most.
pub const MAX_LINKS: usize = 16;
/// The mode bits of a folder in which everybody may write, but only remove what is theirs.
const EVERYBODYS: u32 = 0o1002;

/// Refuses a path of which any part is a link that another user has put into a folder where
/// everybody may write (as the kernel's fs.protected_symlinks has it), and the same of what such
/// links name.
///
/// # Errors
/// When there is such a link, or one cannot be followed.
pub fn refuse_planted(path: &Path) -> io::Result<()> {
    // A process's folder belongs to its effective user.
    let own = fs::metadata("/proc/self").map(|own| own.uid());
    refuse(path, MAX_LINKS, &own)
}

fn refuse(path: &Path, links: usize, own: &io::Result<u32>) -> io::Result<()> {
    let mut part = PathBuf::new();
    for component in path.components() {
        let around = if part.as_os_str().is_empty() { PathBuf::from(".") } else { part.clone() };
        part.push(component);
        let there = match fs::symlink_metadata(&part) {
            Ok(there) => there,
            // What is missing is made, or reported, by whoever opens it.
            Err(_) => return Ok(()),
        };
        if !there.is_symlink() {
            continue;
        }
        if links == 0 {
            return Err(too_many());
        }
        let shared = fs::metadata(&around)?;
        let everybody = shared.mode() & EVERYBODYS == EVERYBODYS;
        let ours = own.as_ref().is_ok_and(|own| there.uid() == *own);
        if everybody && !ours && there.uid() != shared.uid() {
            let text = format!("{} is a link made by another user", part.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        refuse(&around.join(fs::read_link(&part)?), links - 1, own)?;
    }
    Ok(())
}

/// Links lead in a circle, or nearly.
pub fn too_many() -> io::Error {
    io::Error::other("too many levels of links")
}
