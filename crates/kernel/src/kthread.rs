//! What a thread of the kernel's has used of the processors: ksmd, kswapd0.

use std::fs;
use std::path::PathBuf;

/// Threads of the kernel's whose names begin alike.
#[derive(Clone, Debug)]
pub struct KernelThreads(Vec<PathBuf>);

impl KernelThreads {
    /// None of them.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Those whose names are `name`, or `name` and a number. None where /proc does not show the
    /// kernel's threads, as in a container.
    pub fn find(name: &str) -> Self {
        let folders = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        let named = folders.filter(|folder| {
            let comm = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            let rest = comm.trim_end().strip_prefix(name);
            // A thread of the kernel's has no command line.
            rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
                && fs::read(folder.join("cmdline")).is_ok_and(|line| line.is_empty())
        });
        Self(named.collect())
    }

    /// Their processor time so far, ns: the first number of /proc/PID/schedstat. `None` where there
    /// are none, or the kernel does not count it.
    pub fn time(&self) -> Option<u64> {
        let times = self.0.iter().map(|folder| {
            let text = fs::read_to_string(folder.join("schedstat")).ok()?;
            text.split_ascii_whitespace().next()?.parse::<u64>().ok()
        });
        times.reduce(|sum, time| Some(sum? + time?)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_processes_have_no_kthread_time() {
        assert_eq!(KernelThreads::find("no-such-thread").time(), None);
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(KernelThreads::find(own.trim_end()).time(), None, "a program has a command line");
    }
}
