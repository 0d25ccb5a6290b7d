//! The individual requests of the page cache, through a ring buffer: the file and its pages, in the
//! order in which the kernel served them.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pagelab_counters::views::cachestat::{By, Counts};

use super::super::TraceError;
use super::PageRequests;
use super::channel::Channel;
pub use super::channel::Kind;
use crate::cgroup::Group;
use crate::files;
use crate::region::page_size;

/// An event of pages of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of event.
    pub kind: Kind,
    /// The kernel's number of the file's device.
    pub device: u32,
    /// The file's inode.
    pub inode: u64,
    /// The page numbers within the file.
    pub pages: std::ops::Range<u64>,
}

/// Reports and counts the requests of the machine, or of one memory cgroup and those below it, until
/// it is dropped.
#[derive(Debug)]
pub struct PageStream {
    requests: PageRequests,
    channel: Channel,
    group: Option<PathBuf>,
    known: HashSet<u64>,
}

impl PageStream {
    /// Starts the programs. `group` is the directory of a memory cgroup.
    ///
    /// # Errors
    /// If the kernel is older than 5.18 or has no BTF, or the caller lacks the privileges.
    pub fn start(group: Option<&Path>) -> Result<Self, TraceError> {
        let channel = Channel::new(group.is_some())?;
        let by = if group.is_some() { By::Cgroup } else { By::Machine };
        let mut known = HashSet::new();
        if let Some(group) = group {
            add_groups(&channel, &mut known, group);
        }
        let requests = PageRequests::begin(by, Some(&channel))?;
        Ok(Self { requests, channel, group: group.map(Path::to_owned), known })
    }

    /// The hooks of the programs: "functions" or "tracepoints".
    pub fn source(&self) -> &'static str {
        self.requests.source()
    }

    /// Passes every available event to `take`, in order.
    pub fn drain(&mut self, mut take: impl FnMut(Event)) {
        self.channel.ring.drain(|[head, inode, first, end]| {
            let [a, b, c, d, e, f, g, h] = head.to_ne_bytes();
            let kind = match u32::from_ne_bytes([a, b, c, d]) {
                0 => Kind::Requested,
                1 => Kind::Read,
                _ => Kind::Written,
            };
            take(Event { kind, device: u32::from_ne_bytes([e, f, g, h]), inode, pages: first..end });
        });
    }

    /// Includes the cgroups that were created since the last call.
    pub fn update_groups(&mut self) {
        if let Some(group) = &self.group {
            add_groups(&self.channel, &mut self.known, group);
        }
    }

    /// The kernel's hits and misses since the last call, and the number of unclassified pages.
    pub fn counts(&mut self) -> (Counts, u64) {
        let sample = self.requests.sample();
        let mut sum = Counts::default();
        for (owner, counts) in sample.owners {
            if self.group.is_none() || owner.number.is_some_and(|number| self.known.contains(&number)) {
                sum.hits += counts.hits;
                sum.misses += counts.misses;
                sum.ahead += counts.ahead;
            }
        }
        (sum, sample.lost)
    }

    /// Bytes of file pages in the page cache of the machine or of the cgroup.
    pub fn cached_bytes(&self) -> Option<u64> {
        let Some(group) = &self.group else {
            let text = files::text("/proc/vmstat").ok()?;
            let [all, shared] = ["nr_file_pages", "nr_shmem"].map(|name| pagelab_procfs::value(&text, name));
            return Some(all?.saturating_sub(shared.unwrap_or(0)) * page_size() as u64);
        };
        // The counts include the cgroups below: `total_` in version 1, every count in version 2.
        let text = Group::new(group).text("memory.stat")?;
        let of = |names: [&str; 2]| names.iter().find_map(|name| pagelab_procfs::value(&text, name));
        Some(of(["total_cache", "file"])?.saturating_sub(of(["total_shmem", "shmem"]).unwrap_or(0)))
    }

    /// Number of pages in events lost because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.channel.dropped.get([0]).map_or(0, |[pages]| pages)
    }
}

/// A file's device number and inode, in the form of the events.
pub fn file_number(file: &fs::Metadata) -> (u32, u64) {
    (rustix::fs::major(file.dev()) << 20 | rustix::fs::minor(file.dev()), file.ino())
}

/// Adds a cgroup and the cgroups below it.
fn add_groups(channel: &Channel, known: &mut HashSet<u64>, group: &Path) {
    let Some(map) = &channel.groups else { return };
    let mut folders = vec![group.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(metadata) = fs::metadata(&folder) else { continue };
        let number = metadata.ino();
        if known.insert(number) {
            let [low, high] = words_of(number);
            map.put([low, high], [1]);
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
}

/// The two halves of a word of eight bytes.
fn words_of(number: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = number.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

#[cfg(test)]
mod tests {
    use super::super::super::pair;
    use super::*;

    #[test]
    fn words_are_those_of_the_kernel() {
        for number in [0, 1, 1 << 40 | 7, u64::MAX] {
            let [low, high] = words_of(number);
            assert_eq!(pair(low, high), number);
        }
    }
}
