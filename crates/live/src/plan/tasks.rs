//! How many threads a load may have beside those there are: processes are a resource like memory.

use std::fs;
use std::path::Path;

use pagelab_confine::swap;
use pagelab_experiment::experiments::Tasks;
use pagelab_kernel::{files, hierarchy};
use pagelab_procfs::value;
use rustix::process::{Resource, getrlimit, getuid};

/// Threads that a load may have at once on any machine: the kernel's own default for the number of
/// processes.
pub const MAX_THREADS: u64 = 32_768;

/// Threads of pagelab itself while a load runs.
const OWN: u64 = 8;

/// Threads for which there is room, and what bounds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// So many more than there are.
    pub threads: u64,
    /// What says so.
    pub bound: String,
}

/// Why a load of `tasks` cannot be had where there is `room`; `None`: it can.
pub fn refusal(tasks: Tasks, room: &[Room]) -> Option<String> {
    let wanted = tasks.threads.saturating_add(OWN);
    let least = room.iter().min_by_key(|room| room.threads)?;
    (wanted > least.threads).then(|| {
        format!(
            "has room for {} more threads ({}), and the experiment needs {wanted}: {} of its own in {} processes, and {OWN} of \
             pagelab",
            least.threads, least.bound, tasks.threads, tasks.processes
        )
    })
}

/// What bounds the threads of this process's user, session and machine.
pub fn room() -> Vec<Room> {
    let threads = files::text("/proc/loadavg").ok().and_then(|text| {
        let (_, all) = text.split_ascii_whitespace().nth(3)?.split_once('/')?;
        all.parse::<u64>().ok()
    });
    let there = threads.unwrap_or(0);
    let machine =
        ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"].into_iter().filter_map(|path| {
            let most = files::number(path)?;
            Some(Room { threads: most.saturating_sub(there), bound: format!("{path} is {most}") })
        });
    machine.chain(of_cgroups()).chain(of_user()).collect()
}

/// What the cgroups above this process leave.
fn of_cgroups() -> Vec<Room> {
    let Some(hierarchy) = hierarchy::of("pids") else { return Vec::new() };
    let above = hierarchy.own.ancestors().take_while(|folder| folder.starts_with(&hierarchy.mount));
    above.filter_map(of_cgroup).collect()
}

fn of_cgroup(folder: &Path) -> Option<Room> {
    let (most, there) =
        (files::number(folder.join("pids.max"))?, files::number(folder.join("pids.current"))?);
    let bound = format!("{} is {most}", folder.join("pids.max").display());
    Some(Room { threads: most.saturating_sub(there), bound })
}

/// What RLIMIT_NPROC leaves to a user whom it bounds.
fn of_user() -> Option<Room> {
    let most = getrlimit(Resource::Nproc).current?;
    let user = getuid();
    if user.is_root() || swap::permitted() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let threads = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("status")).ok()?;
        (value(&text, "Uid")? == u64::from(user.as_raw())).then(|| value(&text, "Threads")).flatten()
    };
    let there: u64 = processes.filter_map(threads).sum();
    Some(Room { threads: most.saturating_sub(there), bound: format!("RLIMIT_NPROC is {most}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_bound_is_named() {
        let room = |threads, bound: &str| Room { threads, bound: bound.to_owned() };
        let bounds = [room(1000, "wide"), room(OWN + 9, "narrow")];
        assert_eq!(refusal(Tasks::processes(8), &bounds), None);
        let refused = refusal(Tasks::processes(9), &bounds).unwrap();
        assert!(refused.contains("narrow") && refused.contains("10 of its own"), "{refused}");
        assert_eq!(refusal(Tasks::processes(9), &[]), None, "what is unknown bounds nothing");
    }

    #[test]
    fn a_cgroup_leaves_what_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        put("pids.current", "7\n");
        put("pids.max", "max\n");
        assert_eq!(of_cgroup(folder.path()), None);
        put("pids.max", "10\n");
        assert_eq!(of_cgroup(folder.path()).unwrap().threads, 3);
        assert!(!room().is_empty(), "this kernel has a number of threads that it can have");
    }
}
