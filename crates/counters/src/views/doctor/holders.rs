//! Who holds memory: processes by their share, and what belongs to no process: page cache that nobody maps,
//! shared memory, the kernel's slab.

use super::Limited;
use crate::tree::{Snapshot, of_group};
use crate::views::memstat::{self, Holder};

/// How many holders are named.
const NAMED: usize = 5;

/// What holders are found in.
pub(super) struct Holders<'a> {
    /// The counters.
    pub now: &'a Snapshot,
    /// The shares of the largest processes.
    pub shares: &'a Snapshot,
    /// The cgroup that a process's memory is charged to.
    pub cgroup_of: &'a dyn Fn(u64) -> Option<String>,
}

impl Holders<'_> {
    /// The largest holders of a cgroup's memory, or of the machine's.
    pub fn of(&self, group: Option<&Limited>) -> Vec<Holder> {
        let mut samples = self.shares.samples().to_vec();
        samples.extend_from_slice(self.now.module("process"));
        let mut found = memstat::by_process(&Snapshot::new(self.now.at_ns, samples));
        if let Some(group) = group {
            let below = format!("{}/", group.path.trim_end_matches('/'));
            found.retain(|holder| {
                let cgroup = holder.pid.and_then(self.cgroup_of);
                cgroup.is_some_and(|path| path == group.path || path.starts_with(&below))
            });
        }
        let others = match group {
            Some(group) => self.charged(group),
            None => self.machine(),
        };
        found.extend(others.into_iter().filter_map(|(name, bytes)| {
            Some(Holder { name: name.to_owned(), total: Some(bytes?), ..Holder::default() })
        }));
        found.retain(|holder| holder.total.is_some_and(|bytes| bytes > 0.0));
        found.sort_by(|a, b| b.total.partial_cmp(&a.total).unwrap_or(std::cmp::Ordering::Equal));
        found.truncate(NAMED);
        found
    }

    /// What no process holds of the machine's memory.
    fn machine(&self) -> [(&'static str, Option<f64>); 3] {
        let lines = memstat::lines(self.now);
        let line = |kind: &str| lines.iter().find(|line| line.kind == kind).and_then(|line| line.bytes);
        [(CACHE, line("unmapped file cache")), (SHARED, line("shared memory")), (SLAB, line("kernel: slab"))]
    }

    /// What no process holds of what a cgroup is charged.
    fn charged(&self, group: &Limited) -> [(&'static str, Option<f64>); 3] {
        let own = |statistic| {
            let groups = self.now.groups("cgroup");
            let mut groups =
                groups.filter(|(version, path, _)| *version == group.version && ***path == *group.path);
            groups.next().and_then(|(_, _, samples)| of_group(samples, statistic))
        };
        // Version 1's cache holds shared memory, as version 2's file does.
        let file = own("file").or_else(|| own("cache"));
        let shared = own("shmem");
        let mapped = own("file_mapped").or_else(|| own("mapped_file")).unwrap_or(0.0);
        let cache = file.map(|file| (file - shared.unwrap_or(0.0) - mapped).max(0.0));
        // Version 1 does not part the kernel's memory from the rest; what is left is its.
        let rest = || Some((own("current")? - own("rss")? - own("cache")?).max(0.0));
        match own("slab") {
            Some(slab) => [(CACHE, cache), (SHARED, shared), (SLAB, Some(slab))],
            None => [(CACHE, cache), (SHARED, shared), (KERNEL, own("kernel").or_else(rest))],
        }
    }
}

/// File pages that no process maps.
pub(super) const CACHE: &str = "page cache";
/// Of tmpfs and of segments.
pub(super) const SHARED: &str = "shared memory";
/// The kernel's objects.
pub(super) const SLAB: &str = "slab";
/// The kernel's memory, of which slab is the most.
const KERNEL: &str = "kernel memory";
