//! `meminfo:0:mem:*`: where memory is, in bytes, from /proc/meminfo.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};
use pagelab_procfs::pairs;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(mut mem) = sink.group(0, "mem") else { return };
    let Some(text) = root.read_again("proc/meminfo") else { return };
    for (name, value) in pairs(&text) {
        if !mem.wants(name) {
            continue;
        }
        // The numbers of huge pages are the only lines without "kB".
        let unit = if name.starts_with("HugePages_") { Unit::Count } else { Unit::Bytes };
        mem.add(name.to_owned(), value, unit, Kind::Gauge);
    }
}
