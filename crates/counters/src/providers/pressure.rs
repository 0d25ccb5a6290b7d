//! `pressure:0:RESOURCE:*`: the share of time in which tasks waited for memory, I/O or CPU, from
//! /proc/pressure (pressure stall information, since 4.20).

use super::fields::{assignments, from_us};
use crate::root::Root;
use crate::sink::{Group, Sink};
use crate::value::Unit;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    for resource in ["memory", "io", "cpu", "irq"] {
        let Some(mut group) = sink.group(0, resource) else { continue };
        if let Some(text) = root.read(&format!("proc/pressure/{resource}")) {
            statistics(&text, "", &mut group);
        }
    }
}

/// `some avg10=0.52 avg60=3.21 avg300=2.01 total=464634974` and the same for `full`; the total is in
/// microseconds. A cgroup's file reads the same, and its statistics get a prefix.
pub fn statistics(text: &str, prefix: &str, group: &mut Group<'_>) {
    for line in text.lines() {
        let (who, rest) = line.split_once(' ').unwrap_or((line, ""));
        if !matches!(who, "some" | "full") {
            continue;
        }
        for (key, value) in assignments(rest) {
            let statistic = format!("{prefix}{who}_{key}");
            if key == "total" {
                group.counter(statistic, value.parse().ok().map(from_us), Unit::Nanoseconds);
            } else if key.starts_with("avg") {
                let average: Option<f64> = value.parse().ok().filter(|v: &f64| v.is_finite());
                group.gauge(statistic, average, Unit::Percent);
            }
        }
    }
}
