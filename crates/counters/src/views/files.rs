//! The files and directories that fill the page cache: sums, sorting and tables. The kernel crate's
//! `cached_files` collects the bytes of each file.

use std::collections::BTreeMap;

use serde::Serialize;

use super::prstat::size;
use super::{Described, Width};
use crate::select::Selection;
use crate::tree::Snapshot;

/// Bytes of a file, or of all files below a directory; None if any part is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// In the page cache.
    pub cached: u64,
    /// Of these, dirty or under writeback.
    pub dirty: Option<u64>,
    /// Of these, mapped by a process.
    pub mapped: Option<u64>,
    /// Of these, on the active list.
    pub active: Option<u64>,
    /// Evicted recently: reading them now would be a refault.
    pub evicted: Option<u64>,
}

impl Bytes {
    /// The sum over no files.
    pub const NONE: Self =
        Self { cached: 0, dirty: Some(0), mapped: Some(0), active: Some(0), evicted: Some(0) };

    /// Adds the bytes of other files.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        self.cached = self.cached.saturating_add(other.cached);
        self.dirty = sum(self.dirty, other.dirty);
        self.mapped = sum(self.mapped, other.mapped);
        self.active = sum(self.active, other.active);
        self.evicted = sum(self.evicted, other.evicted);
    }
}

/// A file or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its path, as far as it is known.
    pub name: String,
    /// Its bytes; for a directory, those of all files below it.
    #[serde(flatten)]
    pub bytes: Bytes,
}

/// Why a file or directory was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A symbolic link.
    Link,
    /// A device, pipe or socket.
    Special,
    /// It vanished before it was opened.
    Vanished,
    /// A file that the user may not read.
    UnreadableFile,
    /// A directory that the user may not read.
    UnreadableDirectory,
    /// A pseudo file system, without page cache.
    Pseudo,
    /// Another hard link to a counted file.
    Again,
    /// The kernel hides its cached pages.
    Unknown,
}

impl Reason {
    /// The reason in words, for the summary.
    fn words(self) -> &'static str {
        match self {
            Self::Link => "symbolic links",
            Self::Special => "devices, pipes and sockets",
            Self::Vanished => "vanished",
            Self::UnreadableFile => "files that the user may not read",
            Self::UnreadableDirectory => "directories that the user may not read",
            Self::Pseudo => "file systems without page cache",
            Self::Again => "hard links to counted files",
            Self::Unknown => "files whose pages the kernel hides",
        }
    }
}

/// The maximum number of names kept per [`Reason`].
const NAMES: usize = 20;

/// The files and directories skipped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Their number.
    pub count: u64,
    /// The first names.
    pub names: Vec<String>,
}

/// The files examined by one thread, or by all threads after [`Looked::merge`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The number of files examined.
    pub looked_at: u64,
    /// The number of these files with cached pages.
    pub with_pages: u64,
    /// The bytes of all files.
    pub total: Bytes,
    /// The bytes of the files directly in each directory.
    pub directories: BTreeMap<String, Bytes>,
    /// The files with the most cached bytes, unsorted.
    largest: Vec<Row>,
    keep: usize,
    /// The files and directories skipped.
    pub left_out: BTreeMap<Reason, LeftOut>,
}

impl Looked {
    /// An empty result that keeps the `keep` largest files.
    pub fn new(keep: usize) -> Self {
        Self {
            looked_at: 0,
            with_pages: 0,
            total: Bytes::NONE,
            directories: BTreeMap::new(),
            largest: Vec::new(),
            keep,
            left_out: BTreeMap::new(),
        }
    }

    /// Adds a file.
    pub fn add(&mut self, directory: &str, bytes: &Bytes, name: impl FnOnce() -> String) {
        self.looked_at += 1;
        if bytes.cached == 0 && bytes.evicted.unwrap_or(0) == 0 {
            return;
        }
        self.with_pages += u64::from(bytes.cached > 0);
        self.total.add(bytes);
        match self.directories.get_mut(directory) {
            Some(sum) => sum.add(bytes),
            None => {
                self.directories.insert(directory.to_owned(), *bytes);
            }
        }
        self.largest.push(Row { name: name(), bytes: *bytes });
        if self.largest.len() >= 2 * self.keep.max(1_000) {
            self.prune();
        }
    }

