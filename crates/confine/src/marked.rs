//! The processes of a run, wherever they went: each has the run's name in its environment, which
//! children inherit.
//!
//! A cgroup would hold them too, but a run without a limit has none; and a process whose parent was
//! killed is in no other list of pagelab's.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The variable; its value is a journal's name.
pub const VARIABLE: &str = "PAGELAB_RUN";

/// How long to go on killing what is forked meanwhile.
const TIMEOUT: Duration = Duration::from_secs(2);

/// So many looks in a row that find none: a process that is just executing a program has no
/// environment for a moment.
const POLLS: u32 = 3;

/// Kills every process of the run `name` that this user may look at; whether there was one.
pub fn end(name: &str) -> bool {
    let deadline = Instant::now() + TIMEOUT;
    let (mut any, mut none) = (false, 0);
    loop {
        let found = find(name);
        any |= !found.is_empty();
        none = if found.is_empty() { none + 1 } else { 0 };
        for &pid in &found {
            let _ = kill_process(pid, Signal::KILL);
        }
        if none == POLLS || Instant::now() > deadline {
            return any;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Those that live: one that has ended has no environment.
pub fn find(name: &str) -> Vec<Pid> {
    let wanted = format!("{VARIABLE}={name}");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids =
        entries.filter_map(|entry| Some((Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?, entry)));
    let ours = |entry: &fs::DirEntry| {
        fs::read(entry.path().join("environ"))
            .is_ok_and(|text| text.split(|&b| b == 0).any(|variable| variable == wanted.as_bytes()))
    };
    pids.filter(|(_, entry)| ours(entry)).map(|(pid, _)| pid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn processes_of_a_killed_program_are_found() {
        let name = format!("pagelab-{}-999999", std::process::id());
        let mut shell = Command::new("sh");
        // The sleeper leaves its session and its parent.
        shell.args(["-c", "setsid sleep 600 & echo; exec sleep 600"]).env(VARIABLE, &name);
        let mut shell = shell.stdout(Stdio::piped()).spawn().unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        shell.kill().unwrap();
        shell.wait().unwrap();
        while find(&name).is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(end(&name));
        assert!(!end(&name) && find(&name).is_empty());
    }
}
