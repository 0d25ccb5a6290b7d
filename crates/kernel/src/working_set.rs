//! The working set of a running process: the pages it references within an interval.
//!
//! The kernel clears the accessed bit of every page of the process (`/proc/PID/clear_refs`, value
//! 1), the interval passes, and `/proc/PID/smaps_rollup` says how much is marked as referenced
//! (Documentation/filesystems/proc.rst). The price: both walk the page tables while holding the
//! process's mmap lock, the processor must set each bit anew (a page walk for each page that the
//! TLB held), and reclaim loses what the cleared bits would have told it.
//!
//! A page of a file counts as referenced also when another process referenced it: the kernel marks
//! the page itself, for example when a process that used it exits. So memory of which others may
//! have used pages is separated: anonymous pages, and pages of files that no other process maps,
//! are private; the others are shared. The kernel sums references per mapping only. Where a mapping
//! has private and shared pages and only some are marked, each kind gets its share of the resident
//! pages.
//!
//! The private figure has bounds ([`Bounds`]). The lower bound assumes that shared pages of such a
//! mapping were marked first, the upper bound that private pages were. The kernel does not empty
//! the TLB when it clears the bits, so the bit of a page whose translation stays there is not set
//! again: the upper bound has as many pages more as the TLB has entries. (Of 1,024 pages written
//! again and again 892 were seen; with a sleep of ten milliseconds between the turns all.)

use std::fs;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pagelab_procfs::{addresses, pair, value};

use crate::files;
use crate::region::page_size;

/// A process that is looked at.
#[derive(Debug)]
pub struct Process {
    folder: PathBuf,
    walk: Duration,
}

/// Bounds of the private working set of an interval, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Private memory that is marked as referenced for certain.
    pub lower: u64,
    /// All private memory that may be marked, and as much as the TLB may hide.
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
    /// Of these, bytes of pages that other processes map too.
    pub shared: u64,
    /// Bytes resident at its end.
    pub resident: u64,
}

/// One interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Bytes marked as referenced during the interval.
    pub referenced: u64,
    /// Of these, bytes of pages that other processes map too, so that any of them may have
    /// referenced them. [`Process::sample`] cannot tell: 0.
    pub shared: u64,
    /// Bytes resident at its end.
    pub resident: u64,
    /// Of these, bytes of private pages. [`Process::sample`] cannot tell: all.
    pub private: u64,
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
        let begun = Instant::now();
        files::text(folder.join("smaps_rollup"))?;
        Ok(Self { folder, walk: begun.elapsed() })
    }

    /// The time that one walk of its page tables took.
    pub fn walk(&self) -> Duration {
        self.walk
    }

    /// The address ranges of its anonymous memory, ascending; adjacent ones are one. Reading them
    /// walks no page table.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn anonymous(&self) -> io::Result<Vec<Range<u64>>> {
        let ranges = anonymous(&files::text(self.folder.join("maps"))?);
        // A process that has ended is there until its parent asks, without memory.
        if ranges.is_empty() { Err(gone()) } else { Ok(ranges) }
    }

    /// Its resident bytes, and those of them that are anonymous, by the kernel's counters.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn resident(&self) -> io::Result<(u64, u64)> {
        let text = files::text(self.folder.join("status"))?;
        value(&text, "VmRSS").zip(value(&text, "RssAnon")).ok_or_else(gone)
    }

    /// What the kernel calls it; `None` where it has ended.
    pub fn name(&self) -> Option<String> {
        Some(files::text(self.folder.join("comm")).ok()?.trim_end().to_owned())
    }

    /// What was referenced since [`Process::clear`], and the bounds of its private part where the
    /// TLB has `tlb` entries.
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
        let cost = begun.elapsed();
        let mappings = mappings(&text);
        if mappings.is_empty() {
            // A process that has ended is there until its parent asks, without memory.
            return Err(gone());
        }
        let hidden = tlb.saturating_mul(page_size() as u64);
        let sum = |of: fn(&Mapping) -> u64| mappings.iter().map(of).sum::<u64>();
        let interval = Interval {
            referenced: sum(|mapping| mapping.referenced),
            shared: sum(Mapping::shared_referenced),
            resident: sum(|mapping| mapping.resident),
            private: sum(|mapping| mapping.resident - mapping.shared()),
            cost,
        };
        Ok((interval, bounds(&mappings, hidden), areas(&mappings)))
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
        let resident = value(&text, "Rss").ok_or_else(gone)?;
        Ok(Interval {
            referenced: value(&text, "Referenced").ok_or_else(gone)?,
            shared: 0,
            resident,
            private: resident,
            cost: begun.elapsed(),
        })
    }
}

