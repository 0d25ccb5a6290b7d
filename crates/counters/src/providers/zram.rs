//! `zram:N:zramN:*`: compressed memory as a block device, from /sys/block/zram*/mm_stat and io_stat.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};

/// The columns of mm_stat (Documentation/admin-guide/blockdev/zram.rst).
const MEMORY: [(&str, Unit, Kind); 9] = [
    ("original_size", Unit::Bytes, Kind::Gauge),
    ("compressed_size", Unit::Bytes, Kind::Gauge),
    ("memory_used", Unit::Bytes, Kind::Gauge),
    ("memory_limit", Unit::Bytes, Kind::Gauge),
    ("memory_used_max", Unit::Bytes, Kind::Gauge),
    ("same_pages", Unit::Pages, Kind::Gauge),
    ("pages_compacted", Unit::Pages, Kind::Counter),
    ("huge_pages", Unit::Pages, Kind::Gauge),
    ("huge_pages_since", Unit::Pages, Kind::Counter),
];

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    for device in root.list("sys/block") {
        let Some(Ok(number)) = device.strip_prefix("zram").map(str::parse) else { continue };
        let Some(mut group) = sink.group(number, &device) else { continue };
        let line = root.line(&format!("sys/block/{device}/mm_stat")).unwrap_or_default();
        for ((statistic, unit, kind), word) in MEMORY.into_iter().zip(line.split_ascii_whitespace()) {
            if let Ok(value) = word.parse::<u64>() {
                group.add(statistic, value, unit, kind);
            }
        }
        let line = root.line(&format!("sys/block/{device}/io_stat")).unwrap_or_default();
        for (statistic, word) in
            ["failed_reads", "failed_writes"].into_iter().zip(line.split_ascii_whitespace())
        {
            group.counter(statistic, word.parse::<u64>().ok(), Unit::Count);
        }
    }
}
