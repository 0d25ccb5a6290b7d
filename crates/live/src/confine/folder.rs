//! The folders that pagelab keeps its files in, which nobody else may write.

use std::io;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The folder for swap and scratch files: `PAGELAB_SCRATCH_DIR`, else `/var/tmp/pagelab`, with the
/// user's number behind it for others than root. It may not be there yet.
pub(crate) fn scratch_path() -> PathBuf {
    env::var_os("PAGELAB_SCRATCH_DIR").map_or_else(
        || match rustix::process::geteuid() {
            root if root.is_root() => PathBuf::from("/var/tmp/pagelab"),
            user => PathBuf::from(format!("/var/tmp/pagelab-{}", user.as_raw())),
        },
        PathBuf::from,
    )
}

/// The folder for swap and scratch files, made when absent, for this user alone.
pub(crate) fn scratch_folder() -> io::Result<PathBuf> {
    let folder = scratch_path();
    own_folder(&folder, "PAGELAB_SCRATCH_DIR")?;
    // The journal names files in it, which the next start may look for from anywhere.
    folder.canonicalize()
}

/// Makes `folder` for this user alone, or checks that it is this user's: a folder in /var/tmp could
/// have been put there by somebody else. `variable` names another folder in its place.
pub(super) fn own_folder(folder: &Path, variable: &str) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", folder.display()));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(named)?;
    let found = fs::symlink_metadata(folder).map_err(named)?;
    let mine =
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
    if mine {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "{} is not a folder that only this user can write; remove it, or name another with {variable}",
            folder.display()
        )))
    }
}
