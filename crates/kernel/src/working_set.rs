//! The working set of a running process: the pages it references within an interval.
//!
//! The kernel clears the accessed bit of every page of the process (`/proc/PID/clear_refs`, value 1),
//! the interval passes, and `/proc/PID/smaps_rollup` says how much is marked as referenced
//! (Documentation/filesystems/proc.rst). The price: both walk the page tables while holding the
//! process's mmap lock, the processor must set each bit anew (a page walk for each page that the TLB
//! held), and reclaim loses what the cleared bits would have told it.
//!
//! The figure is not exact, and has bounds ([`Bounds`]). A page of a file counts as referenced also
//! when another process referenced it: the lower bound has memory without a file alone. The kernel
//! does not empty the TLB when it clears the bits, so the bit of a page whose translation stays
//! there is not set again: the upper bound has as many pages more as the TLB has entries. (Of 1,024
//! pages written again and again 892 were seen; with a sleep of ten milliseconds between the turns
//! all.)

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pagelab_procfs::{addresses, value};

use crate::files;
use crate::region::page_size;

/// A process that is looked at.
#[derive(Debug)]
pub struct Process {
    folder: PathBuf,
}

/// Between what the working set of an interval lies, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Referenced memory that no file stands behind.
    pub lower: u64,
    /// All that is marked as referenced, and as much as the TLB may hide.
    pub upper: u64,
}

/// What is known of a mapping: all that accessed bits tell a user, for the kernel shows their sums
/// alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// The first address.
    pub start: u64,
    /// The file, `[heap]`, `[stack]` and the like; empty for anonymous memory.
    pub name: String,
    /// Bytes referenced during the interval.
    pub referenced: u64,
    /// Bytes resident at its end.
    pub resident: u64,
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
        files::text(folder.join("smaps_rollup"))?;
        Ok(Self { folder })
    }

    /// What the kernel calls it; `None` where it has ended.
    pub fn name(&self) -> Option<String> {
        Some(files::text(self.folder.join("comm")).ok()?.trim_end().to_owned())
    }

    /// What was referenced since [`Process::clear`], and between what that lies where the TLB has
    /// `tlb` entries.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn sample_with_bounds(&self, tlb: u64) -> io::Result<(Interval, Bounds)> {
        let (interval, bounds, _) = self.sample_areas(tlb)?;
        Ok((interval, bounds))
    }

    /// The same, and by mapping in the order of addresses.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn sample_areas(&self, tlb: u64) -> io::Result<(Interval, Bounds, Vec<Area>)> {
        let begun = Instant::now();
        let text = files::text(self.folder.join("smaps"))?;
        let (referenced, resident, bounds) = mappings(&text, tlb.saturating_mul(page_size() as u64));
        let cost = begun.elapsed();
        Ok((Interval { referenced, resident, cost }, bounds, areas(&text)))
    }

    /// What clearing and reading once takes.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn cost(&self) -> io::Result<Duration> {
        Ok(self.clear()? + self.sample_with_bounds(0)?.0.cost)
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
    pub fn sample(&self) -> io::Result<Interval> {
        let begun = Instant::now();
        let text = files::text(self.folder.join("smaps_rollup"))?;
        let gone = || io::Error::other("the kernel stopped reporting the references of the process");
        Ok(Interval {
            referenced: value(&text, "Referenced").ok_or_else(gone)?,
            resident: value(&text, "Rss").ok_or_else(gone)?,
            cost: begun.elapsed(),
        })
    }
}

/// Bytes referenced and resident, and the bounds, from the mappings' lines: `START-END RIGHTS OFFSET DEVICE INODE
/// [NAME]`, then `NAME:  N kB`. So many bytes may be `hidden` in the TLB.
fn mappings(smaps: &str, hidden: u64) -> (u64, u64, Bounds) {
    let (mut lower, mut all, mut resident, mut of_file) = (0, 0, 0, false);
    for line in smaps.lines() {
        if addresses(line).is_some() {
            of_file = line.split_ascii_whitespace().nth(4).is_some_and(|inode| inode != "0");
        } else if let Some(referenced) = value(line, "Referenced") {
            all += referenced;
            lower += if of_file { 0 } else { referenced };
        } else if let Some(present) = value(line, "Rss") {
            resident += present;
        }
    }
    (all, resident, Bounds { lower, upper: (all + hidden).min(resident).max(all) })
}

/// The mappings of the same text; files that the mappings before are of too are one with them.
fn areas(smaps: &str) -> Vec<Area> {
    let mut list: Vec<Area> = Vec::new();
    for line in smaps.lines() {
        if let Some(range) = addresses(line) {
            let name = line.split_ascii_whitespace().skip(5).collect::<Vec<_>>().join(" ");
            if name.is_empty() || list.last().is_none_or(|last| last.name != name) {
                list.push(Area { start: range.start, name, referenced: 0, resident: 0 });
            }
        } else if let Some(area) = list.last_mut() {
            area.referenced += value(line, "Referenced").unwrap_or(0);
            area.resident += value(line, "Rss").unwrap_or(0);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn referenced_pages_count_and_idle_pages_do_not() {
        let region = Region::base_pages(8192).unwrap();
        region.populate(|_, _| {});
        let process = Process::open(std::process::id()).unwrap();
        let stop = AtomicBool::new(false);
        let (base, size) = (region.base() as usize, page_size());
        let sample = || {
            std::thread::scope(|scope| {
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
                let seen = process.sample_with_bounds(4096);
                stop.store(true, Ordering::Relaxed);
                seen.unwrap()
            })
        };
        let least = 2048 * size as u64;
        // Other tests of this process reference memory meanwhile, and others may have the processors.
        let mut all = Vec::new();
        let known = (0..5).any(|_| {
            stop.store(false, Ordering::Relaxed);
            let (seen, bounds) = sample();
            all.push((seen, bounds));
            bounds.lower <= seen.referenced
                && bounds.upper >= least
                && (least..3 * least).contains(&seen.referenced)
                && seen.resident >= 4 * least
        });
        assert!(known, "{all:?}");
    }

    #[test]
    fn bounds_of_mappings() {
        let smaps = "7f00-7f10 rw-p 00000000 00:00 0 \nSize: 400 kB\nRss: 400 kB\nReferenced: 40 kB\nVmFlags: rd\n\
                     7f20-7f30 r-xp 00001000 fe:00 77   /lib/x y\nRss: 100 kB\nReferenced: 60 kB\n";
        let kib = |all: u64, resident: u64, lower: u64, upper: u64| {
            (all << 10, resident << 10, Bounds { lower: lower << 10, upper: upper << 10 })
        };
        assert_eq!(mappings(smaps, 8 << 10), kib(100, 500, 40, 108));
        assert_eq!(mappings(smaps, 8 << 20), kib(100, 500, 40, 500));
        assert_eq!(mappings("", 1), kib(0, 0, 0, 0));
        let shown: Vec<_> = areas(smaps).into_iter().map(|a| (a.start, a.name, a.referenced >> 10)).collect();
        assert_eq!(shown, [(0x7f00, String::new(), 40), (0x7f20, "/lib/x y".into(), 60)]);
        let twice =
            smaps.replace("7f00-7f10 rw-p 00000000 00:00 0 ", "7f18-7f20 r--p 00000000 fe:00 77   /lib/x y");
        let shown: Vec<_> = areas(&twice).into_iter().map(|a| (a.start, a.referenced >> 10)).collect();
        assert_eq!(shown, [(0x7f18, 100)], "two mappings of one file");
    }

    #[test]
    fn no_process_is_an_error() {
        assert!(Process::open(u32::MAX).is_err());
    }
}
