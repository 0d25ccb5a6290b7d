//! The memory of a process and all its descendants.

use std::collections::HashMap;
use std::fs;

use crate::working_set::Process;

/// What they have together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Memory {
    /// Resident, bytes; what several share counts for each.
    pub(super) resident: f64,
    /// In swap, bytes.
    pub(super) swapped: f64,
    /// How many they are.
    pub(super) processes: f64,
}

/// That of `root` and its descendants now, and who they are. A process that ends meanwhile is left out.
pub(super) fn memory(root: u32) -> (Memory, Vec<u32>) {
    let (mut found, mut processes) = (Memory::default(), Vec::new());
    let mut left = vec![root];
    while let Some(pid) = left.pop() {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        found.resident += kib(&status, "VmRSS:").unwrap_or(0.0) * 1024.0;
        found.swapped += kib(&status, "VmSwap:").unwrap_or(0.0) * 1024.0;
        found.processes += 1.0;
        processes.push(pid);
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            left.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    (found, processes)
}

/// The working sets of processes from look to look.
#[derive(Debug, Default)]
pub(super) struct WorkingSets(HashMap<u32, Process>);

impl WorkingSets {
    /// Bytes that `processes` referenced since the last look, one that began meanwhile since its start; what
    /// several share counts for each. `None` when none of them may be looked at.
    pub(super) fn look(&mut self, processes: &[u32]) -> Option<f64> {
        self.0.retain(|pid, _| processes.contains(pid));
        for &pid in processes {
            if let (false, Ok(process)) = (self.0.contains_key(&pid), Process::open(pid)) {
                self.0.insert(pid, process);
            }
        }
        let referenced = self.0.values().filter_map(|process| {
            let seen = process.look().ok()?;
            process.clear().ok()?;
            Some(seen.referenced as f64)
        });
        referenced.reduce(|a, b| a + b)
    }
}

/// `NAME:  N kB`.
fn kib(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_a_dead_one_none() {
        let (own, processes) = memory(std::process::id());
        assert_eq!(processes[0], std::process::id());
        assert!(own.resident > 1e5 && own.processes >= 1.0, "{own:?}");
        assert_eq!(memory(u32::MAX), (Memory::default(), Vec::new()));
        assert!(WorkingSets::default().look(&processes).is_none_or(|bytes| bytes > 1e4));
        assert_eq!(WorkingSets::default().look(&[u32::MAX]), None);
        assert_eq!(kib("VmRSS:\t    12 kB\n", "VmRSS:"), Some(12.0));
        assert_eq!(kib("VmRSS:\t    x kB\n", "VmRSS:"), None);
    }
}
