//! Pages that reclaim scanned and took, by kswapd and by the tasks themselves, and refaults: over a
//! run, and over each phase of a load.
//!
//! Of a run with a cgroup they are the cgroup's (`memory.stat`, version 2, Linux 6.0), else the
//! machine's (`/proc/vmstat`). The machine's counters omit reclaim for a cgroup's limit, so they
//! are no substitute for a cgroup's. The kernel sums a cgroup's counters up to 64 updates per CPU
//! late.

use std::path::Path;

use pagelab_experiment::build::{Sheet, note};
use pagelab_experiment::observation::{Counter, Level};
use pagelab_experiment::tables::scans;
use pagelab_experiment::{MetricId, Recorder, Result, metrics};
use pagelab_kernel::files::KernelFile;
use pagelab_procfs::pairs;

use crate::harness::context::ExecutionContext;
use crate::harness::counters::{CGROUP, MACHINE};

/// What is counted, in the order of the table's columns.
pub const METRICS: [MetricId; 5] = [
    metrics::SCAN_KSWAPD,
    metrics::STEAL_KSWAPD,
    metrics::SCAN_DIRECT,
    metrics::STEAL_DIRECT,
    metrics::REFAULTS,
];

/// The place among [`METRICS`] of a counter of the kernel's.
fn place(counter: &str) -> Option<usize> {
    match counter {
        "pgscan_kswapd" => Some(0),
        "pgsteal_kswapd" => Some(1),
        // Linux 6.2 counts khugepaged apart, and 6.15 what was asked of memory.reclaim; before, both
        // were direct reclaim.
        "pgscan_direct" | "pgscan_proactive" | "pgscan_khugepaged" => Some(2),
        "pgsteal_direct" | "pgsteal_proactive" | "pgsteal_khugepaged" => Some(3),
        _ => counter.starts_with("workingset_refault").then_some(4),
    }
}

/// A count for each of [`METRICS`]; `None` of what the kernel does not count.
type Counts = [Option<u64>; METRICS.len()];

fn counts<'a>(counters: impl Iterator<Item = (&'a str, u64)>) -> Counts {
    let mut counts = Counts::default();
    for (name, count) in counters {
        if let Some(place) = place(name) {
            counts[place] = Some(counts[place].unwrap_or(0) + count);
        }
    }
    counts
}

/// The growth over a run whose counters grew like this.
pub fn over(counters: &[Counter]) -> [Option<f64>; METRICS.len()] {
    let own = counters.iter().any(|counter| counter.source == CGROUP);
    let source = if own { CGROUP } else { MACHINE };
    let grown = |counter: &Counter| counter.after.saturating_sub(counter.before).max(0) as u64;
    let of = counters.iter().filter(|counter| counter.source == source);
    counts(of.map(|counter| (counter.name.as_str(), grown(counter)))).map(|count| count.map(|n| n as f64))
}

/// The instrument, and the phases so far.
#[derive(Debug)]
pub struct Scans {
    file: Option<KernelFile>,
    /// Whether it is a cgroup's.
    of_cgroup: bool,
    before: Counts,
    phases: Sheet,
}

impl Scans {
    /// Opens the source; before a limit is joined, so that what is read into is not charged to it.
    pub fn open(context: &ExecutionContext) -> Self {
        let own = context.memory_stat.as_deref();
        let file = KernelFile::open(own.unwrap_or(Path::new("/proc/vmstat")));
        Self { file, of_cgroup: own.is_some(), ..Self::closed() }
    }

    /// Reads nothing: for a load whose reads would be counted.
    pub fn closed() -> Self {
        let phases = Sheet::new(scans::TABLE);
        Self { file: None, of_cgroup: false, before: Counts::default(), phases }
    }

    fn read(&mut self) -> Counts {
        self.file.as_mut().and_then(KernelFile::read).map(|text| counts(pairs(text))).unwrap_or_default()
    }

    /// A phase begins.
    pub fn begin(&mut self) {
        self.before = self.read();
    }

