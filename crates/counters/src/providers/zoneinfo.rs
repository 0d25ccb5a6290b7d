//! `zoneinfo:NODE:ZONE:*`: free pages, watermarks and lists of each zone, and under the name `node`
//! those of the whole node, from /proc/zoneinfo.

use super::fields::{memory_event, memory_value};
use crate::root::Root;
use crate::sink::{Group, Sink};
use crate::value::{Kind, Unit};

/// What stands directly below "pages free" for a zone (mm/vmstat.c: zoneinfo_show_print).
const LEVELS: [&str; 10] =
    ["free", "boost", "min", "low", "high", "promo", "spanned", "present", "managed", "cma"];

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    let Some(text) = root.read("proc/zoneinfo") else { return };
    for section in sections(&text) {
        let Some((node, zone)) = heading(section) else { continue };
        let (whole, zone_part) = match section.split_once("per-node stats") {
            Some((_, rest)) => rest
                .split_once("  pages free")
                .map_or((rest, ""), |(node_part, _)| (node_part, &rest[node_part.len()..])),
            None => ("", section),
        };
        if let Some(mut group) = sink.group(node, "node").filter(|_| !whole.is_empty()) {
            statistics(whole, &mut group);
        }
        if let Some(mut group) = sink.group(node, zone) {
            statistics(zone_part, &mut group);
        }
    }
}

/// One text for each zone, its heading first.
fn sections(text: &str) -> impl Iterator<Item = &str> {
    text.split("\nNode ").map(|section| section.strip_prefix("Node ").unwrap_or(section))
}

/// `0, zone   Normal` of the first line.
fn heading(section: &str) -> Option<(u64, &str)> {
    let (node, rest) = section.lines().next()?.split_once(',')?;
    Some((node.trim().parse().ok()?, rest.trim().strip_prefix("zone")?.trim()))
}

fn statistics(part: &str, group: &mut Group<'_>) {
    for line in part.lines() {
        let line = line.trim();
        if line == "pagesets" {
            return; // the per-CPU lists are small and change all the time
        }
        let line = line.strip_prefix("pages ").unwrap_or(line);
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse::<u64>)) else {
            continue;
        };
        if LEVELS.contains(&name) {
            group.add(name.to_owned(), value, Unit::Pages, Kind::Gauge);
        } else if name.starts_with("nr_") || name.starts_with("workingset_") || name.starts_with("pg") {
            let (kind, unit) = memory_event(name);
            group.add(name.to_owned(), memory_value(unit, value), unit, kind);
        } else if name.starts_with("numa_") {
            group.add(name.to_owned(), value, Unit::Count, Kind::Counter);
        }
    }
}
