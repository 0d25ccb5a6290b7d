//! A folder that pagelab fills by itself, such as a site's: a list in it names the files that pagelab wrote there, and
//! no others are replaced or removed.
//!
//! The list names a file before the file is written, so that one that was being written when pagelab was killed is
//! known to the next. A folder is held open and reached by the kernel's own link to it, so that nobody can put another
//! one in its place meanwhile.

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

/// The most bytes of a list.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// A folder that is held open.
struct Pinned {
    path: PathBuf,
    _open: File,
}

impl Pinned {
    /// Opens a folder that is no link itself.
    fn open(path: &Path) -> io::Result<Self> {
        if !fs::symlink_metadata(path)?.is_dir() {
            return Err(io::Error::other("it is not a folder"));
        }
        let open = File::open(path)?;
        file::same(&open, &fs::symlink_metadata(path)?)?;
        Ok(Self { path: format!("/proc/self/fd/{}", open.as_raw_fd()).into(), _open: open })
    }
}

/// The folder, with the one folder below it that it may have.
pub struct Folder {
    /// As the user named it.
    shown: PathBuf,
    top: Pinned,
    /// The name of the folder below it.
    below: &'static str,
    inner: Option<Pinned>,
    /// The name of the list.
    list: &'static str,
    /// The files that pagelab wrote there before.
    old: BTreeSet<String>,
    /// Those that it writes now.
    new: BTreeSet<String>,
    /// Whether there was no folder before.
    made: bool,
}

impl Folder {
    /// Opens the folder at `path`, created where it is missing, in which pagelab keeps a `list` of the `files` that it
    /// is to write, some of them in the folder `below` it.
    ///
    /// # Errors
    /// When it cannot be opened, has something in it that pagelab did not write, or another user's link leads to it.
    pub fn open(
        path: &Path,
        below: &'static str,
        list: &'static str,
        files: impl IntoIterator<Item = String>,
    ) -> Result<Self> {
        let failed = || format!("{} cannot be written", path.display());
        let made = !path.exists();
        file::create_folder(path).with_context(failed)?;
        // The user may name it by a link of their own.
        let real = path.canonicalize().with_context(failed)?;
        let top = Pinned::open(&real).with_context(failed)?;
        let new = files.into_iter().collect();
        let mut folder =
            Self { shown: path.to_owned(), top, below, inner: None, list, old: BTreeSet::new(), new, made };
        folder.take_over()?;
        Ok(folder)
    }

    /// Reads the list, and refuses whatever is not on it.
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

    /// The names on the list; none where there is no list.
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
        // Whoever wrote the list: it leads nowhere else.
        Ok(Some(names.filter(|name| self.is_within(name)).map(str::to_owned).collect()))
    }

    /// Whether the name is that of a file in this folder, or in the one below it.
    fn is_within(&self, name: &str) -> bool {
        let name = name.strip_prefix(self.below).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
        !name.is_empty()
            && name != self.list
            && name != self.below
            && !name.starts_with('.')
            && !name.contains(['/', '\0'])
    }

    /// Where a file is; none as long as its folder is missing.
    fn place(&self, name: &str) -> Option<PathBuf> {
        match name.strip_prefix(self.below).and_then(|rest| rest.strip_prefix('/')) {
            Some(rest) => self.inner.as_ref().map(|inner| inner.path.join(rest)),
            None => Some(self.top.path.join(name)),
        }
    }

    /// Names the files that are to be written on the list, beside those that were.
    ///
    /// # Errors
    /// When that cannot be written.
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

    /// Writes a file of those that were named; whether it differs from what was there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<bool> {
        assert!(self.new.contains(name), "{name} was not named");
        let path = self.place(name).expect("the folder was begun");
        let is_file = fs::symlink_metadata(&path)
            .is_ok_and(|there| there.is_file() && there.len() == text.len() as u64);
        if is_file && fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(false);
        }
        file::place(&path, text.as_bytes()).with_context(|| self.cannot(name))?;
        Ok(true)
    }

    /// Removes the files that were written before and not now, and those of the named ones that `unwritten` has; how
    /// many there were.
    ///
    /// # Errors
    /// When one cannot be removed.
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

    /// Gives up. What was there before stays, with the new files among it; of a folder that had nothing, nothing is
    /// left.
    pub fn abandon(self, index: &str) {
        if self.old.contains(index) {
            return;
        }
        // What cannot be removed is on the list.
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
        // A folder that was there stays, empty.
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
        // The next one knows what each of them wrote.
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
