//! `diskstats:0:DEVICE:*`: what each block device did, from /proc/diskstats. Devices that never did
//! anything are left out, as are their partitions' fields that the kernel does not keep.

use super::fields::from_ms;
use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};

/// /proc/diskstats counts in sectors of 512 bytes, whatever the device's own are.
const SECTOR: u64 = 512;

/// The fields after the device's name, in their order (Documentation/admin-guide/iostats.rst).
const FIELDS: [(&str, Unit, Kind); 17] = [
    ("reads", Unit::Count, Kind::Counter),
    ("reads_merged", Unit::Count, Kind::Counter),
    ("read_size", Unit::Bytes, Kind::Counter),
    ("read_time", Unit::Nanoseconds, Kind::Counter),
    ("writes", Unit::Count, Kind::Counter),
    ("writes_merged", Unit::Count, Kind::Counter),
    ("write_size", Unit::Bytes, Kind::Counter),
    ("write_time", Unit::Nanoseconds, Kind::Counter),
    ("in_flight", Unit::Count, Kind::Gauge),
    ("busy_time", Unit::Nanoseconds, Kind::Counter),
    ("queue_time", Unit::Nanoseconds, Kind::Counter),
    ("discards", Unit::Count, Kind::Counter),
    ("discards_merged", Unit::Count, Kind::Counter),
    ("discard_size", Unit::Bytes, Kind::Counter),
    ("discard_time", Unit::Nanoseconds, Kind::Counter),
    ("flushes", Unit::Count, Kind::Counter),
    ("flush_time", Unit::Nanoseconds, Kind::Counter),
];

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(text) = root.read("proc/diskstats") else { return };
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(device) = words.next() else { continue };
        let values: Vec<Option<u64>> = words.map(|w| w.parse().ok()).collect();
        if values.iter().all(|v| matches!(v, None | Some(0))) {
            continue;
        }
        let Some(mut group) = sink.group(0, device) else { continue };
        for ((statistic, unit, kind), value) in FIELDS.into_iter().zip(values) {
            let Some(value) = value else { continue };
            let value = match unit {
                Unit::Bytes => value.saturating_mul(SECTOR),
                Unit::Nanoseconds => from_ms(value),
                _ => value,
            };
            group.add(statistic, value, unit, kind);
        }
    }
}
