//! From the raw readings of a run to observations. Runs after the region is gone.

use std::collections::BTreeMap;

use pagelab_experiment::catalogue::{WINDOWS, metric};
use pagelab_experiment::observation::{Column, Histogram, Level, Note, PageSnapshot, Table, Unit, Values};
use pagelab_experiment::{Failure, Observation, Recorder};
use pagelab_reference::Stream;

use super::plan::Plan;
use super::timing::{Distribution, Kind};
use super::{Seen, Window};
use crate::rusage::Usage;

/// Classified references and counted faults may differ by this share of the faults (and by two in
/// any case) before a note says so: one reference can have several faults.
const HAIR: f64 = 0.001;

/// Gives everything seen to `recorder`.
pub fn report(
    seen: &Seen,
    fault: f64,
    plan: &Plan,
    stream: &Stream,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let elapsed: u64 = seen.windows.iter().map(|w| w.timed.sum).sum();
    let mut usage = Usage::default();
    seen.windows.iter().for_each(|w| usage += w.timed.usage);
    let swap = seen.swap_before.zip(seen.windows.last().and_then(|w| w.swap));
    let swap = swap.map(|(before, after)| growth(before, after));
    let present = seen.looks.iter().map(|look| look.present().len()).max();

    let mut figure =
        |name: &str, value: Option<f64>| recorder.observe(Observation::Metric(metric(name, value)));
    let number = |value: u64| Some(value as f64);
    figure("time.elapsed", number(elapsed))?;
    figure("time.user", number(usage.user))?;
    figure("time.system", number(usage.system))?;
    figure("time.stalled", seen.stalled.map(|v| v as f64))?;
    figure("faults.minor", number(usage.minor))?;
    figure("faults.major", number(usage.major))?;
    figure("swap.in", swap.map(|s| s.0 as f64))?;
    figure("swap.out", swap.map(|s| s.1 as f64))?;
    figure("io.read", number(usage.read))?;
    figure("switches.voluntary", number(usage.voluntary))?;
    figure("switches.involuntary", number(usage.involuntary))?;
    figure("pages.present", present.map(|v| v as f64))?;

    let kinds: Vec<Histogram> =
        Kind::ALL.iter().map(|&(kind, name)| histogram(name, &seen.tally.kinds[kind as usize])).collect();
    let all = merged(&kinds);
    let quantile = |h: &Histogram, q| h.quantile(q).map(|v| v as f64);
    let longest = |h: &Histogram| (h.count() > 0).then_some(h.max as f64);
    figure("fault.anonymous", Some(fault))?;
    figure("access.mean", all.mean())?;
    figure("access.p50", quantile(&all, 0.5))?;
    figure("access.p99", quantile(&all, 0.99))?;
    figure("access.p999", quantile(&all, 0.999))?;
    figure("access.max", longest(&all))?;
    for kind in &kinds {
        figure(&format!("{}.mean", kind.name), kind.mean())?;
        figure(&format!("{}.p50", kind.name), quantile(kind, 0.5))?;
        if kind.name == "access.major" {
            figure("access.major.p99", quantile(kind, 0.99))?;
        }
    }
    let [_, minor, major] = [0, 1, 2].map(|i| kinds[i].count());
    let mut notes = Vec::new();
    let apart = minor.abs_diff(usage.minor) + major.abs_diff(usage.major);
    if apart as f64 > (HAIR * (usage.minor + usage.major) as f64).max(2.0) {
        notes.push((Level::Warning, format!(
            "{minor} references were seen to meet minor faults and {major} major ones, but the thread's counters grew by {} and {}: the split into kinds is not exact in this run",
            usage.minor, usage.major
        )));
    }
    if swap.is_some_and(|s| s != (0, 0)) && seen.swap_whole_machine {
        notes.push((Level::Info, "swap traffic is the whole machine's (/proc/vmstat): this kernel does not count it for each cgroup; keep other programs quiet".into()));
    }
    if seen.stalled.is_some_and(|s| s > 0) && seen.stall_whole_machine {
        notes.push((Level::Info, "the time stalled on memory is the whole machine's (/proc/pressure/memory): only cgroup version 2 has it for the experiment alone".into()));
    }
    for kind in kinds.into_iter().filter(|k| k.count() > 0) {
        recorder.observe(Observation::Histogram(kind))?;
    }
    recorder.observe(Observation::Table(windows(seen, plan)))?;
    for (level, text) in notes {
        recorder.observe(Observation::Note(Note { level, text }))?;
    }
    recorder.observe(Observation::Counters(seen.counters.clone()))?;
    snapshots(seen, plan, stream, recorder)
}

