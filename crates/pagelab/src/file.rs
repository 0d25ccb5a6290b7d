//! Writes a file that the user named, and nothing else: the one way for every output.
//!
//! A regular file is replaced wholly or not at all: by a temporary neighbour of a random name that nobody
//! else can have made, renamed when it is complete. `-` is standard output. A device or a FIFO is written to
//! and stays what it is. A link is followed to what it names, but not one that another user has put into a
//! folder where everybody may (as the kernel's fs.protected_symlinks has it): root writes into such folders,
//! too.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pagelab_notebook::links;
use pagelab_simulation::Unanswerable;
use tempfile::NamedTempFile;

use crate::failure::CommandError;

/// Whether the name stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Writes the file at `path` with what `write` writes.
///
/// # Errors
/// When it cannot be written; an older regular file is then as it was.
pub fn write(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>) -> Result<()> {
    if is_stdout(path) {
        let mut out = BufWriter::new(io::stdout());
        let written = write(&mut out).and_then(|()| Ok(out.flush()?));
        return written.context("the output cannot be written");
    }
    let named = || format!("{} cannot be written", path.display());
    let about = |written: Result<()>| match written {
        // What the user asked for cannot be meant, whatever the file.
        Err(error) if error.is::<CommandError>() || error.is::<Unanswerable>() => Err(error),
        written => written.with_context(named),
    };
    let target = match resolve(path).with_context(named)? {
        End::Opened(path) => return about(opened(&path, write)),
        End::Path(path) => path,
    };
    match fs::symlink_metadata(&target) {
        Ok(there) if there.is_file() => about(replace(&target, Some(&there), write)),
        Ok(there) if there.is_dir() => anyhow::bail!("{} is a folder", path.display()),
        Ok(there) => about(direct(&target, &there, write)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => about(replace(&target, None, write)),
        Err(e) => Err(e).with_context(named),
    }
}

/// What a name leads to.
enum End {
    /// A path that is no link, or nothing yet.
    Path(PathBuf),
    /// What a process has open: the kernel's own link to it (`/dev/stdout`, `/dev/fd/63`) names it as no path does.
    Opened(PathBuf),
}

/// What the name leads to: itself, or the end of its links.
fn resolve(path: &Path) -> io::Result<End> {
    links::refuse_planted(path)?;
    let mut path = path.to_owned();
    for _ in 0..links::MAX_LINKS {
        if !fs::symlink_metadata(&path).is_ok_and(|there| there.is_symlink()) {
            return Ok(End::Path(path));
        }
        let folder = folder(&path);
        if folder.canonicalize()?.starts_with("/proc") {
            return Ok(End::Opened(path));
        }
        let next = fs::read_link(&path)?;
        path = folder.join(next);
    }
    Err(links::too_many())
}

/// The new file at `path`, for an output that is written as it comes, such as a recording. With
/// `force`, a regular file that is there is removed first, so that no link to it is written
/// through; a device or a FIFO is opened.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] where something is there and `force` is not given, or when the file cannot be
/// created.
pub fn create(path: &Path, force: bool) -> io::Result<File> {
    let target = match resolve(path)? {
        End::Opened(path) => return OpenOptions::new().append(true).open(path),
        End::Path(path) => path,
    };
    match fs::symlink_metadata(&target) {
        Ok(there) if force && there.is_file() => fs::remove_file(&target)?,
        Ok(there) if force && !there.is_dir() => {
            let file = OpenOptions::new().write(true).open(&target)?;
            same(&file, &there)?;
            return Ok(file);
        }
        _ => {}
    }
    File::create_new(&target)
}

/// Creates the folder at `path` with those above it, where they are missing.
///
/// # Errors
/// When it cannot be created, or another user's link leads to it.
pub fn create_folder(path: &Path) -> io::Result<()> {
    links::refuse_planted(path)?;
    fs::create_dir_all(path)
}

/// Writes a regular file to `path` atomically. It replaces an existing file or link of that name
/// and does not follow the link. For folders that pagelab fills: it does not sync, because pagelab
/// can write all files of the folder again.
///
/// # Errors
/// When the file cannot be written; an older file is then unchanged.
pub fn place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(path))?;
    new.write_all(bytes)?;
    new.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// The prefix of the names of temporary files.
