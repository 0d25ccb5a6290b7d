//! The folder that stands for `/`: the live machine, or one that was recorded.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes of a setting, which is a line, asked for at first.
const SETTING: usize = 256;

/// More than most files of a process have.
const PIECE: usize = 4 << 10;

/// Enough for most files of /proc in one call; the larger ones grow.
const FIRST_READ: usize = 16 << 10;

/// The kernel fills a page, as far as whole lines go, before it gives it: a shorter part than this is the last. To ask
/// for one more would have it gather all figures of /proc/vmstat once more.
const LAST: usize = 2 << 10;

/// A machine's /proc and /sys.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    opened: AtomicU64,
    out_of_files: AtomicU64,
    kept: Mutex<OpenFiles>,
    constants: OnceLock<Constants>,
    copy_to: Option<PathBuf>,
}

/// Files that stay open, and what they are read into.
#[derive(Debug, Default)]
struct OpenFiles {
    files: Vec<(&'static str, File)>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Constants {
    page_size: u64,
    tick_ns: u64,
}

impl Root {
    /// The machine under `path`: `/`, or a folder that a fixture was recorded into.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            opened: AtomicU64::new(0),
            out_of_files: AtomicU64::new(0),
            kept: Mutex::default(),
            constants: OnceLock::new(),
            copy_to: None,
        }
    }

    /// As [`Root::new`], and every file read is copied below `folder`: a fixture. What cannot be
    /// written there is missing from it, as [`Root::read`] of the fixture will show.
    pub fn copying(path: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self { copy_to: Some(folder.into()), ..Self::new(path) }
    }

    /// The running machine.
    pub fn live() -> Self {
        Self::new("/")
    }

    /// Where the machine is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many files were opened through this root so far: what a view costs in opens.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// How many files and folders were not read because the process may not open more: their
    /// counters are absent.
    pub fn out_of_files(&self) -> u64 {
        self.out_of_files.load(Ordering::Relaxed)
    }

    /// The result without its error, which is counted where it is this process's own limit.
    fn had<T>(&self, result: std::io::Result<T>) -> Option<T> {
        // EMFILE and ENFILE of Linux.
        if let Err(error) = &result
            && matches!(error.raw_os_error(), Some(23 | 24))
        {
            self.out_of_files.fetch_add(1, Ordering::Relaxed);
        }
        result.ok()
    }

    /// A file's text; `relative` has no leading slash (`proc/vmstat`). None where it is absent or
    /// cannot be read; bytes that are no UTF-8 are replaced.
    pub fn read(&self, relative: &str) -> Option<String> {
        let bytes = self.read_bytes(relative)?;
        Some(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// A file's bytes, as [`Root::read`].
    pub fn read_bytes(&self, relative: &str) -> Option<Vec<u8>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let file = self.had(File::open(self.path.join(relative)))?;
        let mut bytes = Vec::with_capacity(FIRST_READ);
        // Through `take`, the standard library does not ask for the size, which is 0 in /proc.
        file.take(u64::MAX).read_to_end(&mut bytes).ok()?;
        if let Some(folder) = &self.copy_to {
            copy(&folder.join(relative), &bytes);
        }
        Some(bytes)
    }

    /// As [`Root::read`], for a file that the kernel returns in one piece, such as those of a
    /// process: a short read has reached the end, so no second read looks for it.
    pub fn read_piece(&self, relative: &str) -> Option<String> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let mut file = self.had(File::open(self.path.join(relative)))?;
        let mut piece = [0; PIECE];
        let length = file.read(&mut piece).ok()?;
        let mut rest = Vec::new();
        let bytes = if length < PIECE {
            &piece[..length]
        } else {
            rest.extend_from_slice(&piece);
            file.read_to_end(&mut rest).ok()?;
            &rest
        };
        if let Some(folder) = &self.copy_to {
            copy(&folder.join(relative), bytes);
        }
        Some(text(bytes))
    }

    /// As [`Root::read`], of a file that is always there and read by every look: it stays open, which saves
    /// finding, opening and closing it.
    pub fn read_again(&self, relative: &'static str) -> Option<String> {
        // What was recorded may be replaced.
        if self.copy_to.is_some() || self.path != Path::new("/") {
            return self.read(relative);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let OpenFiles { files, bytes } = &mut *kept;
        let at = match files.iter().position(|(name, _)| *name == relative) {
            Some(at) => at,
            None => {
                self.opened.fetch_add(1, Ordering::Relaxed);
                files.push((relative, self.had(File::open(self.path.join(relative)))?));
                files.len() - 1
            }
        };
        bytes.resize(bytes.len().max(FIRST_READ), 0);
        // The kernel allocates as much as it is asked for where it answers from a setting: of 16 KiB several pages.
        let mut length = if relative.starts_with("proc/sys/") {
            files[at].1.read_at(&mut bytes[..SETTING], 0).ok()?
        } else {
            0
        };
        if (1..SETTING).contains(&length) {
            return Some(text(&bytes[..length]));
        }
        loop {
            let more = files[at].1.read_at(&mut bytes[length..], length as u64).ok()?;
            length += more;
            if more < LAST {
                return Some(text(&bytes[..length]));
            }
            if length == bytes.len() {
                bytes.resize(2 * length, 0);
            }
        }
    }

    /// The first line of a small file, without its end.
    pub fn line(&self, relative: &str) -> Option<String> {
        self.read(relative).map(|text| text.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// As [`Root::line`], of a file as in [`Root::read_again`].
    pub fn line_again(&self, relative: &'static str) -> Option<String> {
        self.read_again(relative).map(|text| text.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// A small file that holds one number.
    pub fn number(&self, relative: &str) -> Option<u64> {
        self.line(relative)?.parse().ok()
    }

    /// The names in a folder, in no order; none where it is absent.
    pub fn list(&self, relative: &str) -> Vec<String> {
        let Some(entries) = self.had(std::fs::read_dir(self.path.join(relative))) else { return Vec::new() };
        entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect()
    }

    /// The folders in a folder, without links; none where it is absent.
    pub fn folders(&self, relative: &str) -> Vec<String> {
        let Some(entries) = self.had(std::fs::read_dir(self.path.join(relative))) else { return Vec::new() };
        entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                entry.file_type().ok()?.is_dir().then(|| entry.file_name().into_string().ok())?
            })
            .collect()
    }

    /// The numbers among the names in a folder: processes, threads.
    pub fn list_numbers(&self, relative: &str) -> Vec<u64> {
        self.list(relative).iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// The base page's size in bytes, from the auxiliary vector; 4096 where that is absent.
    pub fn page_size(&self) -> u64 {
        self.constants().page_size
    }

    /// The length of a clock tick of /proc in nanoseconds; 10 ms where the vector is absent.
    pub fn tick_ns(&self) -> u64 {
        self.constants().tick_ns
    }

    fn constants(&self) -> Constants {
        *self
            .constants
            .get_or_init(|| Constants::parse(&self.read_bytes("proc/self/auxv").unwrap_or_default()))
    }
}

fn copy(file: &Path, bytes: &[u8]) {
    if let Some(folder) = file.parent() {
        // A fixture is checked by reading it again, not here. A file that is there, or a link, is left.
        let made = std::fs::create_dir_all(folder).and_then(|()| File::create_new(file));
        let _ = made.and_then(|mut file| file.write_all(bytes));
    }
}

impl Constants {
    /// The auxiliary vector is pairs of words: a type and a value (getauxval(3)).
    fn parse(auxv: &[u8]) -> Self {
        const PAGE_SIZE: u64 = 6;
        const CLOCK_TICKS: u64 = 17;
        let mut found = Self { page_size: 4096, tick_ns: 10_000_000 };
        let (pairs, _) = auxv.as_chunks::<16>();
        for pair in pairs {
            let (words, _) = pair.as_chunks::<8>();
            let (kind, value) = (u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1]));
            match kind {
                PAGE_SIZE if value.is_power_of_two() => found.page_size = value,
                CLOCK_TICKS if (1..=1_000_000).contains(&value) => found.tick_ns = 1_000_000_000 / value,
                _ => {}
            }
        }
        found
    }
}

/// Bytes as text; what is no UTF-8 is replaced.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_the_usual_constants() {
        let root = Root::live();
        assert!(root.page_size() >= 4096 && root.page_size().is_power_of_two());
        assert_eq!(root.tick_ns(), 10_000_000, "USER_HZ is 100 on every Linux since 2.6");
    }

    #[test]
    fn a_file_that_is_read_again_stays_open() {
        let root = Root::live();
        let first = root.read_again("proc/vmstat").unwrap();
        let second = root.read_again("proc/vmstat").unwrap();
        let names =
            |text: &str| text.lines().map(|l| l.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&first), names(&second));
        assert_eq!(names(&first), names(&root.read("proc/vmstat").unwrap()));
        assert_eq!(root.line_again("proc/sys/kernel/osrelease"), root.line("proc/sys/kernel/osrelease"));
        assert_eq!(root.read_again("proc/version"), root.read("proc/version"));
        assert_eq!(root.read_again("proc/none"), None);
        assert_eq!(root.opened(), 7);
    }

    #[test]
    fn a_file_in_one_piece_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
            std::fs::write(folder.path().join("file"), "x".repeat(length)).unwrap();
            assert_eq!(root.read_piece("file").unwrap().len(), length);
        }
        assert_eq!(root.read_piece("none"), None);
        assert_eq!(Root::live().read_piece("proc/self/cgroup"), Root::live().read("proc/self/cgroup"));
    }

    #[test]
    fn a_broken_vector_leaves_the_defaults() {
        let broken = Constants::parse(&[0xff; 37]);
        assert_eq!((broken.page_size, broken.tick_ns), (4096, 10_000_000));
    }

    #[test]
    fn absent_files_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        assert_eq!(root.read("proc/vmstat"), None);
        assert!(root.list("proc").is_empty());
        std::fs::write(folder.path().join("bytes"), b"1\xff2\n").unwrap();
        assert_eq!(root.read("bytes").unwrap(), "1\u{fffd}2\n");
        assert_eq!(root.opened(), 2);
    }
}
