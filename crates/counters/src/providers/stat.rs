//! `stat:CPU:cpu:*`: how each CPU spent its time, `stat:0:all:*` the same for all of them with the
//! context switches, forks and tasks, from /proc/stat.

use crate::root::Root;
use crate::sink::{Group, Sink};
use crate::value::{Kind, Unit};

/// The columns of a `cpu` line, in ticks (proc_stat(5)).
const TIMES: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(text) = root.read("proc/stat") else { return };
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(key) = words.next() else { continue };
        if let Some(cpu) = key.strip_prefix("cpu") {
            let group = match cpu.parse() {
                Ok(number) => sink.group(number, "cpu"),
                Err(_) if cpu.is_empty() => sink.group(0, "all"),
                Err(_) => None,
            };
            if let Some(mut group) = group {
                times(words, root.tick_ns(), &mut group);
            }
            continue;
        }
        let (kind, statistic) = match key {
            "ctxt" => (Kind::Counter, "context_switches"),
            "processes" => (Kind::Counter, "forks"),
            "intr" => (Kind::Counter, "interrupts"),
            "softirq" => (Kind::Counter, "softirqs"),
            "procs_running" => (Kind::Gauge, "tasks_running"),
            "procs_blocked" => (Kind::Gauge, "tasks_blocked"),
            _ => continue,
        };
        if let (Some(mut all), Some(Ok(value))) = (sink.group(0, "all"), words.next().map(str::parse::<u64>))
        {
            all.add(statistic, value, Unit::Count, kind);
        }
    }
}

fn times<'t>(words: impl Iterator<Item = &'t str>, tick_ns: u64, group: &mut Group<'_>) {
    for (statistic, ticks) in TIMES.into_iter().zip(words) {
        let time = ticks.parse::<u64>().ok().map(|t| t.saturating_mul(tick_ns));
        group.counter(statistic, time, Unit::Nanoseconds);
    }
}
