//! `cgroup:VERSION:PATH:*`: memory, pressure and CPU time of each control group, from the memory
//! controller of version 1 and from version 2, wherever /proc/mounts says they are.

use pagelab_procfs::pairs;

use super::fields::{from_us, memory_event, memory_value};
use super::pressure;
use crate::root::Root;
use crate::sink::{Group, Sink};
use crate::value::{Kind, Unit};

/// Files of version 1 that hold one number.
const V1: [(&str, &str, Unit, Kind); 6] = [
    ("current", "memory.usage_in_bytes", Unit::Bytes, Kind::Gauge),
    ("peak", "memory.max_usage_in_bytes", Unit::Bytes, Kind::Gauge),
    ("max", "memory.limit_in_bytes", Unit::Bytes, Kind::Gauge),
    ("max_failures", "memory.failcnt", Unit::Count, Kind::Counter),
    ("memsw_current", "memory.memsw.usage_in_bytes", Unit::Bytes, Kind::Gauge),
    ("memsw_max", "memory.memsw.limit_in_bytes", Unit::Bytes, Kind::Gauge),
];

/// Files of version 2 that hold one number, or "max" for none.
const V2: [(&str, &str, Unit, Kind); 8] = [
    ("current", "memory.current", Unit::Bytes, Kind::Gauge),
    ("peak", "memory.peak", Unit::Bytes, Kind::Gauge),
    ("min", "memory.min", Unit::Bytes, Kind::Gauge),
    ("low", "memory.low", Unit::Bytes, Kind::Gauge),
    ("high", "memory.high", Unit::Bytes, Kind::Gauge),
    ("max", "memory.max", Unit::Bytes, Kind::Gauge),
    ("swap_current", "memory.swap.current", Unit::Bytes, Kind::Gauge),
    ("swap_max", "memory.swap.max", Unit::Bytes, Kind::Gauge),
];

/// A limit that is none reads as this many bytes or more in version 1 (PAGE_COUNTER_MAX).
const NO_LIMIT: u64 = i64::MAX as u64 / 65536 * 65536;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let mounts = Mounts::read(root);
    for (version, mount) in [(1, &mounts.v1_memory), (2, &mounts.v2)] {
        if let Some(mount) = mount.as_ref().filter(|_| sink.wants_instance(version)) {
            walk(root, sink, version, mount, "");
        }
    }
}

/// Where the hierarchies are, as paths below the root.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Mounts {
    pub(crate) v1_memory: Option<String>,
    pub(crate) v2: Option<String>,
}

impl Mounts {
    pub(crate) fn read(root: &Root) -> Self {
        Self::parse(&root.read("proc/mounts").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace().skip(1);
            let (Some(place), Some(kind), Some(options)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let place = || Some(place.trim_start_matches('/').to_owned());
            match kind {
                "cgroup" if options.split(',').any(|o| o == "memory") => {
                    found.v1_memory = found.v1_memory.or_else(place)
                }
                "cgroup2" => found.v2 = found.v2.or_else(place),
                _ => {}
            }
        }
        found
    }
}

fn walk(root: &Root, sink: &mut Sink<'_>, version: u64, mount: &str, path: &str) {
    let folder = format!("{mount}{path}");
    let name = if path.is_empty() { "/" } else { path };
    if let Some(mut group) = sink.group(version, name) {
        if version == 1 { version1(root, &folder, &mut group) } else { version2(root, &folder, &mut group) }
    }
    for child in root.folders(&folder) {
        walk(root, sink, version, mount, &format!("{path}/{child}"));
    }
}

fn numbers(root: &Root, folder: &str, files: &[(&'static str, &str, Unit, Kind)], group: &mut Group<'_>) {
    for (statistic, file, unit, kind) in files {
        if group.wants(statistic) {
            let value = root.number(&format!("{folder}/{file}")).filter(|v| *v < NO_LIMIT);
            if let Some(value) = value {
                group.add(*statistic, value, *unit, *kind);
            }
        }
    }
}

fn version1(root: &Root, folder: &str, group: &mut Group<'_>) {
    numbers(root, folder, &V1, group);
    if let Some(text) = root.read(&format!("{folder}/memory.stat")) {
        for (name, value) in pairs(&text) {
            // The totals are those of the group with its children, as version 2 counts; the others
            // are the group's own, and the limits are above.
            let Some(statistic) = name.strip_prefix("total_") else { continue };
            memory_stat(statistic, value, statistic.starts_with("pgpg"), group);
        }
    }
    if group.wants_any(&["oom_kill", "under_oom"]) {
        for (name, value) in pairs(&root.read(&format!("{folder}/memory.oom_control")).unwrap_or_default()) {
            match name {
                "oom_kill" => group.add("oom_kill", value, Unit::Count, Kind::Counter),
                "under_oom" => group.add("under_oom", value, Unit::None, Kind::Gauge),
                _ => {}
            }
        }
    }
}

fn version2(root: &Root, folder: &str, group: &mut Group<'_>) {
    numbers(root, folder, &V2, group);
    if let Some(text) = root.read(&format!("{folder}/memory.stat")) {
        for (name, value) in pairs(&text) {
            memory_stat(name, value, false, group);
        }
    }
    for (name, value) in pairs(&root.read(&format!("{folder}/memory.events")).unwrap_or_default()) {
        // "max" and "high" there are how often the limit was met.
        let statistic = if name.starts_with("oom") { name.to_owned() } else { format!("{name}_events") };
        group.add(statistic, value, Unit::Count, Kind::Counter);
    }
    for resource in ["memory", "io", "cpu"] {
        if let Some(text) = root.read(&format!("{folder}/{resource}.pressure")) {
            pressure::statistics(&text, &format!("{resource}_"), group);
        }
    }
    for (name, value) in pairs(&root.read(&format!("{folder}/cpu.stat")).unwrap_or_default()) {
        if let Some(stem) = name.strip_suffix("_usec") {
            group.add(format!("cpu_{stem}"), from_us(value), Unit::Nanoseconds, Kind::Counter);
        }
    }
}

/// Events are as in /proc/vmstat; everything else in memory.stat is a size in bytes. Version 1 counts
/// its pgpgin and pgpgout in pages.
fn memory_stat(name: &str, value: u64, pages: bool, group: &mut Group<'_>) {
    let events = ["pg", "workingset_", "thp_", "numa_", "pswp", "zswp", "swpin", "swpout", "pro_"];
    if pages {
        group.add(name.to_owned(), value, Unit::Pages, Kind::Counter);
    } else if events.iter().any(|e| name.starts_with(e)) {
        let (kind, unit) = memory_event(name);
        group.add(name.to_owned(), memory_value(unit, value), unit, kind);
    } else {
        group.add(name.to_owned(), value, Unit::Bytes, Kind::Gauge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_among_the_mounts() {
        let text = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                    cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
                    cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                    cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let found = Mounts::parse(text);
        assert_eq!(found.v1_memory.as_deref(), Some("sys/fs/cgroup/memory"));
        assert_eq!(found.v2.as_deref(), Some("sys/fs/cgroup/unified"));
        assert_eq!(Mounts::parse("x\ny z"), Mounts::default());
    }
}