fn gone() -> io::Error {
    io::Error::other("the kernel stopped reporting the references of the process")
}

/// The private mappings of no file that can be accessed: `START-END RIGHTS OFFSET DEVICE INODE
/// [NAME]`.
pub(crate) fn anonymous(maps: &str) -> Vec<Range<u64>> {
    const NAMES: [&str; 2] = ["[heap]", "[stack]"];
    let mut list: Vec<Range<u64>> = Vec::new();
    for line in maps.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, rights, _, _, "0", name @ ..] = &words[..] else { continue };
        let named = name.first().is_none_or(|name| NAMES.contains(name) || name.starts_with("[anon:"));
        let Some(range) = addresses(line).filter(|_| named) else { continue };
        if !rights.ends_with('p') || rights.starts_with("---") {
            continue;
        }
        match list.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => list.push(range),
        }
    }
    list
}

/// A mapping's lines: `START-END RIGHTS OFFSET DEVICE INODE [NAME]`, then `NAME:  N kB`.
#[derive(Debug, Default)]
struct Mapping {
    start: u64,
    name: String,
    referenced: u64,
    resident: u64,
    anonymous: u64,
    /// Pages that several processes map, of files and anonymous.
    several: u64,
}

impl Mapping {
    /// Resident bytes of files that several processes map. An accessed bit belongs to one process,
    /// and the kernel marks no anonymous page for another's use of it: anonymous pages are private,
    /// also those that a fork shares.
    fn shared(&self) -> u64 {
        self.several.min(self.resident.saturating_sub(self.anonymous))
    }

