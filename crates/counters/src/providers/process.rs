//! `process:PID:COMMAND:*` and `thread:TID:COMMAND:*`: what each process and thread uses and waits for,
//! from /proc/PID/{stat,status,schedstat,io,cgroup}. A file is opened only for a statistic of its own.
//!
//! For a process, the times and faults of `stat` are the sum of its threads, those that ended
//! included; `run_time`, `run_delay` and the context switches are the kernel's for the first thread
//! alone, so they are given for threads only.

use crate::root::Root;
use crate::sink::{Group, Sink};
use crate::value::{Kind, Unit};
use pagelab_procfs::pairs;

const STATUS: [(&str, &str); 9] = [
    ("RssAnon", "rss_anon"),
    ("RssFile", "rss_file"),
    ("RssShmem", "rss_shmem"),
    ("VmHWM", "rss_max"),
    ("VmSwap", "swap"),
    ("VmPTE", "page_tables"),
    ("VmLck", "locked"),
    ("HugetlbPages", "hugetlb"),
    ("Uid", "uid"),
];
const STATUS_NAMES: [&str; 9] = statistics(STATUS);
const SWITCHES: [(&str, &str); 2] = [
    ("voluntary_ctxt_switches", "voluntary_switches"),
    ("nonvoluntary_ctxt_switches", "involuntary_switches"),
];
const SWITCHES_NAMES: [&str; 2] = statistics(SWITCHES);
const SCHEDULER: [&str; 3] = ["run_time", "run_delay", "timeslices"];
const IO: [(&str, &str); 4] = [
    ("read_bytes", "read_size"),
    ("write_bytes", "write_size"),
    ("syscr", "read_calls"),
    ("syscw", "write_calls"),
];
const IO_NAMES: [&str; 4] = statistics(IO);

const fn statistics<const N: usize>(pairs: [(&'static str, &'static str); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut i = 0;
    while i < N {
        names[i] = pairs[i].1;
        i += 1;
    }
    names
}

pub fn processes(root: &Root, sink: &mut Sink<'_>) {
    let named = sink.named_instances();
    for pid in named.unwrap_or_else(|| root.list_numbers("proc")) {
        if !sink.wants_instance(pid) {
            continue;
        }
        let folder = format!("proc/{pid}");
        let Some(text) = root.read_piece(&format!("{folder}/stat")) else { continue };
        let Some(stat) = Stat::parse(&text) else { continue };
        let Some(mut group) = sink.group(pid, stat.command) else { continue };
        stat.give(root, &mut group);
        stat.give_children(root, &mut group);
        if group.wants_any(&STATUS_NAMES) {
            status(root, &folder, &STATUS, &mut group);
        }
        if group.wants_any(&IO_NAMES) {
            io(root, &folder, &mut group);
        }
        if group.wants("cgroup") {
            let text = root.read_piece(&format!("{folder}/cgroup")).unwrap_or_default();
            group.text("cgroup", memory_cgroup(&text));
        }
    }
}

pub fn threads(root: &Root, sink: &mut Sink<'_>) {
    // /proc/TID exists for every thread although it is not listed, so a named one is found at once.
    let named = sink.named_instances();
    let by_number = named.is_some();
    let places: Vec<(u64, u64)> = match named {
        Some(named) => named.into_iter().map(|tid| (tid, tid)).collect(),
        None => root
            .list_numbers("proc")
            .into_iter()
            .flat_map(|pid| {
                root.list_numbers(&format!("proc/{pid}/task")).into_iter().map(move |tid| (pid, tid))
            })
            .collect(),
    };
    for (pid, tid) in places {
        if !sink.wants_instance(tid) {
            continue;
        }
        let folder = format!("proc/{pid}/task/{tid}");
        let Some(text) = root.read_piece(&format!("{folder}/stat")) else { continue };
        let Some(stat) = Stat::parse(&text) else { continue };
        let Some(mut group) = sink.group(tid, stat.command) else { continue };
        if group.wants("pid") {
            let process = if by_number { process_of(root, tid) } else { Some(pid) };
            group.gauge("pid", process, Unit::None);
        }
        stat.give(root, &mut group);
        if group.wants_any(&SWITCHES_NAMES) {
            status(root, &folder, &SWITCHES, &mut group);
        }
        if group.wants_any(&SCHEDULER) {
            let line = root.read_piece(&format!("{folder}/schedstat")).unwrap_or_default();
            let mut words = line.split_ascii_whitespace().map(|w| w.parse::<u64>().ok());
            for (statistic, unit) in
                SCHEDULER.into_iter().zip([Unit::Nanoseconds, Unit::Nanoseconds, Unit::Count])
            {
                group.counter(statistic, words.next().flatten(), unit);
            }
        }
    }
}

/// The process of a thread that was found by its own number.
fn process_of(root: &Root, tid: u64) -> Option<u64> {
    let text = root.read_piece(&format!("proc/{tid}/status"))?;
    pairs(&text).find(|(name, _)| *name == "Tgid").map(|(_, process)| process)
}

/// The path of the cgroup that memory is charged to: version 1's memory hierarchy where there is one,
/// else version 2's (cgroups(7)).
pub(crate) fn memory_cgroup(text: &str) -> Option<&str> {
    let path = |wanted: fn(&str) -> bool| {
        text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            wanted(controllers).then_some(path)
        })
    };
    path(|controllers| controllers.split(',').any(|c| c == "memory")).or_else(|| path(str::is_empty))
}

