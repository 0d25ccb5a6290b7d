//! Other people's memory cgroups beside swap of the run's own.
//!
//! The kernel has no swap for one cgroup alone: whoever reclaims while it is in use may page into
//! it, whatever its priority. A lower one than the machine's own swap would only send the run's
//! pages there. So it has the highest, and these are looked at: who is at its limit before the
//! load, what is in the area when the load has ended, and whether that fits back, for the kernel
//! kills in a cgroup that what is read back does not fit into.

use std::fs;
use std::path::{Path, PathBuf};

use pagelab_kernel::cgroup::Group;
use pagelab_kernel::{hierarchy, swap_area};

use super::warnings;

/// Cgroups that are looked at, at most.
const MAX_CGROUPS: usize = 10_000;

/// Someone else's cgroup with a memory limit, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    path: PathBuf,
    /// What it may be charged before it reclaims.
    limit: u64,
    /// What it may be charged before the kernel kills.
    hard: u64,
    charged: u64,
    /// The page cache in it, which goes where room is needed.
    cache: u64,
    swap: u64,
    /// The swap that it may use.
    swap_limit: u64,
}

impl Other {
    /// Reads the cgroup at `path`; `None` when it has no limit or is gone.
    fn read(path: &Path) -> Option<Self> {
        let group = Group::new(path);
        let number = |file: &str| group.number(file);
        // `max` and version 1's greatest number: none.
        let limit = |file: &str| number(file).filter(|&v| v < 1 << 60);
        let cached = |names: [&str; 2]| names.iter().map(|name| group.stat(name).unwrap_or(0)).sum();
        let all = u64::MAX;
        let other = if let Some(charged) = number("memory.current") {
            let hard = limit("memory.max").unwrap_or(all);
            Self {
                path: path.to_owned(),
                limit: limit("memory.high").unwrap_or(all).min(hard),
                hard,
                charged,
                cache: cached(["active_file", "inactive_file"]),
                swap: number("memory.swap.current").unwrap_or(0),
                swap_limit: limit("memory.swap.max").unwrap_or(all),
            }
        } else {
            let charged = number("memory.usage_in_bytes")?;
            let hard = limit("memory.limit_in_bytes").unwrap_or(all);
            let both = limit("memory.memsw.limit_in_bytes").unwrap_or(all);
            Self {
                path: path.to_owned(),
                limit: hard,
                hard,
                charged,
                cache: cached(["total_active_file", "total_inactive_file"]),
                swap: number("memory.memsw.usage_in_bytes").unwrap_or(0).saturating_sub(charged),
                swap_limit: match number("memory.swappiness") {
                    Some(0) => 0,
                    _ => both.saturating_sub(hard),
                },
            }
        };
        (other.limit < all).then_some(other)
    }

    /// Whether it is at its limit and may swap.
    fn may_page(&self) -> bool {
        // Reclaim takes several large folios at once and leaves it that far below: 24 MiB filled
        // with page cache stood up to 1.6 MiB short of its limit in 25 tries on 6.18.
        const RECLAIMED: u64 = 4 << 20;
        let below = (self.limit / 8).min(RECLAIMED).max(self.limit / 16);
        self.charged >= self.limit - below && self.swap < self.swap_limit
    }

    /// Bytes beyond the limit if its swap came back, of which no more than `used` is in the area.
    fn beyond(&self, used: u64) -> u64 {
        let back = self.swap.min(used);
        if back == 0 {
            return 0;
        }
        (self.charged - self.cache.min(self.charged)).saturating_add(back).saturating_sub(self.hard)
    }
}

/// Everybody's cgroups with a limit, but pagelab's.
fn all() -> Vec<Other> {
    let Some(mount) = hierarchy::mount() else { return Vec::new() };
    let (mut folders, mut found, mut looked) = (vec![mount], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let ours = entry.file_name().to_string_lossy().starts_with("pagelab-");
            if ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) || looked == MAX_CGROUPS {
                continue;
            }
            looked += 1;
            found.extend(Other::read(&entry.path()));
            folders.push(entry.path());
        }
    }
    found
}

