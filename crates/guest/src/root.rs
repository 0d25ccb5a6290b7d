//! What the user's programs find in a guest: a folder of the user's as the root (`root=DIR`), else the program with its
//! libraries and the files that are named, each at the path that it has here.
//!
//! It goes into the initramfs, below a folder of its own, so that nothing of it is in the way of pagelab; the programs
//! see it as `/`. All is found and measured before anything is booted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pagelab_experiment::experiments::{Feature, Programs};
use pagelab_experiment::{Experiment, Size, Unsupported, What, words};
use pagelab_kernel::root::{self, open_in};

use crate::elf::is_for;
use crate::image::{Image, Machine};
use crate::initramfs::Archive;
use crate::libraries;
use crate::options::Options;

/// Where it is in the guest.
pub const ROOT: &str = "/pagelab/root";
/// Where programs are looked for in a root of the user's.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Of the guest's memory, what its files may take: they are in a tmpfs that takes half, and are there packed besides
/// while the kernel unpacks them.
const SHARE: u64 = 3;
/// Files are kept in whole pages.
const PAGE: u64 = 4096;
/// How much of a script is read for the programs that it calls.
const SCRIPT: u64 = 1 << 20;

/// What is brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Place in the guest's root, and what is there.
    files: BTreeMap<PathBuf, Brought>,
    /// Where the programs begin.
    inside: PathBuf,
    /// Where they look for others.
    path: String,
    bytes: u64,
}

/// A file, folder or link of this machine's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Brought {
    from: PathBuf,
    /// Whether what a link leads to is meant.
    followed: bool,
    /// Size and time, by which another is told.
    size: u64,
    written: Option<SystemTime>,
}

impl Root {
    /// What `experiment` needs in a guest of `image`; `None`: it starts no program of the user's.
    ///
    /// # Errors
    /// What is missing, and what the guest has no room for.
    pub fn of(
        experiment: &Experiment,
        options: &Options,
        image: &Image,
        target: &str,
    ) -> Result<Option<Self>, Unsupported> {
        let required = experiment.declaration().requires();
        let programs = required.into_iter().find_map(|feature| match feature {
            Feature::Programs(programs) => Some(programs),
            _ => None,
        });
        let Some(Programs { parameter, words: line, many, .. }) = programs else { return Ok(None) };
        let refuse =
            |what: What, (why, remedy): (String, String)| Unsupported::new(target, what, why, remedy);
        let machine = image.machine;
        let found = match &options.root {
            Some(folder) => Self::of_folder(folder, &line, machine, options),
            None if many => Err(("has no compiler".to_owned(), ROOTED.to_owned())),
            None => Self::of_program(&line, machine, options),
        };
        let root = found.map_err(|problem| refuse(What::Parameter(parameter.to_owned()), problem))?;
        root.fits(options).map_err(|problem| refuse(What::Condition("ram".to_owned()), problem))?;
        Ok(Some(root))
    }

    /// The folder as it is.
    fn of_folder(
        folder: &Path,
        line: &[String],
        machine: Machine,
        options: &Options,
    ) -> Result<Self, Problem> {
        let mut new = Self::empty("/", PATH);
        new.tree(folder, Path::new("/"), options)?;
        let program = line.first().map_or("", String::as_str);
        let name = words::unescaped(program);
        let places: Vec<PathBuf> = match program.contains('/') {
            true => vec![PathBuf::from(&name)],
            false => PATH.split(':').map(|place| Path::new(place).join(&name)).collect(),
        };
        let there = places.iter().find_map(|place| executable(open_in(folder, place).ok()?));
        let shown = folder.display();
        match there {
            None => Err((
                format!("finds no program '{program}' in {shown}"),
                "write its path as seen from there, or install it there".to_owned(),
            )),
            Some(begin) if begin.starts_with(b"\x7fELF") && !is_for(&begin, machine) => {
                Err(for_another(&format!("'{program}' in {shown}"), machine))
            }
            Some(_) => Ok(new),
        }
    }

