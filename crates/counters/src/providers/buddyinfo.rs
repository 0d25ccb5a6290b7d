//! `buddyinfo:NODE:ZONE:orderN`: free blocks of 2^N pages, from /proc/buddyinfo.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(text) = root.read("proc/buddyinfo") else { return };
    for line in text.lines() {
        // Node 0, zone   Normal  21638  14684 …
        let mut words = line.split_ascii_whitespace();
        let (Some("Node"), Some(node), Some("zone"), Some(zone)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Ok(node) = node.trim_end_matches(',').parse() else { continue };
        let Some(mut group) = sink.group(node, zone) else { continue };
        for (order, blocks) in words.enumerate() {
            if let Ok(blocks) = blocks.parse::<u64>() {
                group.add(format!("order{order}"), blocks, Unit::Count, Kind::Gauge);
            }
        }
    }
}
