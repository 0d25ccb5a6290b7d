//! A folder as the root of what the user's programs see: how the worker enters it in a guest, and
//! what is at a place in it, seen from outside.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use serde::{Deserialize, Serialize};

/// A root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// The folder.
    pub folder: PathBuf,
    /// Where its programs begin, seen from inside.
    pub inside: PathBuf,
    /// The folders in which programs are looked for (`PATH`), seen from inside.
    pub path: String,
}

impl Root {
    /// Makes it this process's root.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enter(&self) -> io::Result<()> {
        rustix::process::chroot(&self.folder)?;
        Ok(rustix::process::chdir(&self.inside)?)
    }
}

/// Opens `path` as a process with the root `root` finds it: no link leads out.
///
/// # Errors
/// When it is not there, cannot be read, or the kernel is older than 5.6.
pub fn open_in(root: &Path, path: &Path) -> io::Result<File> {
    let folder = File::open(root)?;
    let below = path.strip_prefix("/").unwrap_or(path);
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(File::from(openat2(&folder, below, flags, Mode::empty(), ResolveFlags::IN_ROOT)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_within_the_root() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(root.path().join("etc/hostname"), "inside").unwrap();
        symlink("/etc/hostname", root.path().join("absolute")).unwrap();
        symlink("../../../../etc/hostname", root.path().join("upwards")).unwrap();
        for path in ["/etc/hostname", "/absolute", "/upwards"] {
            let mut text = String::new();
            open_in(root.path(), Path::new(path)).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{path}");
        }
        assert!(open_in(root.path(), Path::new("/etc/passwd")).is_err());
    }
}
