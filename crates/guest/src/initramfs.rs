//! The initramfs: pagelab as `/init`, the libraries that it is linked with, modules, and the job.
//!
//! The format is the kernel's (Documentation/driver-api/early-userspace/buffer-format.rst, «newc»).

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::elf::{interpreter, is_for, loaded};
use crate::image::Machine;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DEVICE: u32 = 0o020_600;
const LINK: u32 = 0o120_777;

/// How much is spent on packing: the level below which the archive grows quickly.
const LEVEL: Compression = Compression::new(3);

/// What is at a place in the guest.
#[derive(Debug)]
pub enum Content {
    /// A file.
    File(Vec<u8>),
    /// A link to another place.
    Link(PathBuf),
}

/// Kind and permissions, owner, time of change.
#[derive(Clone, Copy, Debug, Default)]
struct Mode {
    mode: u32,
    user: u32,
    group: u32,
    time: u32,
}

impl Mode {
    /// Of root's, of no time.
    fn of(mode: u32) -> Self {
        Self { mode, ..Self::default() }
    }
}

/// An archive in the making, compressed as it grows.
pub struct Archive<W: Write> {
    output: GzEncoder<W>,
    folders: BTreeSet<PathBuf>,
    inode: u32,
    length: usize,
}

impl<W: Write> Archive<W> {
    /// An archive with a console device, which the kernel opens before anything is mounted.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(output: W) -> io::Result<Self> {
        let output = GzEncoder::new(output, LEVEL);
        let mut new = Self { output, folders: BTreeSet::new(), inode: 0, length: 0 };
        new.folders_of(Path::new("/dev/console"))?;
        new.entry(Path::new("dev/console"), Mode::of(DEVICE), (5, 1), &[])?;
        Ok(new)
    }

    /// Adds a file, executable, or a link, with the folders above it.
    ///
    /// # Errors
    /// Those of the output.
    pub fn add(&mut self, path: &Path, content: &Content) -> io::Result<()> {
        let (mode, bytes) = match content {
            Content::File(bytes) => (PROGRAM, bytes.as_slice()),
            Content::Link(target) => (LINK, target.as_os_str().as_bytes()),
        };
        self.folders_of(path)?;
        self.entry(path.strip_prefix("/").unwrap_or(path), Mode::of(mode), (0, 0), bytes)
    }

    /// Adds what is at `from`, a file, a folder alone or a link, with its mode, owner and time.
    ///
    /// # Errors
    /// When it cannot be read, and those of the output.
    pub fn copy(&mut self, path: &Path, from: &Path, followed: bool) -> io::Result<()> {
        let found = if followed { fs::metadata(from)? } else { fs::symlink_metadata(from)? };
        let mode = Mode {
            mode: found.mode(),
            user: found.uid(),
            group: found.gid(),
            time: u32::try_from(found.mtime()).unwrap_or(0),
        };
        let content = match found.file_type() {
            kind if kind.is_file() => fs::read(from)?,
            kind if kind.is_symlink() => fs::read_link(from)?.into_os_string().into_vec(),
            _ => Vec::new(),
        };
        self.folders_of(path)?;
        let relative = path.strip_prefix("/").unwrap_or(path);
        if found.is_dir() && !self.folders.insert(relative.to_owned()) {
            return Ok(());
        }
        self.entry(relative, mode, (0, 0), &content)
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.entry(Path::new("TRAILER!!!"), Mode::of(0), (0, 0), &[])?;
        self.output.finish()
    }

    fn folders_of(&mut self, path: &Path) -> io::Result<()> {
        let relative = path.strip_prefix("/").unwrap_or(path);
        let mut above: Vec<&Path> =
            relative.ancestors().skip(1).filter(|p| !p.as_os_str().is_empty()).collect();
        above.reverse();
        for folder in above {
            if self.folders.insert(folder.to_owned()) {
                self.entry(folder, Mode::of(FOLDER), (0, 0), &[])?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, mode: Mode, device: (u32, u32), content: &[u8]) -> io::Result<()> {
        self.inode += 1;
        let name = path.as_os_str().as_bytes();
        let size = u32::try_from(content.len()).map_err(|_| io::Error::other("a file of more than 4 GiB"))?;
        let Mode { mode, user, group, time } = mode;
        let length = name.len() as u32 + 1;
        let fields = [self.inode, mode, user, group, 1, time, size, 0, 0, device.0, device.1, length, 0];
        let mut header = String::from("070701");
        for field in fields {
            header += &format!("{field:08X}");
        }
        self.write(header.as_bytes())?;
        self.write(name)?;
        self.write(&[0])?;
        self.pad()?;
        self.write(content)?;
        self.pad()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len();
        self.output.write_all(bytes)
    }

    fn pad(&mut self) -> io::Result<()> {
        let more = self.length.next_multiple_of(4) - self.length;
        self.write(&[0; 3][..more])
    }
}

/// The program `init` alone, where it is a static one for `machine`.
///
/// # Errors
/// When it cannot be read; a sentence when it is another.
pub fn foreign(init: &Path, machine: Machine) -> io::Result<Vec<(PathBuf, Content)>> {
    let elf = fs::read(init)?;
    let (name, _) = machine.name();
    let wrong = |what: &str| io::Error::other(format!("{} {what}", init.display()));
    if !is_for(&elf, machine) {
        return Err(wrong(&format!("is not a program for {name}")));
    }
    if interpreter(&elf).is_some() {
        return Err(wrong("is linked with libraries\nhint: build a static one (make aarch64)"));
    }
    Ok(vec![(PathBuf::from("/init"), Content::File(loaded(elf)))])
}

/// The running program and the files that it is linked with: each with its place and its content. A
/// static program is alone.
///
/// # Errors
/// When one cannot be read.
pub fn program() -> io::Result<Vec<(PathBuf, Content)>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let init = fs::read("/proc/self/exe")?;
    let loader = interpreter(&init);
    let mut files = vec![(PathBuf::from("/init"), Content::File(loaded(init)))];
    for path in libraries(&maps) {
        let content = fs::read(&path)?;
        files.push((path, Content::File(content)));
    }
    // The loader's name is fixed in the program; the maps show the file that it leads to.
    let Some(loader) = loader else { return Ok(files) };
    if !files.iter().any(|(path, _)| *path == loader) {
        let content = fs::read(&loader)?;
        files.push((loader, Content::File(content)));
    }
    // Found by their plain names in the loader's own folders.
    let plain: Vec<_> = files[1..]
        .iter()
        .filter_map(|(path, _)| {
            Some((Path::new("/lib64").join(path.file_name()?), Content::Link(path.clone())))
        })
        .filter(|(path, _)| !files.iter().any(|(known, _)| known == path))
        .collect();
    files.extend(plain);
    Ok(files)
}

