//! `meminfo:0:mem:*`: where memory is, in bytes, from /proc/meminfo.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};
use pagelab_procfs::pair;

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(mut mem) = sink.group(0, "mem") else { return };
    let Some(text) = root.read_again("proc/meminfo") else { return };
    for line in text.lines() {
        // Of some 50 names a view wants five: no number is read of the others.
        let name = line.split_once(':').map_or(line, |(name, _)| name);
        let (true, Some((name, value))) = (mem.wants(name), pair(line)) else { continue };
        // The numbers of huge pages are the only lines without "kB".
        let unit = if name.starts_with("HugePages_") { Unit::Count } else { Unit::Bytes };
        mem.add(name.to_owned(), value, unit, Kind::Gauge);
    }
}
