//! The memory of a process and all its descendants.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use pagelab_kernel::files;
use pagelab_kernel::working_set::Process;
use pagelab_procfs::value;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// How long the end of killed processes is waited for; what is left then ends with the limit's cgroup.
const TIMEOUT: Duration = Duration::from_secs(5);

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

/// Kills `root` and its descendants, and waits for those that their parents' ends give to this
/// process.
pub(super) fn kill(root: u32) {
    // What is forked meanwhile is found the next time: the children of a dead process are this process's.
    for pid in descendants(root).into_iter().chain([root]) {
        send_kill(pid);
    }
    let own = std::process::id();
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        let left: Vec<u32> = descendants(own).into_iter().filter(|&pid| pid != root).collect();
        if left.is_empty() {
            return;
        }
        for pid in left {
            send_kill(pid);
            let _ = waitpid(pid_of(pid), WaitOptions::NOHANG);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn send_kill(pid: u32) {
    if let Some(pid) = pid_of(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The numbers of all descendants of `root` now.
fn descendants(root: u32) -> Vec<u32> {
    let (mut found, mut left) = (Vec::new(), vec![root]);
    while let Some(pid) = left.pop() {
        let children = children(pid);
        found.extend(&children);
        left.extend(children);
    }
    found
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// That of `root` and its descendants now, and who they are. A process that ends meanwhile is left
/// out.
pub(super) fn memory(root: u32) -> (Memory, Vec<u32>) {
    let (mut found, mut processes) = (Memory::default(), Vec::new());
    for pid in [root].into_iter().chain(descendants(root)) {
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
