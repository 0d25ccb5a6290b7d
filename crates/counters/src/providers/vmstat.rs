//! `vmstat:0:vm:*`: the virtual-memory events of the whole machine, from /proc/vmstat.

use super::Provider;
use super::fields::{memory_event, memory_value, pairs};
use crate::root::Root;
use crate::sink::Sink;

pub struct VmStat;

impl Provider for VmStat {
    fn module(&self) -> &'static str {
        "vmstat"
    }

    fn class(&self) -> &'static str {
        "vm"
    }

    fn source(&self) -> &'static str {
        "/proc/vmstat"
    }

    fn read(&self, root: &Root, sink: &mut Sink<'_>) {
        let Some(mut vm) = sink.group(0, "vm") else { return };
        let Some(text) = root.read_again("proc/vmstat") else { return };
        for (name, value) in pairs(&text) {
            if vm.wants(name) {
                let (kind, unit) = memory_event(name);
                vm.add(name.to_owned(), memory_value(unit, value), unit, kind);
            }
        }
    }
}