    /// The part of the referenced bytes that is shared: in proportion to the resident pages.
    fn shared_referenced(&self) -> u64 {
        let part = u128::from(self.referenced) * u128::from(self.shared()) / u128::from(self.resident.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

fn mappings(smaps: &str) -> Vec<Mapping> {
    let mut list: Vec<Mapping> = Vec::new();
    for line in smaps.lines() {
        if let Some(range) = addresses(line) {
            let name = line.split_ascii_whitespace().skip(5).collect::<Vec<_>>().join(" ");
            list.push(Mapping { start: range.start, name, ..Mapping::default() });
        } else if let (Some(mapping), Some((name, bytes))) = (list.last_mut(), pair(line)) {
            match name {
                "Referenced" => mapping.referenced = bytes,
                "Rss" => mapping.resident = bytes,
                "Anonymous" => mapping.anonymous = bytes,
                "Shared_Clean" | "Shared_Dirty" => mapping.several += bytes,
                _ => {}
            }
        }
    }
    list
}

/// The bounds of the private part, where so many bytes may be `hidden` in the TLB.
fn bounds(mappings: &[Mapping], hidden: u64) -> Bounds {
    let sum = |of: fn(&Mapping) -> u64| mappings.iter().map(of).sum::<u64>();
    let resident = sum(|mapping| mapping.resident - mapping.shared());
    let most = sum(|mapping| mapping.referenced.min(mapping.resident - mapping.shared()));
    Bounds {
        lower: sum(|mapping| mapping.referenced.saturating_sub(mapping.shared())),
        upper: (most + hidden).min(resident),
    }
}

/// The mappings for display; files that the mappings before are of too are one with them.
fn areas(mappings: &[Mapping]) -> Vec<Area> {
    let mut list: Vec<Area> = Vec::new();
    for mapping in mappings {
        let name = &mapping.name;
        if name.is_empty() || list.last().is_none_or(|last| last.name != *name) {
            list.push(Area {
                start: mapping.start,
                name: name.clone(),
                referenced: 0,
                shared: 0,
                resident: 0,
            });
        }
        if let Some(area) = list.last_mut() {
            area.referenced += mapping.referenced;
            area.shared += mapping.shared_referenced();
            area.resident += mapping.resident;
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
        // Other tests of this process reference memory meanwhile, and others may have the
        // processors.
        let mut all = Vec::new();
        let known = (0..5).any(|_| {
            stop.store(false, Ordering::Relaxed);
            let (seen, bounds) = sample();
            all.push((seen, bounds));
            bounds.lower <= seen.referenced - seen.shared
                && bounds.upper >= least
                && (least..3 * least).contains(&seen.referenced)
                && seen.resident >= 4 * least
        });
        assert!(known, "{all:?}");
    }

    #[test]
    fn bounds_of_mappings() {
        // Anonymous memory, a part of it shared by a fork; a library, of which others map 80 of
        // 100 kB; the program's own file.
        let smaps = "7f00-7f10 rw-p 00000000 00:00 0 \nSize: 400 kB\nRss: 400 kB\nShared_Dirty: 300 kB\n\
                     Private_Dirty: 100 kB\nReferenced: 40 kB\nAnonymous: 400 kB\nVmFlags: rd\n\
                     7f20-7f30 r-xp 00001000 fe:00 77   /lib/x y\nRss: 100 kB\nShared_Clean: 80 kB\n\
                     Private_Clean: 20 kB\nReferenced: 50 kB\nAnonymous: 0 kB\n\
                     7f40-7f50 r-xp 00000000 fe:00 78   /bin/z\nRss: 10 kB\nPrivate_Clean: 10 kB\nReferenced: 5 kB\n";
        let all = mappings(smaps);
        let kib = |lower: u64, upper: u64| Bounds { lower: lower << 10, upper: upper << 10 };
        // The library's 50 kB are all shared, or up to 20 of them private; by proportion 40 are
        // shared.
        assert_eq!(bounds(&all, 0), kib(45, 65));
        assert_eq!(bounds(&all, 8 << 10), kib(45, 73));
        assert_eq!(bounds(&all, 8 << 20), kib(45, 430));
        assert_eq!(bounds(&[], 1), kib(0, 0));
        let shown: Vec<_> =
            areas(&all).into_iter().map(|a| (a.start, a.name, a.referenced >> 10, a.shared >> 10)).collect();
        assert_eq!(
            shown,
            [
                (0x7f00, String::new(), 40, 0),
                (0x7f20, "/lib/x y".into(), 50, 40),
                (0x7f40, "/bin/z".into(), 5, 0)
            ]
        );
        let twice = smaps
            .replace("7f40-7f50 r-xp 00000000 fe:00 78   /bin/z", "7f40-7f50 r--p 0 fe:00 77   /lib/x y");
        let shown: Vec<_> =
            areas(&mappings(&twice)).into_iter().map(|a| (a.start, a.referenced >> 10)).collect();
        assert_eq!(shown, [(0x7f00, 40), (0x7f20, 55)], "two mappings of one file");
    }

    #[test]
    fn anonymous_mappings_are_private_and_of_no_file() {
        let maps = "400000-401000 r-xp 00000000 fe:00 9 /bin/x\n\
                    401000-402000 rw-p 00000000 00:00 0 [heap]\n\
                    402000-405000 rw-p 00000000 00:00 0 \n\
                    500000-600000 ---p 00000000 00:00 0 \n\
                    600000-700000 rw-s 00000000 00:05 7 /dev/zero (deleted)\n\
                    700000-701000 rw-p 00000000 00:00 0 [anon:a pool]\n\
                    800000-801000 rw-p 00000000 00:00 0 [stack]\n\
                    801000-803000 r--p 00000000 00:00 0 [vvar]\n";
        let wanted = [0x40_1000..0x40_5000, 0x70_0000..0x70_1000, 0x80_0000..0x80_1000];
        assert_eq!(anonymous(maps), wanted);
        let own = Process::open(std::process::id()).unwrap();
        let (all, part) = own.resident().unwrap();
        assert!(part > 0 && all >= part && !own.anonymous().unwrap().is_empty());
    }

    #[test]
    fn no_process_is_an_error() {
        assert!(Process::open(u32::MAX).is_err());
    }
}
