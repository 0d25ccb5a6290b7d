//! `vmstat:0:vm:*`: the virtual-memory events of the whole machine, from /proc/vmstat.

use pagelab_procfs::pair;

use super::fields::{memory_event, memory_value};
use crate::root::Root;
use crate::sink::Sink;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(mut vm) = sink.group(0, "vm") else { return };
    let Some(text) = root.read_again("proc/vmstat") else { return };
    for line in text.lines() {
        // Of some 190 names a view wants some 20: no number is read of the others.
        let name = line.split_once(' ').map_or(line, |(name, _)| name);
        if let (true, Some((name, value))) = (vm.wants(name), pair(line)) {
            let (kind, unit) = memory_event(name);
            vm.add(name.to_owned(), memory_value(unit, value), unit, kind);
        }
    }
}
