//! The folders that pagelab keeps its files in, which nobody else may write.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::{env, fs};

/// The folder for swap and scratch files: `PAGELAB_SCRATCH_DIR`, else `/var/tmp/pagelab`, with the
/// user's number behind it for others than root. It may not be there yet.
pub fn scratch_path() -> PathBuf {
    env::var_os("PAGELAB_SCRATCH_DIR").map_or_else(
        || match rustix::process::geteuid() {
            root if root.is_root() => PathBuf::from("/var/tmp/pagelab"),
            user => PathBuf::from(format!("/var/tmp/pagelab-{}", user.as_raw())),
        },
        PathBuf::from,
    )
}

/// The folder for swap and scratch files, made when absent, for this user alone.
pub fn scratch_folder() -> io::Result<PathBuf> {
    let folder = scratch_path();
    own_folder(&folder, "PAGELAB_SCRATCH_DIR")?;
    // The journal names files in it, which the next start may look for from anywhere.
    folder.canonicalize()
}

/// Makes `folder` for this user alone, or checks that it is this user's: a folder in /var/tmp could
/// have been put there by somebody else, and the owner of a folder above it can exchange it.
/// `variable` names another folder in its place.
pub(crate) fn own_folder(folder: &Path, variable: &str) -> io::Result<()> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", folder.display()));
    check_way(folder, variable)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(named)?;
    check_way(folder, variable)?;
    let found = fs::symlink_metadata(folder).map_err(named)?;
    let mine =
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
    if mine {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "{} is not a folder that only this user can write\nhint: remove it, or name another with {variable}",
            folder.display()
        )))
    }
}

/// The most links on the way to a folder, as in the kernel.
const MAX_LINKS: usize = 40;

/// Checks each folder and link on the way to `folder`, as far as they are there: nobody but this
/// user and root owns one, and none is a folder in which everybody may rename.
fn check_way(folder: &Path, variable: &str) -> io::Result<()> {
    let named = |path: &Path, e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    // In a user namespace root may have another number.
    let root = fs::symlink_metadata("/").map_err(|e| named(Path::new("/"), e))?.uid();
    let trusted = [0, root, rustix::process::geteuid().as_raw()];
    let parts = |path: &Path| -> VecDeque<OsString> {
        path.components().map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut ahead = parts(&std::path::absolute(folder)?);
    let mut at = PathBuf::new();
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        if Path::new(&part).components().next() == Some(Component::ParentDir) {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let found = match fs::symlink_metadata(&next) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(|e| named(&next, e))?,
        };
        let open = found.is_dir() && found.mode() & 0o1002 == 0o002;
        if !trusted.contains(&found.uid()) || (open && !ahead.is_empty()) {
            return Err(io::Error::other(format!(
                "another user can replace {} on the way to {}\nhint: name another folder with {variable}",
                next.display(),
                folder.display()
            )));
        }
        if found.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(named(&next, rustix::io::Errno::LOOP.into()));
            }
            for part in parts(&fs::read_link(&next).map_err(|e| named(&next, e))?).into_iter().rev() {
                ahead.push_front(part);
            }
        } else {
            at = next;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    #[test]
    fn a_folder_below_one_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let allowed = |name: &str| own_folder(&at(name), "VARIABLE");
        let refused = |name: &str| {
            let error = allowed(name).unwrap_err().to_string();
            assert!(error.contains("another user can replace") && error.contains("VARIABLE"), "{error}");
        };
        allowed("own/deep/state").unwrap();
        fs::create_dir_all(at("theirs/given")).unwrap();
        lchown(at("theirs"), Some(65_534), None).unwrap();
        refused("theirs/given");
        refused("theirs/new/state");
        assert!(!at("theirs/new").exists(), "nothing is made there");
        // Links on the way, in whatever folder, lead there or are theirs.
        symlink("../own", at("theirs/back")).unwrap();
        refused("theirs/back/state");
        symlink("theirs/back", at("link")).unwrap();
        refused("link/state");
        symlink("own", at("other")).unwrap();
        allowed("other/state").unwrap();
        lchown(at("other"), Some(65_534), None).unwrap();
        refused("other/state");
        symlink("loop", at("loop")).unwrap();
        assert!(allowed("loop/state").is_err());
        // In a shared folder others can rename what is not theirs, unless it is sticky.
        fs::create_dir_all(at("shared/state")).unwrap();
        let mode = |mode| fs::set_permissions(at("shared"), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o777);
        refused("shared/state");
        mode(0o1777);
        allowed("shared/state").unwrap();
    }
}