/// The windows as a table; see [`WINDOWS`].
fn windows(seen: &Seen, plan: &Plan) -> Table {
    let mut time = 0;
    let mut swap_before = seen.swap_before;
    let rows: Vec<[Option<f64>; 9]> = (1..)
        .zip(&seen.windows)
        .map(|(number, window): (usize, &Window)| {
            let timed = window.timed;
            let references = (plan.end(number) - plan.start(number)) as f64;
            time += timed.sum;
            let swap = swap_before.zip(window.swap).map(|(before, after)| growth(before, after));
            swap_before = window.swap;
            [
                Some(plan.end(number) as f64),
                Some(time as f64),
                Some(timed.sum as f64 / references),
                Some(timed.max as f64),
                Some(timed.usage.minor as f64),
                Some(timed.usage.major as f64),
                swap.map(|s| s.0 as f64),
                swap.map(|s| s.1 as f64),
                window.present.map(|p| p as f64),
            ]
        })
        .collect();
    let columns = [
        ("reference", Unit::Count),
        ("time", Unit::Nanoseconds),
        ("access.mean", Unit::Nanoseconds),
        ("access.max", Unit::Nanoseconds),
        ("faults.minor", Unit::Count),
        ("faults.major", Unit::Count),
        ("swap.in", Unit::Pages),
        ("swap.out", Unit::Pages),
        ("pages.present", Unit::Pages),
    ];
    let column = |(at, (name, unit)): (usize, (&str, Unit))| Column {
        name: name.to_owned(),
        unit: Some(unit),
        values: Values::Number(rows.iter().map(|row| row[at]).collect()),
    };
    Table { name: WINDOWS.to_owned(), columns: columns.into_iter().enumerate().map(column).collect() }
}

/// The page maps, with the references up to each counted from the stream.
fn snapshots(seen: &Seen, plan: &Plan, stream: &Stream, recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let mut count = vec![0u32; stream.pages() as usize];
    let mut last = vec![0u32; stream.pages() as usize];
    let mut made = 0;
    let points = (0..=plan.windows()).filter(|&window| plan.look_after(window));
    for (look, window) in seen.looks.iter().zip(points) {
        for (number, &page) in (1..).zip(stream.references()).take(plan.end(window)).skip(made) {
            count[page as usize] += 1;
            last[page as usize] = number;
        }
        made = plan.end(window);
        recorder.observe(Observation::Pages(PageSnapshot {
            reference: made as u64,
            pages: stream.pages(),
            present: look.present(),
            swapped: look.swapped(),
            count: count.clone(),
            last: last.clone(),
        }))?;
    }
    Ok(())
}

/// The growth of a pair of counters.
fn growth(before: (u64, u64), after: (u64, u64)) -> (u64, u64) {
    (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1))
}

fn histogram(name: &str, distribution: &Distribution) -> Histogram {
    let recorded = distribution.histogram.iter_recorded();
    Histogram {
        name: name.to_owned(),
        unit: Unit::Nanoseconds,
        buckets: recorded.map(|v| (v.value_iterated_to(), v.count_at_value())).collect(),
        min: if distribution.histogram.is_empty() { 0 } else { distribution.min },
        max: distribution.max,
        sum: distribution.sum,
    }
}

/// All references together, whatever they met.
fn merged(kinds: &[Histogram]) -> Histogram {
    let mut buckets = BTreeMap::new();
    for &(value, count) in kinds.iter().flat_map(|kind| &kind.buckets) {
        *buckets.entry(value).or_insert(0) += count;
    }
    let some = || kinds.iter().filter(|kind| kind.count() > 0);
    Histogram {
        name: "access".to_owned(),
        unit: Unit::Nanoseconds,
        buckets: buckets.into_iter().collect(),
        min: some().map(|kind| kind.min).min().unwrap_or(0),
        max: some().map(|kind| kind.max).max().unwrap_or(0),
        sum: some().map(|kind| kind.sum).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_count_sum_and_extremes() {
        let one = |name: &str, buckets: Vec<(u64, u64)>, min, max, sum| Histogram {
            name: name.into(),
            unit: Unit::Nanoseconds,
            buckets,
            min,
            max,
            sum,
        };
        let all = merged(&[
            one("a", vec![(10, 2), (20, 1)], 9, 20, 39),
            one("b", vec![], 0, 0, 0),
            one("c", vec![(20, 4), (500, 1)], 19, 499, 579),
        ]);
        assert_eq!(all.buckets, [(10, 2), (20, 5), (500, 1)]);
        assert_eq!((all.min, all.max, all.sum, all.count()), (9, 499, 618, 8));
    }
}
