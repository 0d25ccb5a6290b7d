//! The processes that a process started, by the kernel's lists of children.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

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

/// Kills all descendants of `root`, and returns when they have ended. `root` adopts the children
/// of those that end (see [`super::microstates`]), so that none is missed.
pub fn kill(root: u32) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let left: Vec<u32> = of(root).into_iter().filter(|&pid| lives(pid)).collect();
        if left.is_empty() || Instant::now() > deadline {
            return;
        }
        for pid in left.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether the process has not ended; one that has is in the lists until it is waited for.
fn lives(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/stat")).is_ok_and(|text| {
        let state = text.iter().rposition(|&b| b == b')').and_then(|at| text.get(at + 2));
        state.is_some_and(|state| !matches!(state, b'Z' | b'X'))
    })
}

/// Kills the descendants of this process when dropped.
#[derive(Debug)]
pub struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        kill(std::process::id());
    }
}