    /// The program, what its arguments name, the files of `file=`.
    fn of_program(line: &[String], machine: Machine, options: &Options) -> Result<Self, Problem> {
        let here =
            std::env::current_dir().map_err(|e| (format!("has no working folder ({e})"), String::new()))?;
        let path = std::env::var("PATH").unwrap_or_else(|_| PATH.to_owned());
        let mut new = Self::empty(&here, &path);
        let name = line.first().map_or("", String::as_str);
        let program = new.named(name).ok_or_else(|| {
            let remedy = "write its path, install it, or bring it in a root: kernel:IMAGE,root=DIR";
            (format!("finds no program '{name}'"), remedy.to_owned())
        })?;
        new.program(&program, machine)?;
        let arguments: Vec<&str> = line.iter().skip(1).map(String::as_str).collect();
        new.mentioned(&arguments.join("\n"), machine)?;
        for file in &options.files {
            if file.is_dir() {
                new.tree(file, &here.join(file), options)?;
            } else {
                new.program(file, machine)?;
            }
        }
        new.files.entry(here.clone()).or_insert(Brought {
            from: here,
            followed: true,
            size: 0,
            written: None,
        });
        Ok(new)
    }

    fn empty(inside: impl Into<PathBuf>, path: &str) -> Self {
        Self { files: BTreeMap::new(), inside: inside.into(), path: path.to_owned(), bytes: 0 }
    }

    /// The program that `word` names here: a path, or a name that `PATH` has.
    fn named(&self, word: &str) -> Option<PathBuf> {
        let executable = |path: &PathBuf| executable(File::open(path).ok()?).map(drop);
        let candidates: Vec<PathBuf> = match word.contains('/') {
            true => vec![self.inside.join(words::unescaped(word))],
            false if word.is_empty() => Vec::new(),
            false => {
                let name = words::unescaped(word);
                std::env::split_paths(&self.path).map(|folder| folder.join(&name)).collect()
            }
        };
        candidates.into_iter().find(|path| executable(path).is_some())
    }

    /// Brings a file, with its libraries where it is a program, and with what it calls where it is a script.
    fn program(&mut self, path: &Path, machine: Machine) -> Result<(), Problem> {
        let path = self.inside.join(path);
        if self.files.contains_key(&path) {
            return Ok(());
        }
        let bytes =
            begin(&path).map_err(|e| (format!("cannot read {} ({e})", path.display()), String::new()))?;
        self.add(&path)?;
        if let Some(script) = bytes.strip_prefix(b"#!") {
            let text = String::from_utf8_lossy(script).into_owned();
            let interpreter = text.split_whitespace().next().unwrap_or_default();
            let interpreter = self.named(interpreter).ok_or_else(|| {
                (format!("finds no '{interpreter}', which {} asks for", path.display()), ROOTED.to_owned())
            })?;
            self.program(&interpreter, machine)?;
            return self.mentioned(&text, machine);
        }
        if !bytes.starts_with(b"\x7fELF") {
            return Ok(());
        }
        if !is_for(&bytes, machine) {
            return Err(for_another(&path.display().to_string(), machine));
        }
        let libraries = libraries::of(&path, machine)
            .map_err(|what| (format!("cannot bring it: {what}"), ROOTED.to_owned()))?;
        libraries.iter().try_for_each(|library| self.add(library))
    }

    /// Brings every word of `text` that is a file here, or a program in `PATH`.
    fn mentioned(&mut self, text: &str, machine: Machine) -> Result<(), Problem> {
        let apart = |c: char| c.is_whitespace() || ";|&()`$<>'\"={}".contains(c);
        let found: BTreeSet<&str> = text.split(apart).filter(|word| !word.is_empty()).collect();
        for word in found {
            let file = Some(self.inside.join(words::unescaped(word))).filter(|path| path.is_file());
            // What is meant for another processor is data.
            if let Some(path) = file.or_else(|| self.named(word))
                && begin(&path).is_ok_and(|begin| !begin.starts_with(b"\x7fELF") || is_for(&begin, machine))
            {
                self.program(&path, machine)?;
            }
        }
        Ok(())
    }

    /// Brings a file as it is.
    fn add(&mut self, path: &Path) -> Result<(), Problem> {
        let found = fs::metadata(path)
            .map_err(|e| (format!("cannot read {} ({e})", path.display()), String::new()))?;
        self.insert(path, path, true, &found);
        Ok(())
    }

