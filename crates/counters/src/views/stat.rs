//! The tree as text, as kstat printed it: in groups to read, one `name<TAB>value` a line to parse, or
//! names alone.

use std::fmt::Write;

use crate::tree::{Snapshot, rate_word};
use crate::value::{Kind, Sample, Unit, Value};

/// The parts of a counter's name and kind, with their meanings.
pub const PARTS: [super::Described; 5] = [
    ("module", "the kernel file or folder that the counter is read from ('pagelab stat --modules')"),
    ("instance", "the number of the thing counted: a CPU, a node, a process; 0 if there is one"),
    ("name", "the name of the thing counted: a device, a cgroup, a command"),
    ("class", "the kind of module: vm, disk, cpu, process, cgroup, misc"),
    ("statistic", "what is counted, by the kernel's own name"),
];

/// Groups of one module, instance and name, a statistic a line with its unit. With `rates`, figures
/// that the tree has as growing counters carry their unit per second.
pub fn human(snapshot: &Snapshot, rates: bool) -> String {
    let mut out = String::new();
    let groups = snapshot
        .samples()
        .chunk_by(|a, b| a.module == b.module && a.instance == b.instance && a.name == b.name);
    for group in groups {
        let first = &group[0];
        let _ = writeln!(out, "module: {:<31} instance: {}", first.module, first.instance);
        let _ = writeln!(out, "name:   {:<31} class:    {}", first.name, first.class);
        for sample in group {
            let unit =
                if rates && is_rate(sample) { rate_word(sample.unit) } else { sample.unit.word().to_owned() };
            let line = format!("\t{:<31} {:>20} {unit}", sample.statistic, figure(sample));
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out.push('\n');
    }
    out
}

/// `module:instance:name:statistic<TAB>value`, a statistic a line.
pub fn parsable(snapshot: &Snapshot) -> String {
    snapshot.samples().iter().fold(String::new(), |mut out, sample| {
        let _ = writeln!(out, "{}\t{}", sample.full_name(), figure(sample));
        out
    })
}

/// `module:instance:name:statistic`, a statistic a line.
pub fn names(snapshot: &Snapshot) -> String {
    snapshot.samples().iter().fold(String::new(), |mut out, sample| {
        let _ = writeln!(out, "{}", sample.full_name());
        out
    })
}

/// In a snapshot of rates a fraction that is no percentage or load is a rate.
fn is_rate(sample: &Sample) -> bool {
    matches!(sample.value, Value::F64(_))
        && sample.kind == Kind::Gauge
        && sample.unit != Unit::Percent
        && !sample.statistic.starts_with("load")
}

/// Fractions with three decimals, everything else as it is.
fn figure(sample: &Sample) -> String {
    match sample.value {
        Value::F64(v) => format!("{v:.3}"),
        ref other => other.to_string(),
    }
}