const TEMPORARY: &str = ".pagelab-";

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Puts a new file in the place of the regular one, or where there was none.
fn replace(
    path: &Path,
    old: Option<&Metadata>,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>,
) -> Result<()> {
    let mode = old.map_or(0o666, Metadata::mode) & 0o777;
    let made = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder(path));
    let new = match (made, old) {
        // A file of ours in a folder that is not: it cannot be replaced, but written.
        (Err(e), Some(old)) if e.kind() == io::ErrorKind::PermissionDenied => {
            return in_place(path, old, write);
        }
        (made, _) => made?,
    };
    if let Some(old) = old {
        // The umask has cut the new one's mode; and root leaves a file to whom it belongs.
        let file = new.as_file();
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    let mut out = BufWriter::new(new);
    write(&mut out)?;
    let new: NamedTempFile = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    new.as_file().sync_all()?;
    match old {
        Some(_) => new.persist(path).map_err(|e| e.error)?,
        // What came there meanwhile is somebody else's.
        None => new.persist_noclobber(path).map_err(|e| e.error)?,
    };
    Ok(())
}

fn in_place(
    path: &Path,
    old: &Metadata,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>,
) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    same(&file, old)?;
    file.set_len(0)?;
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    Ok(out.flush()?)
}

/// Writes to what a process has open. Of a file nothing is lost: it goes on at its end.
fn opened(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::new(OpenOptions::new().append(true).open(path)?);
    write(&mut out)?;
    Ok(out.flush()?)
}

/// Writes to a device or a FIFO.
fn direct(
    path: &Path,
    there: &Metadata,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>,
) -> Result<()> {
    let kind = there.file_type();
    if !kind.is_char_device() && !kind.is_fifo() {
        anyhow::bail!("it is neither a file nor a character device nor a FIFO");
    }
    let file = OpenOptions::new().write(true).open(path)?;
    same(&file, there)?;
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    Ok(out.flush()?)
}

/// Whether what was opened is what was looked at.
pub fn same(file: &File, looked_at: &Metadata) -> io::Result<()> {
    let opened = file.metadata()?;
    if (opened.dev(), opened.ino()) == (looked_at.dev(), looked_at.ino()) {
        Ok(())
    } else {
        Err(io::Error::other("it was replaced while pagelab opened it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn put(path: &Path, text: &'static str) -> Result<()> {
        write(path, |out| Ok(out.write_all(text.as_bytes())?))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_regular_file_is_replaced_with_its_mode_and_neighbours_are_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        let neighbour = folder.path().join("page.html.new");
        fs::write(&neighbour, "mine").unwrap();
        put(&path, "one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        put(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&neighbour).unwrap(), "mine");
        assert_eq!(names(folder.path()), ["page.html", "page.html.new"]);
    }

    #[test]
    fn what_fails_half_way_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        put(&path, "old").unwrap();
        let half = write(&path, |out| {
            out.write_all(b"half")?;
            anyhow::bail!("no more")
        });
        assert!(half.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["page.html"]);
    }

    #[test]
    fn a_link_of_ones_own_is_followed_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        symlink("real", &link).unwrap();
        put(&link, "through a link to nothing yet").unwrap();
        put(&link, "again").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "again");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let round = folder.path().join("round");
        symlink("round", &round).unwrap();
        assert!(format!("{:#}", put(&round, "x").unwrap_err()).contains("links"));
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(put(folder.path(), "x").unwrap_err().to_string().contains("is a folder"));
        assert!(put(&folder.path().join("no/such"), "x").is_err());
    }
}
