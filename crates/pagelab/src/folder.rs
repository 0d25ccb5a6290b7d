//! A folder that pagelab fills, such as a site. A list in the folder names the files that pagelab
//! wrote there; pagelab replaces and removes no others.
//!
//! pagelab writes a file's name into the list before it writes the file. If pagelab is killed while
//! it writes, the next run therefore knows the file. pagelab keeps the folder open and reaches it
//! through `/proc/self/fd`, so that nobody can substitute another folder during the run.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::failure::usage;
use crate::file;
use crate::output::SCHEMA_VERSION;

/// The maximum size of a list.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// A folder that is kept open.
struct Pinned {
    path: PathBuf,
    _open: File,
}

impl Pinned {
    /// Opens a folder, but not a symbolic link to one.
    fn open(path: &Path) -> io::Result<Self> {
        if !fs::symlink_metadata(path)?.is_dir() {
            return Err(io::Error::other("it is not a folder"));
        }
        let open = File::open(path)?;
        file::same(&open, &fs::symlink_metadata(path)?)?;
        Ok(Self { path: format!("/proc/self/fd/{}", open.as_raw_fd()).into(), _open: open })
    }
}

/// The folder, with its only subfolder.
pub struct Folder {
    /// The path as the user gave it.
    shown: PathBuf,
    top: Pinned,
    /// The name of the subfolder.
    below: &'static str,
    inner: Option<Pinned>,
    /// The name of the list.
    list: &'static str,
    /// The files that pagelab wrote there earlier.
    old: BTreeSet<String>,
    /// The files that this run may write.
    new: BTreeSet<String>,
    /// Whether this run created the folder.
    made: bool,
}

impl Folder {
    /// Opens the folder at `path`, or creates it. `files` are the files to write, some of them in
    /// the subfolder `below`; `list` is the name of the file that lists them.
    ///
    /// # Errors
    /// When the folder cannot be opened, is not empty but has no list, has a file to write that is
    /// not on the list, or another user's link leads to it.
    pub fn open(
        path: &Path,
        below: &'static str,
        list: &'static str,
        files: impl IntoIterator<Item = String>,
    ) -> Result<Self> {
        let failed = || format!("{} cannot be written", path.display());
        let made = !path.exists();
        file::create_folder(path).with_context(failed)?;
        // The path may contain the user's own links.
        let real = path.canonicalize().with_context(failed)?;
        let top = Pinned::open(&real).with_context(failed)?;
        let new = files.into_iter().collect();
        let mut folder =
            Self { shown: path.to_owned(), top, below, inner: None, list, old: BTreeSet::new(), new, made };
        folder.take_over()?;
        Ok(folder)
    }

