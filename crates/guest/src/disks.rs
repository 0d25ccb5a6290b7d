//! The scratch disks of a guest: files without a name, gone with the machine.

use std::fs::File;
use std::process::{Command, Stdio};

use pagelab_confine::unnamed_file;
use pagelab_experiment::setting::Swap;
use pagelab_experiment::{Experiment, Failure, Result, Setting};

use pagelab_kernel::lifetime::{in_memory, path_of};
use pagelab_live::set_up::failure;

/// Swap beyond the load.
const SWAP_SLACK: u64 = 64 << 20;
/// Room beyond the files, never written: what the guest's pagelab leaves free of any disk
/// (`pagelab_confine::guard`), and what the file system needs for itself.
const FILES_SHARE: u64 = 8;
const FILES_SLACK: u64 = 320 << 20;
/// Bytes of the smallest disk, and of what a large one has a multiple of. Between the two they are powers of two, so that what needs
/// a little more finds the machine that is kept.
const SMALLEST: u64 = 256 << 20;
const LARGE: u64 = 1 << 30;

/// The names that the disks have in the guest, in their order.
const NAMES: [&str; 3] = ["/dev/vda", "/dev/vdb", "/dev/vdc"];
/// Room for the kernel's symbols.
const SYMBOLS: u64 = 32 << 20;

/// The disks that an experiment needs.
#[derive(Debug, Default)]
pub struct Disks {
    /// The files behind them, in the order of [`NAMES`].
    pub list: Vec<File>,
    /// The one for swap.
    pub swap: Option<&'static str>,
    /// The one with a file system.
    pub files: Option<&'static str>,
    /// The one on which the guest tells addresses, the last.
    pub trace: Option<&'static str>,
}

impl Disks {
    /// Makes them for a guest with pages of `page_size` bytes.
    ///
    /// # Errors
    /// When there is no room, or no `mke2fs` for the file system.
    pub fn new(experiment: &Experiment, setting: &Setting, page_size: u64) -> Result<Self> {
        let mut new = Self::default();
        if let Some(bytes) = Self::swap(experiment, setting, page_size) {
            new.swap = Some(new.add(unnamed_file(length(bytes)).map_err(failure)?));
        }
        if let Some(bytes) = Self::files(experiment, page_size) {
            let file = unnamed_file(length(bytes)).map_err(failure)?;
            format(&file)?;
            new.files = Some(new.add(file));
        }
        Ok(new)
    }

    /// Bytes that may be written to all of them, in a guest with pages of `page_size` bytes.
    pub fn bytes(experiment: &Experiment, setting: &Setting, page_size: u64) -> u64 {
        // A kernel that swaps takes one slot after the other: in time it writes to all of them.
        let swap = Self::swap(experiment, setting, page_size).map_or(0, length);
        swap.saturating_add(Self::files(experiment, page_size).map_or(0, length))
    }

    /// The same with one on which the guest tells addresses.
    ///
    /// # Errors
    /// When there is no room.
    pub fn with_trace(mut self) -> Result<Self> {
        self.trace = Some(self.add(symbols().map_err(|e| Failure::system("making a disk for symbols", &e))?));
        Ok(self)
    }

    /// Whether tasks of the load wait for any.
    pub fn waits(&self) -> bool {
        self.swap.is_some() || self.files.is_some()
    }

    fn swap(experiment: &Experiment, setting: &Setting, page_size: u64) -> Option<u64> {
        let need = experiment.footprint(page_size).anonymous;
        let swap = setting.swap_size.map_or(need, |size| size.bytes(page_size));
        (setting.swap == Some(Swap::File)).then(|| swap.saturating_add(SWAP_SLACK))
    }

    fn files(experiment: &Experiment, page_size: u64) -> Option<u64> {
        let need = experiment.footprint(page_size).file;
        (need > 0).then(|| need.saturating_add(need / FILES_SHARE).saturating_add(FILES_SLACK))
    }

    fn add(&mut self, file: File) -> &'static str {
        self.list.push(file);
        NAMES[self.list.len() - 1]
    }
}

/// The length of a disk of which so many bytes are needed.
fn length(bytes: u64) -> u64 {
    if bytes > LARGE {
        return bytes.checked_next_multiple_of(LARGE).unwrap_or(bytes);
    }
    bytes.max(SMALLEST).next_power_of_two()
}

/// A disk in memory, of which only what is written takes any.
fn symbols() -> std::io::Result<File> {
    let file = in_memory("pagelab-symbols")?;
    file.set_len(SYMBOLS)?;
    Ok(file)
}

/// Bytes of a block of the file system: what a kernel with pages of any size takes.
const BLOCK: &str = "4096";

/// Makes an ext4 file system in `file`, the same each time, without a journal whose thread would write
/// while the guest is measured.
fn format(file: &File) -> Result<()> {
    const SAME: &str = "7061676c-6162-4000-8000-000000000000";
    let mut command = Command::new("mke2fs");
    // Beside the user's own folders: where it is when only root is to call it.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).env("E2FSPROGS_FAKE_TIME", "946684800");
    command.args(["-q", "-F", "-t", "ext4", "-b", BLOCK, "-m", "0", "-O", "^has_journal", "-U", SAME]);
    command.args(["-E", &format!("hash_seed={SAME},lazy_itable_init=0,nodiscard")]).arg(path_of(file));
    let output = command.stdin(Stdio::null()).output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Failure::unsupported(
            "mke2fs, which makes the guest's file system, is not installed",
            "install it: apt-get install e2fsprogs",
        ),
        _ => Failure::system("starting mke2fs", &e),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::program("mke2fs", output.status).because(&std::io::Error::other(said.trim().to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::experiments::Paging;

    #[test]
    fn what_needs_about_as_much_has_a_disk_of_the_same_length() {
        let mib = |count: u64| count << 20;
        assert_eq!([0, 1, mib(112), mib(160), mib(256)].map(length), [mib(256); 5]);
        assert_eq!(
            (length(mib(256) + 1), length(mib(329)), length(mib(428))),
            (mib(512), mib(512), mib(512))
        );
        assert_eq!((length(mib(900)), length(mib(1025)), length(mib(5000))), (LARGE, 2 * LARGE, 5 * LARGE));
        assert_eq!(length(u64::MAX), u64::MAX, "which no disk has room for");
    }

    #[test]
    fn disks_are_named_in_order() {
        let mut setting = Setting::default();
        let mapfile = Experiment::Mapfile(Paging { pages: 100, ..Paging::default() });
        let disks = Disks::new(&mapfile, &setting, 4096).unwrap();
        assert_eq!((disks.swap, disks.files, disks.list.len()), (None, Some("/dev/vda"), 1));
        setting.apply("swap", "file").unwrap();
        let disks = Disks::new(&mapfile, &setting, 4096).unwrap();
        assert_eq!((disks.swap, disks.files, disks.list.len()), (Some("/dev/vda"), Some("/dev/vdb"), 2));
        assert!(disks.list.iter().all(|disk| disk.metadata().unwrap().len().is_power_of_two()));
        // The magic number of ext2 and its successors.
        let mut magic = [0; 2];
        std::os::unix::fs::FileExt::read_exact_at(&disks.list[1], &mut magic, 1024 + 56).unwrap();
        assert_eq!(magic, [0x53, 0xef]);
    }
}
