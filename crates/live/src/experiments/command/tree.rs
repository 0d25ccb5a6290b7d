//! The memory of a process and all its descendants.

use std::collections::HashMap;

use pagelab_kernel::files;
use pagelab_kernel::working_set::Process;
use pagelab_procfs::value;

use crate::harness::descendants;

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

/// That of `root` and its descendants now, and who they are. A process that ends meanwhile is left
/// out.
pub(super) fn memory(root: u32) -> (Memory, Vec<u32>) {
    let (mut found, mut processes) = (Memory::default(), Vec::new());
    for pid in [root].into_iter().chain(descendants::of(root)) {
        let Ok(status) = files::text(format!("/proc/{pid}/status")) else { continue };
        found.resident += value(&status, "VmRSS").unwrap_or(0) as f64;
        found.swapped += value(&status, "VmSwap").unwrap_or(0) as f64;
        found.processes += 1.0;
        processes.push(pid);
    }
    (found, processes)
}

/// The working sets of processes from sample to sample.
#[derive(Debug, Default)]
pub(super) struct WorkingSets(HashMap<u32, Process>);

impl WorkingSets {
    /// Bytes that `processes` referenced since the last sample, one that began meanwhile since its
    /// start; what several share counts for each. `None` when none of them may be looked at.
    pub(super) fn sample(&mut self, processes: &[u32]) -> Option<f64> {
        self.0.retain(|pid, _| processes.contains(pid));
        for &pid in processes {
            if let (false, Ok(process)) = (self.0.contains_key(&pid), Process::open(pid)) {
                self.0.insert(pid, process);
            }
        }
        let referenced = self.0.values().filter_map(|process| {
            let seen = process.sample().ok()?;
            process.clear().ok()?;
            Some(seen.referenced as f64)
        });
        referenced.reduce(|a, b| a + b)
    }
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
        assert!(WorkingSets::default().sample(&processes).is_none_or(|bytes| bytes > 1e4));
        assert_eq!(WorkingSets::default().sample(&[u32::MAX]), None);
    }

    #[test]
    fn a_process_whose_name_is_no_text_has_memory() {
        let script = "printf 'x\\377' > /proc/$$/comm; echo; read x";
        let mut shell = std::process::Command::new("sh");
        let pipe = std::process::Stdio::piped;
        let mut shell = shell.args(["-c", script]).stdin(pipe()).stdout(pipe()).spawn().unwrap();
        let ready = std::io::Read::read(shell.stdout.as_mut().unwrap(), &mut [0]);
        let (seen, _) = memory(shell.id());
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!((ready.unwrap(), seen.processes), (1, 1.0));
        assert!(seen.resident > 1e4, "{seen:?}");
    }
}