    fn insert(&mut self, place: &Path, from: &Path, followed: bool, found: &fs::Metadata) {
        let size = if found.is_file() { found.len() } else { 0 };
        let brought = Brought { from: from.to_owned(), followed, size, written: found.modified().ok() };
        if self.files.insert(place.to_owned(), brought).is_none() {
            self.bytes += size.next_multiple_of(PAGE).max(PAGE);
        }
    }

    /// Brings a folder with all below it that is on the same file system: files, folders and links.
    fn tree(&mut self, folder: &Path, place: &Path, options: &Options) -> Result<(), Problem> {
        let cannot = |path: &Path, e: io::Error| {
            let remedy = "make it readable for this user, or name a folder without it";
            (format!("cannot read {} ({e})", path.display()), remedy.to_owned())
        };
        let top = fs::metadata(folder).map_err(|e| cannot(folder, e))?;
        let mut open = vec![(folder.to_owned(), place.to_owned())];
        while let Some((from, to)) = open.pop() {
            for entry in fs::read_dir(&from).map_err(|e| cannot(&from, e))? {
                let entry = entry.map_err(|e| cannot(&from, e))?;
                let (path, to) = (entry.path(), to.join(entry.file_name()));
                let found = entry.metadata().map_err(|e| cannot(&path, e))?;
                let kind = found.file_type();
                if found.dev() != top.dev() || !(kind.is_file() || kind.is_dir() || kind.is_symlink()) {
                    continue;
                }
                if kind.is_file()
                    && File::open(&path).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
                {
                    return Err(cannot(&path, io::ErrorKind::PermissionDenied.into()));
                }
                self.insert(&to, &path, false, &found);
                if kind.is_dir() {
                    open.push((path, to));
                }
            }
            // A disk full of files need not be counted to its end.
            self.fits(options)?;
        }
        Ok(())
    }

    /// Refuses what the guest's memory has no room for.
    fn fits(&self, options: &Options) -> Result<(), Problem> {
        let room = options.ram / SHARE;
        if self.bytes <= room {
            return Ok(());
        }
        let shown = |bytes: u64| Size::Bytes(bytes.next_multiple_of(1 << 20)).to_string();
        let why = format!(
            "keeps the programs' files in its memory: {} or more, where ram={} has room for {}",
            shown(self.bytes),
            Size::Bytes(options.ram),
            shown(room)
        );
        let remedy =
            format!("give it ram={} or more, or a smaller root", shown(self.bytes.saturating_mul(SHARE)));
        Err((why, remedy))
    }

    /// Where the programs are, for the guest.
    pub fn place(&self) -> root::Root {
        root::Root { folder: ROOT.into(), inside: self.inside.clone(), path: self.path.clone() }
    }

    /// What it is, in a few words.
    pub fn described(&self) -> String {
        let files = self.files.values().filter(|one| one.size > 0).count();
        format!("{files} files, {} bytes", self.files.values().map(|one| one.size).sum::<u64>())
    }

    /// Bytes of memory that it takes in the guest.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds it to the initramfs.
    ///
    /// # Errors
    /// When a file cannot be read any more, and those of the output.
    pub fn pack<W: Write>(&self, archive: &mut Archive<W>) -> io::Result<()> {
        for (place, brought) in &self.files {
            let place = Path::new(ROOT).join(place.strip_prefix("/").unwrap_or(place));
            let packed = archive.copy(&place, &brought.from, brought.followed);
            packed.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", brought.from.display())))?;
        }
        Ok(())
    }
}

/// Why something cannot be brought, as a clause that follows the target's name, and what to do instead.
type Problem = (String, String);

/// What to do where a program is not alone.
const ROOTED: &str = "bring a whole system: kernel:IMAGE,root=DIR (as debootstrap makes one)";

fn for_another(what: &str, machine: Machine) -> Problem {
    let (name, _) = machine.name();
    (format!("runs programs for {name}, and {what} is for another processor"), ROOTED.to_owned())
}

/// The first bytes of a file.
fn begin(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SCRIPT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first bytes of a file that may be executed.
fn executable(file: File) -> Option<Vec<u8>> {
    let found = file.metadata().ok()?;
    let mut bytes = Vec::new();
    let may = found.is_file() && found.permissions().mode() & 0o111 != 0;
    file.take(64).read_to_end(&mut bytes).ok().filter(|_| may).map(|_| bytes)
}
