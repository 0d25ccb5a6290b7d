//! `zswap:0:zswap:*`: the compressed cache in front of swap, from its parameters and, where debugfs is
//! mounted, its counters.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};

/// Files that hold a state; the others of the folder count events (mm/zswap.c).
const STATES: [(&str, Unit); 3] = [
    ("pool_total_size", Unit::Bytes),
    ("stored_pages", Unit::Pages),
    ("stored_incompressible_pages", Unit::Pages),
];

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(mut group) = sink.group(0, "zswap") else { return };
    for parameter in ["enabled", "compressor", "max_pool_percent"] {
        if group.wants(parameter) {
            group.text(parameter, root.line(&format!("sys/module/zswap/parameters/{parameter}")).as_deref());
        }
    }
    for file in root.list("sys/kernel/debug/zswap") {
        if !group.wants(&file) {
            continue;
        }
        let Some(value) = root.number(&format!("sys/kernel/debug/zswap/{file}")) else { continue };
        match STATES.iter().find(|(name, _)| *name == file) {
            Some((_, unit)) => group.add(file, value, *unit, Kind::Gauge),
            None => group.add(file, value, Unit::Count, Kind::Counter),
        }
    }
}
