//! Kernel files that are read again and again during a run, without allocation.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pagelab_procfs::{capabilities, value};

/// A file of /proc, /sys or a cgroup that stays open.
#[derive(Debug)]
pub struct KernelFile {
    file: File,
    buffer: Vec<u8>,
}

impl KernelFile {
    /// Opens `path`; `None` when it does not exist or may not be read.
    pub fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let mut kernel_file = Self { file, buffer: vec![0; 1 << 16] };
        kernel_file.read().is_some().then_some(kernel_file)
    }

    /// The content now, up to 64 KiB (such files have a few KiB); `None` when it cannot be read.
    pub fn read(&mut self) -> Option<&str> {
        let mut length = 0;
        loop {
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(n) => length += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        std::str::from_utf8(&self.buffer[..length]).ok()
    }
}

/// The text of a file in which names stand that others have chosen (of processes, files, mounts):
/// those need not be UTF-8, and must not hide what stands beside them. What is none is replaced.
///
/// # Errors
/// When it cannot be read.
pub fn text(path: impl AsRef<Path>) -> std::io::Result<String> {
    let bytes = std::fs::read(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|other| String::from_utf8_lossy(other.as_bytes()).into_owned()))
}

/// Pages read from and written to swap since boot: of the memory cgroup where its `memory.stat`
/// says so (kernel 6.13 and later, version 2), else of the whole machine from `/proc/vmstat`.
#[derive(Debug)]
pub struct SwapTraffic {
    file: KernelFile,
    /// Whether other programs' traffic is counted too.
    pub whole_machine: bool,
}

impl SwapTraffic {
    /// Chooses the source; `None` where neither counts swap.
    pub fn open(memory_stat: Option<&Path>) -> Option<Self> {
        let open = |path: &Path, whole_machine| {
            let mut traffic = Self { file: KernelFile::open(path)?, whole_machine };
            traffic.read().is_some().then_some(traffic)
        };
        memory_stat.and_then(|path| open(path, false)).or_else(|| open(Path::new("/proc/vmstat"), true))
    }

    /// (in, out), in pages.
    pub fn read(&mut self) -> Option<(u64, u64)> {
        let text = self.file.read()?;
        Some((value(text, "pswpin")?, value(text, "pswpout")?))
    }
}

/// The pages that this process has mapped (`/proc/self/statm`, second number).
#[derive(Debug)]
pub struct ResidentSet(KernelFile);

impl ResidentSet {
    /// Opens the file.
    pub fn open() -> Option<Self> {
        KernelFile::open(Path::new("/proc/self/statm")).map(Self)
    }

    /// The pages mapped now.
    pub fn read(&mut self) -> Option<u64> {
        self.0.read()?.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// Time in which some task waited for memory (PSI, the `some` line), ns.
#[derive(Debug)]
pub struct Stall {
    file: KernelFile,
    /// Whether other programs' waits are counted too.
    pub whole_machine: bool,
}

impl Stall {
    /// From the cgroup's `memory.pressure`, else the whole machine's; `None` without PSI.
    pub fn open(memory_pressure: Option<&Path>) -> Option<Self> {
        let open = |path: &Path, whole_machine| {
            let mut stall = Self { file: KernelFile::open(path)?, whole_machine };
            stall.read().is_some().then_some(stall)
        };
        memory_pressure
            .and_then(|path| open(path, false))
            .or_else(|| open(Path::new("/proc/pressure/memory"), true))
    }

    /// The total so far.
    pub fn read(&mut self) -> Option<u64> {
        stalled(self.file.read()?)
    }
}

/// The total of the `some` line, µs in the file, here ns.
pub fn stalled(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some.split(' ').find_map(|part| part.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1000)
}

/// The number that a file holds alone; `None` for what is none.
pub fn number(path: impl AsRef<Path>) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Whether this process has the capability of this number (linux/capability.h).
pub fn is_capable(capability: u32) -> bool {
    capabilities(&text("/proc/self/status").unwrap_or_default()) >> capability & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_stall_is_the_total_of_some() {
        let text = "some avg10=0.12 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=99\n";
        assert_eq!(stalled(text), Some(1_234_000));
        assert_eq!(stalled("full total=1"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text: String) {
            let _ = stalled(&text);
        }
    }

    #[test]
    fn the_machine_has_its_files() {
        assert!(ResidentSet::open().unwrap().read().unwrap() > 0);
        let mut vmstat = KernelFile::open(Path::new("/proc/vmstat")).unwrap();
        assert!(value(vmstat.read().unwrap(), "pgfault").unwrap() > 0);
    }
}
