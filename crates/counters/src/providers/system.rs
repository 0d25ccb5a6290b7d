//! `system:0:load:*` and `system:0:clock:*`: how busy the machine is and how long it has been up, from
//! /proc/loadavg and /proc/uptime.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::Unit;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let finite = |word: Option<&str>| word.and_then(|w| w.parse::<f64>().ok()).filter(|v| v.is_finite());
    if let Some(mut load) = sink.group(0, "load") {
        let line = root.line_again("proc/loadavg").unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        for statistic in ["load1", "load5", "load15"] {
            load.gauge(statistic, finite(words.next()), Unit::Count);
        }
    }
    if let Some(mut clock) = sink.group(0, "clock") {
        let line = root.line_again("proc/uptime").unwrap_or_default();
        let uptime = finite(line.split_ascii_whitespace().next()).filter(|s| *s >= 0.0);
        clock.counter("uptime", uptime.map(|s| (s * 1e9) as u64), Unit::Nanoseconds);
    }
}
