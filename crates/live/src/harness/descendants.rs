//! The processes that a process started, by the kernel's lists of children.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// How long the end of killed processes is waited for. What is left then ends with the cgroup of
/// the limit, or is found by the variable in its environment.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The numbers of all descendants of `root` now.
pub fn of(root: u32) -> Vec<u32> {
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

/// Kills all descendants of `root`, and waits until they have ended: their numbers. `root` must adopt
/// orphans (see [`super::microstates`]); otherwise the children of a killed process are missed.
pub fn kill(root: u32) -> BTreeSet<u32> {
    let (deadline, mut killed) = (Instant::now() + TIMEOUT, BTreeSet::new());
    loop {
        let left: Vec<u32> = of(root).into_iter().filter(|&pid| lives(pid)).collect();
        killed.extend(&left);
        if left.is_empty() || Instant::now() > deadline {
            return killed;
        }
        for pid in left.into_iter().filter_map(process) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Asks for the status of ended processes that this process has adopted. The kernel counts what
/// they used only then.
pub fn reap(ended: &BTreeSet<u32>) {
    for pid in ended.iter().copied().filter_map(process) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

fn process(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Whether the process has not ended. A zombie has.
fn lives(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/stat")).is_ok_and(|text| {
        let state = text.iter().rposition(|&b| b == b')').and_then(|at| text.get(at + 2));
        state.is_some_and(|state| !matches!(state, b'Z' | b'X'))
    })
}

/// Kills the descendants of this process when dropped.
#[derive(Debug)]
pub struct KillOnDrop;

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        kill(std::process::id());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn descendants_are_killed_and_their_root_is_not() {
        let script = "sh -c 'sleep 600 & echo; wait' & wait; echo; read line";
        let mut command = Command::new("sh");
        let mut shell =
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let begun = of(shell.id());
        assert!(begun.len() >= 2, "{begun:?}");
        kill(shell.id());
        // It goes on once the process that it waited for has ended.
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let root = lives(shell.id());
        let left: Vec<u32> = begun.into_iter().filter(|&pid| lives(pid)).collect();
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert!(left.is_empty() && root, "{left:?}");
    }
}