    /// The phase ends, and is called this.
    pub fn end(&mut self, phase: &str) {
        let (before, after) = (self.before, self.read());
        let grown = |n: usize| Some(after[n]?.saturating_sub(before[n]?) as f64);
        let row: [_; METRICS.len()] = std::array::from_fn(grown);
        self.phases.named([phase], row);
    }

    /// Records the phases, and what cannot be counted.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn record(self, recorder: &mut dyn Recorder) -> Result<()> {
        self.phases.record(recorder)?;
        if self.of_cgroup && self.before[0].is_none() {
            let text = "scanned and reclaimed pages (scan, steal) are missing: only cgroup version 2 counts \
                        them, from Linux 6.0 on";
            note(recorder, Level::Info, text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::Observations;

    /// Two readings of one file, as a phase.
    fn phase(before: &str, after: &str) -> (Observations, [Option<f64>; METRICS.len()]) {
        let folder = tempfile::tempdir().unwrap();
        let stat = folder.path().join("memory.stat");
        std::fs::write(&stat, before).unwrap();
        let context = ExecutionContext { memory_stat: Some(stat.clone()), ..ExecutionContext::default() };
        let mut scans = Scans::open(&context);
        scans.begin();
        std::fs::write(&stat, after).unwrap();
        scans.end("phase");
        let mut seen = Observations::default();
        scans.record(&mut seen).unwrap();
        let table = seen.table(scans::TABLE).unwrap();
        let row = METRICS.map(|metric| table.numbers(metric.column()).unwrap()[0]);
        (seen, row)
    }

    #[test]
    fn kswapd_is_apart_and_khugepaged_and_requests_are_direct_reclaim() {
        let before = "pgscan 9\npgscan_kswapd 1\npgscan_direct 2\npgscan_khugepaged 3\npgsteal_kswapd 4\n\
            pgsteal_direct 5\npgsteal_khugepaged 1\nworkingset_refault_anon 6\nworkingset_refault_file 7\n";
        let after = "pgscan 99\npgscan_kswapd 11\npgscan_direct 22\npgscan_khugepaged 33\npgsteal_kswapd 44\n\
            pgsteal_direct 55\npgsteal_khugepaged 8\nworkingset_refault_anon 66\nworkingset_refault_file 77\n";
        let expected = [10, 40, 20 + 30, 50 + 7, 130].map(|count| Some(f64::from(count)));
        let (seen, row) = phase(before, after);
        assert_eq!(row, expected);
        assert!(seen.notes.is_empty());
        let apart =
            ("pgscan_proactive 100\npgsteal_proactive 0\n", "pgscan_proactive 103\npgsteal_proactive 2\n");
        let (_, row) = phase(&(before.to_owned() + apart.0), &(after.to_owned() + apart.1));
        assert_eq!(row, [10, 40, 20 + 30 + 3, 50 + 7 + 2, 130].map(|count| Some(f64::from(count))));
    }

    #[test]
    fn version_one_has_refaults_alone_and_a_note_says_so() {
        let before = "pgfault 1\nworkingset_refault_anon 6\ntotal_workingset_refault_anon 6\n";
        let after = "pgfault 2\nworkingset_refault_anon 8\ntotal_workingset_refault_anon 8\n";
        let (seen, row) = phase(before, after);
        assert_eq!(row, [None, None, None, None, Some(2.0)]);
        assert!(seen.notes[0].text.contains("cgroup version 2"), "{:?}", seen.notes);
    }

    #[test]
    fn the_machines_counters_stand_in_for_no_cgroups() {
        let counter = |source: &str, name: &str, after| Counter {
            source: source.into(),
            name: name.into(),
            before: 1,
            after,
        };
        let machine = counter(MACHINE, "pgscan_direct", 10);
        assert_eq!(over(std::slice::from_ref(&machine)), [None, None, Some(9.0), None, None]);
        let own = [machine, counter(CGROUP, "workingset_refault_anon", 3)];
        assert_eq!(over(&own), [None, None, None, None, Some(2.0)]);
        assert_eq!(over(&[]), [None; METRICS.len()]);
    }
}
