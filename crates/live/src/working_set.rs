//! The working set of a running process: the pages it references within an interval.
//!
//! The kernel clears the accessed bit of every page of the process (`/proc/PID/clear_refs`, value 1),
//! the interval passes, and `/proc/PID/smaps_rollup` says how much is marked as referenced
//! (Documentation/filesystems/proc.rst). The price: both walk the page tables while holding the
//! process's mmap lock, the processor must set each bit anew (a page walk for each page that the TLB
//! held), and reclaim loses what the cleared bits would have told it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A process that is looked at.
#[derive(Debug)]
pub struct Process {
    folder: PathBuf,
}

/// One interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Bytes referenced during the interval.
    pub referenced: u64,
    /// Bytes resident at its end.
    pub resident: u64,
    /// What reading took.
    pub cost: Duration,
}

impl Process {
    /// The process `pid`.
    ///
    /// # Errors
    /// When there is none or this user may not look at it.
    pub fn open(pid: u32) -> io::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        fs::read_to_string(folder.join("smaps_rollup"))?;
        Ok(Self { folder })
    }

    /// Begins an interval; the time that took.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn clear(&self) -> io::Result<Duration> {
        let begun = Instant::now();
        fs::write(self.folder.join("clear_refs"), "1")?;
        Ok(begun.elapsed())
    }

    /// What was referenced since [`Process::clear`].
    ///
    /// # Errors
    /// When the process has ended.
    pub fn look(&self) -> io::Result<Interval> {
        let begun = Instant::now();
        let text = fs::read_to_string(self.folder.join("smaps_rollup"))?;
        let gone = || io::Error::other("the kernel no longer says what the process references");
        Ok(Interval {
            referenced: bytes(&text, "Referenced:").ok_or_else(gone)?,
            resident: bytes(&text, "Rss:").ok_or_else(gone)?,
            cost: begun.elapsed(),
        })
    }
}

fn bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{HugePages, Region, page_size};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn what_is_referenced_is_seen_and_what_rests_is_not() {
        let region = Region::anonymous(8192).unwrap();
        let _ = region.advise(HugePages::Forbidden);
        region.populate(|_, _| {});
        let process = Process::open(std::process::id()).unwrap();
        let stop = AtomicBool::new(false);
        let (base, size) = (region.base() as usize, page_size());
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for page in 0..2048 {
                        // SAFETY: within the region, which outlives the scope.
                        unsafe { std::ptr::read_volatile((base + page * size) as *const u8) };
                    }
                }
            });
            process.clear().unwrap();
            std::thread::sleep(Duration::from_millis(200));
            let seen = process.look();
            stop.store(true, Ordering::Relaxed);
            seen.unwrap()
        });
        let least = 2048 * size as u64;
        assert!(seen.referenced >= least && seen.referenced < 3 * least, "{seen:?}");
        assert!(seen.resident >= 4 * least, "{seen:?}");
    }

    #[test]
    fn no_process_is_an_error() {
        assert!(Process::open(u32::MAX).is_err());
        assert_eq!(bytes("Rss:      12 kB\n", "Rss:"), Some(12_288));
        assert_eq!(bytes("Rss: x kB", "Rss:"), None);
    }
}
