//! The kernel's counters over a run.

use std::collections::HashMap;
use std::path::Path;

use pagelab_experiment::observation::Counter;
use pagelab_kernel::files::KernelFile;
use pagelab_procfs::pairs;

/// The source of the machine's counters.
pub const MACHINE: &str = "vmstat";
/// That of the cgroup's.
pub const CGROUP: &str = "memory.stat";

/// The kernel's counters over a run: every one of `/proc/vmstat` and of the cgroup's `memory.stat`,
/// changed or not, so that an absent name always means that the kernel does not count it.
#[derive(Debug)]
pub struct Counters {
    sources: Vec<(&'static str, KernelFile, String)>,
}

impl Counters {
    /// Opens what exists.
    pub fn open(memory_stat: Option<&Path>) -> Self {
        let vmstat = (MACHINE, Some(Path::new("/proc/vmstat")));
        let open = |(name, path): (&'static str, Option<&Path>)| {
            Some((name, KernelFile::open(path?)?, String::with_capacity(1 << 16)))
        };
        Self { sources: [vmstat, (CGROUP, memory_stat)].into_iter().filter_map(open).collect() }
    }

    /// Reads the values before the run. Allocates nothing.
    pub fn before(&mut self) {
        for (_, file, before) in &mut self.sources {
            before.clear();
            before.push_str(file.read().unwrap_or_default());
        }
    }

    /// Reads the values after it and pairs them with those before.
    pub fn after(&mut self) -> Vec<Counter> {
        let mut counters = Vec::new();
        for (source, file, before) in &mut self.sources {
            let after: HashMap<&str, u64> = pairs(file.read().unwrap_or_default()).collect();
            counters.extend(pairs(before).filter_map(|(name, before)| {
                let after = *after.get(name)? as i64;
                Some(Counter {
                    source: (*source).to_owned(),
                    name: name.to_owned(),
                    before: before as i64,
                    after,
                })
            }));
        }
        counters
    }
}