/// The fields of /proc/PID/stat (proc_pid_stat(5)) from the state on.
struct Stat<'t> {
    command: &'t str,
    fields: Vec<&'t str>,
}

impl<'t> Stat<'t> {
    /// The command may hold blanks and brackets, so it ends at the last bracket.
    fn parse(text: &'t str) -> Option<Self> {
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let command = text.get(open + 1..close)?;
        Some(Self { command, fields: text[close + 1..].split_ascii_whitespace().collect() })
    }

    /// A field by its number in the manual page, where the state is 3.
    fn number(&self, field: usize) -> Option<u64> {
        self.fields.get(field - 3)?.parse().ok()
    }

    fn ticks(&self, root: &Root, field: usize) -> Option<u64> {
        self.number(field).map(|t: u64| t.saturating_mul(root.tick_ns()))
    }

    /// CPU time of the children that were waited for, and of theirs.
    fn give_children(&self, root: &Root, group: &mut Group<'_>) {
        group.counter("cutime", self.ticks(root, 16), Unit::Nanoseconds);
        group.counter("cstime", self.ticks(root, 17), Unit::Nanoseconds);
    }

    fn give(&self, root: &Root, group: &mut Group<'_>) {
        let ticks = |field| self.ticks(root, field);
        group.text("state", self.fields.first().copied());
        group.gauge("ppid", self.number(4), Unit::None);
        group.counter("minor_faults", self.number(10), Unit::Count);
        group.counter("major_faults", self.number(12), Unit::Count);
        group.counter("utime", ticks(14), Unit::Nanoseconds);
        group.counter("stime", ticks(15), Unit::Nanoseconds);
        group.gauge("threads", self.number(20), Unit::Count);
        group.gauge("start", ticks(22), Unit::Nanoseconds);
        group.gauge("virtual_size", self.number(23), Unit::Bytes);
        group.gauge("rss", self.number(24).map(|p| p.saturating_mul(root.page_size())), Unit::Bytes);
        group.counter("block_io_delay", ticks(42), Unit::Nanoseconds);
    }
}

fn status(root: &Root, folder: &str, wanted: &[(&str, &'static str)], group: &mut Group<'_>) {
    let Some(text) = root.read_piece(&format!("{folder}/status")) else { return };
    for (name, value) in pairs(&text) {
        let Some((_, statistic)) = wanted.iter().find(|(n, _)| *n == name) else { continue };
        match *statistic {
            "uid" => group.add("uid", value, Unit::None, Kind::Gauge),
            s if s.ends_with("_switches") => group.add(s, value, Unit::Count, Kind::Counter),
            s => group.add(s, value, Unit::Bytes, Kind::Gauge),
        }
    }
}

fn io(root: &Root, folder: &str, group: &mut Group<'_>) {
    let Some(text) = root.read_piece(&format!("{folder}/io")) else { return };
    for (name, value) in pairs(&text) {
        if let Some((_, statistic)) = IO.iter().find(|(n, _)| *n == name) {
            let unit = if statistic.ends_with("_size") { Unit::Bytes } else { Unit::Count };
            group.add(*statistic, value, unit, Kind::Counter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_charged_to_one_hierarchy() {
        assert_eq!(memory_cgroup("3:cpu:/c\n2:memory,pids:/a:b\n0::/u\n"), Some("/a:b"));
        assert_eq!(memory_cgroup("0::/system.slice/x.service\n"), Some("/system.slice/x.service"));
        assert_eq!(memory_cgroup("nonsense"), None);
    }
}
