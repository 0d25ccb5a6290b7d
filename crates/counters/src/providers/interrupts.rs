//! `interrupts:CPU:KIND:count`: TLB shootdowns, calls of a function on another CPU (which flush TLBs
//! too) and machine checks on each CPU, from /proc/interrupts.

use crate::root::Root;
use crate::sink::Sink;
use crate::value::{Kind, Unit};

/// x86's rows for shootdowns, cross calls, machine checks and their polls, thresholds, deferred errors
/// and heat (arch/x86/kernel/irq.c).
const KINDS: [&str; 7] = ["TLB", "CAL", "MCE", "MCP", "THR", "DFR", "TRM"];

pub fn read(root: &Root, sink: &mut Sink<'_>) {
    if !KINDS.iter().any(|kind| sink.wants_name(kind)) {
        return;
    }
    let Some(text) = root.read("proc/interrupts") else { return };
    let mut lines = text.lines();
    // The heading names the CPUs that are on line.
    let cpus: Vec<u64> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|w| w.strip_prefix("CPU")?.parse().ok())
        .collect();
    for line in lines {
        let Some((kind, counts)) = line.split_once(':') else { continue };
        let Some(kind) = KINDS.iter().find(|k| **k == kind.trim()) else { continue };
        for (cpu, count) in cpus.iter().zip(counts.split_ascii_whitespace()) {
            if let (Some(mut group), Ok(count)) = (sink.group(*cpu, kind), count.parse::<u64>()) {
                group.add("count", count, Unit::Count, Kind::Counter);
            }
        }
    }
}
