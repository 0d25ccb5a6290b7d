//! `settings:0:AREA:*`: the kernel's settings that decide how memory behaves and what can be measured,
//! from /proc/sys and /sys. A choice among words is a text, for example THP's `madvise`.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};
use pagelab_procfs::chosen;

/// Area, statistic and file.
const FILES: [(&str, &str, &str); 19] = [
    ("vm", "swappiness", "proc/sys/vm/swappiness"),
    ("vm", "overcommit_memory", "proc/sys/vm/overcommit_memory"),
    ("vm", "min_free_kbytes", "proc/sys/vm/min_free_kbytes"),
    ("vm", "watermark_scale_factor", "proc/sys/vm/watermark_scale_factor"),
    ("vm", "page_cluster", "proc/sys/vm/page-cluster"),
    ("vm", "vfs_cache_pressure", "proc/sys/vm/vfs_cache_pressure"),
    ("vm", "dirty_ratio", "proc/sys/vm/dirty_ratio"),
    ("vm", "nr_hugepages", "proc/sys/vm/nr_hugepages"),
    ("vm", "max_map_count", "proc/sys/vm/max_map_count"),
    ("kernel", "task_delayacct", "proc/sys/kernel/task_delayacct"),
    ("kernel", "sched_schedstats", "proc/sys/kernel/sched_schedstats"),
    ("kernel", "perf_event_paranoid", "proc/sys/kernel/perf_event_paranoid"),
    ("kernel", "osrelease", "proc/sys/kernel/osrelease"),
    ("kernel", "randomize_va_space", "proc/sys/kernel/randomize_va_space"),
    ("thp", "enabled", "sys/kernel/mm/transparent_hugepage/enabled"),
    ("thp", "defrag", "sys/kernel/mm/transparent_hugepage/defrag"),
    ("ksm", "run", "sys/kernel/mm/ksm/run"),
    ("clock", "source", "sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("cpu", "governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
];

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    for (area, statistic, file) in FILES {
        let Some(mut group) = sink.group(0, area).filter(|g| g.wants(statistic)) else { continue };
        let Some(line) = root.line_again(file).filter(|line| !line.is_empty()) else { continue };
        match line.parse::<i64>() {
            Ok(number) => group.add(statistic, number, Unit::None, Kind::Gauge),
            Err(_) => group.text(statistic, Some(chosen(&line))),
        }
    }
}
