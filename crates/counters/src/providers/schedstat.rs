//! `schedstat:CPU:cpu:*`: time on and waiting for each CPU, from /proc/schedstat (needs
//! CONFIG_SCHEDSTATS).

use crate::root::Root;
use crate::sink::Sink;
use crate::value::Unit;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(text) = root.read("proc/schedstat") else { return };
    for line in text.lines() {
        // cpuN and nine numbers: the last three are time run, time waited (ns) and timeslices.
        let mut words = line.split_ascii_whitespace();
        let Some(Ok(cpu)) = words.next().and_then(|w| w.strip_prefix("cpu")).map(str::parse) else {
            continue;
        };
        let Some(mut group) = sink.group(cpu, "cpu") else { continue };
        let mut last = words.skip(6).map(|w| w.parse::<u64>().ok());
        group.counter("run_time", last.next().flatten(), Unit::Nanoseconds);
        group.counter("wait_time", last.next().flatten(), Unit::Nanoseconds);
        group.counter("timeslices", last.next().flatten(), Unit::Count);
    }
}