    /// Reads the list. Refuses a folder without a list that is not empty, and a file to write that
    /// exists but is not on the list.
    fn take_over(&mut self) -> Result<()> {
        let shown = self.shown.display();
        match self.read_list()? {
            Some(old) => self.old = old,
            None if fs::read_dir(&self.top.path).with_context(|| self.cannot(""))?.next().is_some() => {
                return Err(usage(format!(
                    "{shown} is not empty, and pagelab did not write what is in it\nhint: name a new folder"
                )));
            }
            None => {}
        }
        let inner = self.top.path.join(self.below);
        match fs::symlink_metadata(&inner) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            _ => self.inner = Some(Pinned::open(&inner).with_context(|| self.cannot(self.below))?),
        }
        let foreign = |name: &&String| {
            let path = self.place(name);
            !self.old.contains(*name) && path.is_some_and(|path| fs::symlink_metadata(path).is_ok())
        };
        if let Some(foreign) = self.new.iter().find(foreign) {
            return Err(usage(format!(
                "{}/{foreign} is not a file that pagelab wrote\nhint: name a new folder",
                self.shown.display()
            )));
        }
        Ok(())
    }

    /// The names on the list; none without a list.
    fn read_list(&self) -> Result<Option<BTreeSet<String>>> {
        let path = self.top.path.join(self.list);
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_file() => {}
            _ => return Ok(None),
        }
        let unread = || format!("{} cannot be read", self.shown.join(self.list).display());
        let mut text = String::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_LIST_BYTES).read_to_string(&mut text));
        read.with_context(unread)?;
        let list: Value = serde_json::from_str(&text).with_context(unread)?;
        let names = list["files"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // Somebody else may have changed the list: ignore names that lead out of the folder.
        Ok(Some(names.filter(|name| self.is_within(name)).map(str::to_owned).collect()))
    }

    /// Whether the name is that of a file in this folder or in its subfolder.
    fn is_within(&self, name: &str) -> bool {
        let name = name.strip_prefix(self.below).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
        !name.is_empty()
            && name != self.list
            && name != self.below
            && !name.starts_with('.')
            && !name.contains(['/', '\0'])
    }

    /// The path of a file; none while its subfolder is missing.
    fn place(&self, name: &str) -> Option<PathBuf> {
        match name.strip_prefix(self.below).and_then(|rest| rest.strip_prefix('/')) {
            Some(rest) => self.inner.as_ref().map(|inner| inner.path.join(rest)),
            None => Some(self.top.path.join(name)),
        }
    }

    /// Adds the files to write to the list on disk and creates the subfolder.
    ///
    /// # Errors
    /// When the list or the subfolder cannot be written.
    pub fn begin(&mut self) -> Result<()> {
        self.write_list(self.old.union(&self.new))?;
        if self.inner.is_none() {
            let inner = self.top.path.join(self.below);
            let made = fs::create_dir(&inner).and_then(|()| Pinned::open(&inner));
            self.inner = Some(made.with_context(|| self.cannot(self.below))?);
        }
        Ok(())
    }

    fn write_list<'a>(&self, names: impl Iterator<Item = &'a String>) -> Result<()> {
        let list = json!({ "schema_version": SCHEMA_VERSION, "files": names.collect::<Vec<_>>() });
        let text = format!("{list:#}\n");
        file::place(&self.top.path.join(self.list), text.as_bytes()).with_context(|| self.cannot(self.list))
    }

    fn cannot(&self, name: &str) -> String {
        format!("{} cannot be written", self.shown.join(name).display())
    }

    /// Writes one of the announced files, unless it already has this content. Returns whether the
    /// content changed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<bool> {
        assert!(self.new.contains(name), "{name} was not announced");
        let path = self.place(name).expect("the folder was begun");
        let is_file = fs::symlink_metadata(&path)
            .is_ok_and(|there| there.is_file() && there.len() == text.len() as u64);
        if is_file && fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(false);
        }
        file::place(&path, text.as_bytes()).with_context(|| self.cannot(name))?;
        Ok(true)
    }

    /// Removes the older files that this run did not write, and shortens the list accordingly.
    /// `unwritten` are the announced files that this run did not write. Returns the number of
    /// removed files.
    ///
    /// # Errors
    /// When a file cannot be removed or the list cannot be written.
    pub fn end(mut self, unwritten: &[String]) -> Result<usize> {
        self.new.retain(|name| !unwritten.contains(name));
        let mut removed = 0;
        for name in self.old.difference(&self.new) {
            removed += usize::from(self.remove(name)?);
        }
        self.write_list(self.new.iter())?;
        Ok(removed)
    }

    fn remove(&self, name: &str) -> Result<bool> {
        let Some(path) = self.place(name) else { return Ok(false) };
        match fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => {
                Err(e).with_context(|| format!("{} cannot be removed", self.shown.join(name).display()))
            }
        }
    }

    /// Gives up. If the older site has an `index`, all files stay, new ones included. Otherwise
    /// this removes the new files, and the folder if this run created it.
    pub fn abandon(self, index: &str) {
        if self.old.contains(index) {
            return;
        }
        // The list still names the files that cannot be removed.
        let all_removed = self.new.iter().all(|name| self.remove(name).is_ok());
        if all_removed && self.old.is_empty() {
            let _ = fs::remove_dir(self.top.path.join(self.below));
            let _ = fs::remove_file(self.top.path.join(self.list));
            if self.made {
                let _ = fs::remove_dir(&self.shown);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path, names: &[&str]) -> Result<Folder> {
        Folder::open(path, "runs", "list.json", names.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn a_first_site_that_is_given_up_leaves_nothing() {
        let lab = tempfile::tempdir().unwrap();
        let path = lab.path().join("public");
        let mut folder = open(&path, &["index.html", "runs/a.html"]).unwrap();
        folder.begin().unwrap();
        assert!(folder.write("runs/a.html", "a").unwrap());
        folder.abandon("index.html");
        assert!(!path.exists());
        // A folder that existed stays, empty.
        fs::create_dir(&path).unwrap();
        let mut folder = open(&path, &["index.html"]).unwrap();
        folder.begin().unwrap();
        folder.abandon("index.html");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn a_later_site_that_is_given_up_leaves_the_older_one() {
        let lab = tempfile::tempdir().unwrap();
        let mut folder = open(lab.path(), &["index.html", "runs/a.html"]).unwrap();
        folder.begin().unwrap();
        folder.write("runs/a.html", "a").unwrap();
        folder.write("index.html", "old").unwrap();
        assert_eq!(folder.end(&[]).unwrap(), 0);
        let mut folder = open(lab.path(), &["index.html", "runs/b.html"]).unwrap();
        folder.begin().unwrap();
        folder.write("runs/b.html", "b").unwrap();
        folder.abandon("index.html");
        for name in ["index.html", "runs/a.html", "runs/b.html"] {
            assert!(lab.path().join(name).exists(), "{name}");
        }
        // The next site knows the files of both.
        let mut folder = open(lab.path(), &["index.html", "runs/c.html"]).unwrap();
        folder.begin().unwrap();
        folder.write("index.html", "new").unwrap();
        assert_eq!(folder.end(&["runs/c.html".to_owned()]).unwrap(), 2);
        assert_eq!(fs::read_dir(lab.path().join("runs")).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_did_not_change_is_left() {
        let lab = tempfile::tempdir().unwrap();
        let mut folder = open(lab.path(), &["index.html"]).unwrap();
        folder.begin().unwrap();
        assert!(folder.write("index.html", "one").unwrap());
        assert!(!folder.write("index.html", "one").unwrap());
        assert!(folder.write("index.html", "two").unwrap());
    }
}
