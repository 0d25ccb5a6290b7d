//! `smaps:PID:COMMAND:*`: each process's memory with what it shares divided among the sharers, from
//! /proc/PID/smaps_rollup. The kernel walks the process's page tables for it, so it is read only when
//! the module is named.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};
use pagelab_procfs::pairs;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    for pid in sink.named_instances().unwrap_or_else(|| root.list_numbers("proc")) {
        if !sink.wants_instance(pid) {
            continue;
        }
        let Some(command) = root.line(&format!("proc/{pid}/comm")) else { continue };
        let Some(mut group) = sink.group(pid, &command) else { continue };
        let Some(text) = root.read(&format!("proc/{pid}/smaps_rollup")) else { continue };
        // The first line is the range of addresses.
        for (name, value) in pairs(&text).filter(|(name, _)| !name.contains('-')) {
            group.add(name.to_ascii_lowercase(), value, Unit::Bytes, Kind::Gauge);
        }
    }
}
