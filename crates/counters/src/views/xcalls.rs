//! Cross-calls by CPU, as mpstat's `xcal`: functions and TLB flushes that other CPUs asked each CPU
//! for.
//!
//! x86 counts them in /proc/interrupts; elsewhere there are no rows.

use std::fmt::Write;

use serde::Serialize;

use super::{Described, cell};
use crate::select::Selection;
use crate::tree::Snapshot;

/// What to read for this view.
pub fn selection() -> Selection {
    super::constant(&["interrupts::/^(CAL|TLB)$/:count", "system:0:clock:uptime"])
}

/// The columns with their meanings.
pub const COLUMNS: [Described; 2] = [
    ("xcal", "functions called on this CPU by others (CAL in /proc/interrupts)"),
    ("tlb", "TLB flushes asked for by other CPUs (TLB); most come with an xcal"),
];

/// One CPU; rates per second, None where there is no count or it fell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Its number.
    pub cpu: u64,
    /// Functions called on it by others.
    pub xcal: Option<f64>,
    /// TLB flushes that others asked it for.
    pub tlb: Option<f64>,
}

/// Every CPU between two snapshots, or since boot when `before` is None.
pub fn rows(before: Option<&Snapshot>, now: &Snapshot) -> Vec<Row> {
    let seconds = now.seconds_from(before);
    let rate = |cpu: u64, kind: &str| {
        let end = now.number("interrupts", cpu, kind, "count")?;
        let start = before.map_or(Some(0.0), |before| before.number("interrupts", cpu, kind, "count"))?;
        Some((end - start) / seconds?).filter(|rate| *rate >= 0.0)
    };
    let mut cpus: Vec<u64> = now.module("interrupts").iter().map(|sample| sample.instance).collect();
    cpus.dedup();
    cpus.into_iter().map(|cpu| Row { cpu, xcal: rate(cpu, "CAL"), tlb: rate(cpu, "TLB") }).collect()
}

/// A heading, a line for each CPU, and one for all that have a figure.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from("CPU       xcal        tlb\n");
    let mut line = |name: &str, xcal, tlb| {
        let figures = cell(xcal, 10, 0) + &cell(tlb, 10, 0);
        let _ = writeln!(text, "{name:>3} {}", figures.trim_end());
    };
    for row in rows {
        line(&row.cpu.to_string(), row.xcal, row.tlb);
    }
    let sum = |of: fn(&Row) -> Option<f64>| rows.iter().filter_map(of).reduce(|a, b| a + b);
    line("all", sum(|row| row.xcal), sum(|row| row.tlb));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Root, Tree};

    const BOOT: &str = "           CPU0       CPU1\n  0:         36          0   IO-APIC    2-edge      timer\n\
        CAL:        100        200   Function call interrupts\nTLB:         40          0   TLB shootdowns\n\
        ERR:          0\n";

    #[test]
    fn every_cpu_has_its_calls_and_flushes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("proc/interrupts");
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        std::fs::write(folder.path().join("proc/uptime"), "10.00 5.00\n").unwrap();
        std::fs::write(&file, BOOT).unwrap();
        let tree = Tree::new(Root::new(folder.path().to_owned()));
        let before = tree.read(&selection());
        let since_boot = rows(None, &before);
        let row = |cpu, xcal, tlb| Row { cpu, xcal: Some(xcal), tlb: Some(tlb) };
        assert_eq!(since_boot, [row(0, 10.0, 4.0), row(1, 20.0, 0.0)]);
        let text = "CPU       xcal        tlb\n  0         10          4\n  1         20          0\n\
            all         30          4\n";
        assert_eq!(table(&since_boot), text);
        // A count that fell is no rate.
        std::fs::write(&file, BOOT.replace("100", "300").replace("200", "100")).unwrap();
        let later = rows(Some(&before), &tree.read(&selection()));
        assert!(later[0].xcal.unwrap() > 0.0 && later[0].tlb == Some(0.0), "{later:?}");
        assert_eq!((later[1].xcal, later[1].tlb), (None, Some(0.0)));
        // Another architecture has no such rows.
        std::fs::write(&file, "           CPU0\nIPI0:        9   Rescheduling interrupts\n").unwrap();
        assert_eq!(rows(None, &tree.read(&selection())), []);
    }
}