    /// Adds a skipped file or directory.
    pub fn leave_out(&mut self, reason: Reason, name: impl FnOnce() -> String) {
        let left_out = self.left_out.entry(reason).or_default();
        left_out.count += 1;
        if left_out.names.len() < NAMES {
            left_out.names.push(name());
        }
    }

    /// Adds the result of another thread.
    pub fn merge(&mut self, other: Self) {
        self.looked_at += other.looked_at;
        self.with_pages += other.with_pages;
        self.total.add(&other.total);
        for (directory, bytes) in other.directories {
            self.directories.entry(directory).or_insert(Bytes::NONE).add(&bytes);
        }
        self.largest.extend(other.largest);
        self.prune();
        for (reason, more) in other.left_out {
            let left_out = self.left_out.entry(reason).or_default();
            left_out.count += more.count;
            left_out.names.extend(more.names);
            left_out.names.truncate(NAMES);
        }
    }

    fn prune(&mut self) {
        sort(&mut self.largest);
        self.largest.truncate(self.keep);
    }

    /// The files with the most cached bytes, largest first.
    pub fn files(&mut self) -> &[Row] {
        self.prune();
        &self.largest
    }

    /// The `keep` largest directories, each with everything below it, largest first. Omits a
    /// directory if all its cached files are below one subdirectory.
    pub fn largest_directories(&self, keep: usize) -> Vec<Row> {
        let mut sums: BTreeMap<&str, (Bytes, bool)> = BTreeMap::new();
        for (directory, bytes) in &self.directories {
            for (depth, ancestor) in ancestors(directory).enumerate() {
                let (sum, own) = sums.entry(ancestor).or_insert((Bytes::NONE, false));
                sum.add(bytes);
                *own |= depth == 0;
            }
        }
        // The number of children of each directory.
        let mut children: BTreeMap<&str, u64> = BTreeMap::new();
        for (directory, _) in sums.iter().filter(|(_, (bytes, _))| bytes.cached > 0) {
            if let Some(parent) = ancestors(directory).nth(1) {
                *children.entry(parent).or_default() += 1;
            }
        }
        let branches = |name: &str, own: bool| own || children.get(name).is_none_or(|&count| count > 1);
        let mut rows: Vec<Row> = sums
            .into_iter()
            .filter(|(name, (bytes, own))| bytes.cached > 0 && branches(name, *own))
            .map(|(name, (bytes, _))| Row { name: name.to_owned(), bytes })
            .collect();
        sort(&mut rows);
        rows.truncate(keep);
        rows
    }

    /// Sentences that state the number of files examined, their share of the machine's page cache
    /// (`machine`, in bytes), and the files skipped.
    pub fn account(&self, machine: Option<f64>) -> Vec<String> {
        let cached = self.total.cached as f64;
        let share = |machine: f64| if machine > 0.0 { 100.0 * cached / machine } else { 0.0 };
        let of = match machine {
            Some(machine) => format!(
                "{} of the {} in the machine's page cache ({:.0}%); the rest is unknown",
                size(Some(cached)),
                size(Some(machine)),
                share(machine).min(100.0)
            ),
            None => format!("{} cached; the machine's total is unknown", size(Some(cached))),
        };
        let mut lines =
            vec![format!("Looked at {} files, {} of them cached: {of}.", self.looked_at, self.with_pages)];
        if !self.left_out.is_empty() {
            let part = |(reason, left): (&Reason, &LeftOut)| {
                let names = left.names.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = if left.count > 2 { ", …" } else { "" };
                format!("{}: {} ({names}{more})", reason.words(), left.count)
            };
            let parts: Vec<String> = self.left_out.iter().map(part).collect();
            lines.push(format!("Skipped: {}.", parts.join("; ")));
        }
        lines
    }
}

/// A directory and its ancestors.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match path.rfind('/')? {
        0 if path.len() > 1 => Some("/"),
        0 => None,
        at => Some(&path[..at]),
    })
}

fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| b.bytes.cached.cmp(&a.bytes.cached).then_with(|| a.name.cmp(&b.name)));
}

/// The counters that [`machine`] reads.
pub fn selection() -> Selection {
    super::constant(&["meminfo:::Cached"])
}

/// The bytes of the machine's page cache: `Cached` of /proc/meminfo, which includes the pages of
/// all files. It excludes the swap cache and the block devices' own pages.
pub fn machine(now: &Snapshot) -> Option<f64> {
    now.number("meminfo", 0, "mem", "Cached")
}