/// Who would page into the run's swap: a sentence, where there is anybody.
pub fn warning() -> Option<String> {
    let names: Vec<String> =
        all().iter().filter(|o| o.may_page()).map(|o| o.path.display().to_string()).collect();
    let (first, more) = (names.first()?, names.len() - 1);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "the cgroup {first}{more} {}, because the kernel lets every cgroup use it; wait until it ends, or \
        measure in a guest (--on kernel:IMAGE)",
        warnings::MAY_SWAP.0
    ))
}

/// What was left of other people's in the swap area `path` when the run's processes had ended: a
/// sentence, where it was more than the kernel's rests.
pub fn left_in(path: &Path) -> Option<String> {
    /// Slots that the kernel keeps at hand for each processor.
    const REST: u64 = 1 << 20;
    let rest = REST * std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let used = swap_area::used(path)?;
    (used > rest).then(|| {
        format!(
            "{:.1} MiB {}: its figures include their swap traffic",
            used as f64 / f64::from(1 << 20),
            warnings::OTHERS_SWAPPED.0
        )
    })
}

/// Why the swap area `path` cannot be taken out of use without harm: what is in it would not fit
/// back into the cgroup that it is of, and no other swap has room for it. `None`: it can.
pub fn in_the_way(path: &Path) -> Option<String> {
    let used = swap_area::used(path).filter(|&used| used > 0)?;
    if swap_area::free_beside(path) >= used {
        return None;
    }
    let other = all().into_iter().find(|other| other.beyond(used) > 0)?;
    Some(format!(
        "the cgroup {} has pages in it, {:.1} MiB more than fit into its memory limit: swapoff would cause \
        an OOM kill",
        other.path.display(),
        other.beyond(used) as f64 / f64::from(1 << 20)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Option<Other> {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(file, text)| fs::write(folder.path().join(file), text).unwrap());
        Other::read(folder.path())
    }

    #[test]
    fn version_1_at_its_limit() {
        let mut files = vec![
            ("memory.limit_in_bytes", "1000\n"),
            ("memory.memsw.limit_in_bytes", "9223372036854771712\n"),
            ("memory.usage_in_bytes", "990\n"),
            ("memory.memsw.usage_in_bytes", "1690\n"),
            ("memory.swappiness", "60\n"),
            ("memory.stat", "total_inactive_file 100\ntotal_active_file 200\n"),
        ];
        let other = read(&files).unwrap();
        assert!(other.may_page());
        assert_eq!((other.swap, other.beyond(9000), other.beyond(300)), (700, 390, 0));
        files[4].1 = "0\n";
        assert!(!read(&files).unwrap().may_page(), "it never swaps");
        files[4].1 = "60\n";
        for (limit, charged, at) in [
            ("25165824\n", "23482368\n", true),
            ("25165824\n", "20000000\n", false),
            ("1073741824\n", "1000000000\n", false),
        ] {
            (files[0].1, files[2].1) = (limit, charged);
            assert_eq!(read(&files).unwrap().may_page(), at, "{charged} of {limit}");
        }
        files[0].1 = "9223372036854771712\n";
        assert_eq!(read(&files), None, "no limit");
    }

    #[test]
    fn version_2_at_its_limit() {
        let mut files = vec![
            ("memory.max", "1000\n"),
            ("memory.high", "max\n"),
            ("memory.swap.max", "max\n"),
            ("memory.current", "950\n"),
            ("memory.swap.current", "100\n"),
            ("memory.stat", "active_file 0\ninactive_file 200\n"),
        ];
        let other = read(&files).unwrap();
        assert!(other.may_page());
        assert_eq!(other.beyond(9000), 0, "its page cache makes room");
        files[2].1 = "100\n";
        assert!(!read(&files).unwrap().may_page(), "it has all the swap that it may use");
        files[3].1 = "500\n";
        files[1].1 = "510\n";
        files[2].1 = "max\n";
        assert!(read(&files).unwrap().may_page(), "memory.high reclaims too");
    }
}