/// The libraries among the files mapped by a process.
fn libraries(maps: &str) -> BTreeSet<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let library = |path: &&str| path.rsplit('/').next().is_some_and(|file| file.contains(".so"));
    paths.filter(library).filter(|path| !path.ends_with(" (deleted)")).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn an_archive_is_what_cpio_reads() {
        let mut archive = Archive::new(Vec::new()).unwrap();
        archive.add(Path::new("/a/b/init"), &Content::File(b"content".to_vec())).unwrap();
        archive.add(Path::new("/a/link"), &Content::Link("b/init".into())).unwrap();
        let packed = archive.finish().unwrap();
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut plain).unwrap();
        let text = String::from_utf8_lossy(&plain);
        assert!(text.starts_with("070701") && plain.len() % 4 == 0);
        for part in ["dev/console", "a/b/init", "content", "a/link", "0000A1FF", "TRAILER!!!"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(text.find("a/b\0").unwrap() < text.find("a/b/init").unwrap(), "folders come first");
    }

    #[test]
    fn only_a_static_program_for_the_machine_will_do() {
        let me = std::env::current_exe().unwrap();
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let said = foreign(&me, machine).map(|files| files.len()).map_err(|e| e.to_string());
            let wanted = if machine.name().0 != std::env::consts::ARCH {
                Err("not a program for")
            } else if interpreter(&fs::read(&me).unwrap()).is_some() {
                Err("linked with libraries")
            } else {
                Ok(1)
            };
            match (said, wanted) {
                (Err(said), Err(wanted)) => assert!(said.contains(wanted), "{said}"),
                (said, wanted) => assert_eq!(said.ok(), wanted.ok()),
            }
        }
    }

    #[test]
    fn this_program_is_whole() {
        let files = program().unwrap();
        let Content::File(init) = &files[0].1 else { panic!("a file") };
        if let Some(loader) = interpreter(init) {
            assert!(files.iter().any(|(path, _)| *path == loader));
            assert!(files.iter().any(|(path, _)| path.to_string_lossy().contains("libc.so")));
        }
    }
}