/// The columns: name, value, description.
type Column = (&'static str, fn(&Bytes) -> Option<u64>, &'static str);
const COLUMNS: [Column; 5] = [
    ("cached", |b| Some(b.cached), "bytes in the page cache"),
    ("dirty", |b| b.dirty, "of these, dirty or under writeback"),
    ("mapped", |b| b.mapped, "of these, mapped by a process (root)"),
    ("active", |b| b.active, "of these, on the active list (root; a dash with MGLRU)"),
    ("evicted", |b| b.evicted, "evicted recently: reading them now would be a refault"),
];

/// Every column with its description.
pub fn described() -> Vec<Described> {
    let names = [("DIRECTORY", "a directory, with everything below it"), ("FILE", "a file")];
    COLUMNS.iter().map(|(name, _, help)| (*name, *help)).chain(names).collect()
}

/// A header and one line per row.
pub fn table(title: &str, rows: &[Row], width: Width) -> String {
    let heading: String = COLUMNS.iter().map(|(name, ..)| format!("{name:>8}")).collect();
    let mut out = format!("{heading}  {title}\n");
    for row in rows {
        let figures: String = COLUMNS
            .iter()
            .map(|(_, of, _)| format!("{:>8}", size(of(&row.bytes).map(|bytes| bytes as f64))))
            .collect();
        out.push_str(&format!("{figures}  {}\n", width.cut(&row.name, 8 * COLUMNS.len() + 2)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(cached: u64) -> Bytes {
        Bytes { cached, mapped: None, ..Bytes::NONE }
    }

    fn names(rows: &[Row]) -> Vec<(&str, u64)> {
        rows.iter().map(|row| (row.name.as_str(), row.bytes.cached)).collect()
    }

    #[test]
    fn directories_have_what_is_below_them() {
        let mut looked = Looked::new(2);
        for (directory, file, cached) in
            [("/v/a", "x", 5), ("/v/a", "y", 7), ("/v/b/c", "z", 9), ("/v/b/c", "none", 0), ("/", "r", 1)]
        {
            looked.add(directory, &bytes(cached), || format!("{directory}/{file}"));
        }
        looked.leave_out(Reason::Link, || "/v/l".into());
        assert_eq!((looked.looked_at, looked.with_pages, looked.total.cached), (5, 4, 22));
        assert_eq!((looked.total.mapped, looked.total.dirty), (None, Some(0)), "unknown is not zero");
        // Everything in /v/b is below /v/b/c.
        let rows = looked.largest_directories(9);
        assert_eq!(names(&rows), [("/", 22), ("/v", 21), ("/v/a", 12), ("/v/b/c", 9)]);
        assert_eq!(names(looked.files()), [("/v/b/c/z", 9), ("/v/a/y", 7)]);
        let account = looked.account(Some(44.0));
        assert!(account[0].contains("5 files, 4 of them") && account[0].contains("(50%)"), "{account:?}");
        assert_eq!(account[1], "Skipped: symbolic links: 1 (/v/l).");
    }

    proptest! {
        #[test]
        fn parts_merge_to_the_whole(files in prop::collection::vec((0..4_usize, 0..50_u64), 0..40), cut in 0..40_usize) {
            let directories = ["/a", "/a/b", "/c/d/e", "relative"];
            let add = |looked: &mut Looked, files: &[(usize, u64)]| {
                for (n, (directory, cached)) in files.iter().enumerate() {
                    let name = format!("{}/{n}-{cached}", directories[*directory]);
                    looked.add(directories[*directory], &bytes(*cached), || name);
                }
            };
            let cut = cut.min(files.len());
            let (mut whole, mut first, mut second) = (Looked::new(5), Looked::new(5), Looked::new(5));
            add(&mut whole, &files);
            add(&mut first, &files[..cut]);
            add(&mut second, &files[cut..]);
            first.merge(second);
            prop_assert_eq!(first.total, whole.total);
            prop_assert_eq!(first.largest_directories(9), whole.largest_directories(9));
            let sizes = |looked: &mut Looked| looked.files().iter().map(|row| row.bytes.cached).collect::<Vec<_>>();
            prop_assert_eq!(sizes(&mut first), sizes(&mut whole));
        }
    }
}
