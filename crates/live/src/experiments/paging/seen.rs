//! From the raw readings of a run to observations. Runs after the region is gone.

use pagelab_experiment::build::{KINDS, Windows, access_metrics, metric, metrics, note, warn};
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::{Histogram, Level, PageSet, PageSnapshot, Table};
use pagelab_experiment::{Observation, Recorder, Result, build, warnings};
use pagelab_kernel::rusage::Usage;

use super::counted::Counted;
use super::plan::Plan;
use super::{RawResult, Window};
use crate::harness::measurement::Measured;
use crate::harness::processor;

/// Classified references and counted faults may differ by this share of the faults (and by two in
/// any case) before a note says so: one reference can have several faults.
const HAIR: f64 = 0.001;

/// Of the wall time, from which on pauses are told where a disk reads on in them.
const PAUSES: f64 = 0.03;

/// Says that the references did not wait for what a disk read in the pauses between them.
pub fn note_pauses(seen: &RawResult, recorder: &mut dyn Recorder) -> Result<()> {
    let (elapsed, read) = (seen.windows.iter())
        .fold((0, 0), |(elapsed, read), window| (elapsed + window.timed.sum, read + window.timed.usage.read));
    let pauses = seen.wall.saturating_sub(elapsed) as f64 / seen.wall.max(1) as f64;
    if read == 0 || pauses < PAUSES {
        return Ok(());
    }
    note(
        recorder,
        Level::Info,
        format!(
            "the disk also read in the pauses between the windows ({:.0}% of time.wall), so time.elapsed \
            and the mean times of faults are too short by up to that share; use time.wall",
            pauses * 100.0
        ),
    )
}

/// Gives everything seen to `recorder`; page maps that are not `counted` here whoever takes them
/// completes.
pub fn report(
    seen: &RawResult,
    measured: &Measured,
    fault: f64,
    plan: &Plan,
    paging: &Paging,
    counted: Option<Counted>,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let elapsed: u64 = seen.windows.iter().map(|w| w.timed.sum).sum();
    let mut usage = Usage::default();
    seen.windows.iter().for_each(|w| usage += w.timed.usage);
    let present =
        seen.snapshots.iter().map(|snapshot| snapshot.present().filter(|&flag| flag).count() as f64);
    let number = |value: u64| Some(value as f64);
    let [processor, user, system] = processor::figures(&usage);
    let figures = [
        (metrics::TIME_ELAPSED, number(elapsed)),
        (metrics::TIME_WALL, number(seen.wall)),
        processor,
        user,
        system,
        (metrics::FAULTS_MINOR, number(usage.minor)),
        (metrics::FAULTS_MAJOR, number(usage.major)),
        (metrics::IO_READ, number(usage.read)),
        (metrics::SWITCHES_VOLUNTARY, number(usage.voluntary)),
        (metrics::SWITCHES_INVOLUNTARY, number(usage.involuntary)),
        metrics::PAGES_PRESENT.over(present),
        (metrics::FAULT_ANONYMOUS, Some(fault)),
    ];
    measured.record(recorder)?;
    // Up to the last window and no further: on some kernels swap is counted for the whole machine.
    let swap = seen.swap_before.zip(seen.windows.last().and_then(|window| window.swap));
    let swap = swap.map(|(before, after)| growth(before, after));
    let pressure = measured.pressure(swap).into_iter().chain(measured.scans());
    metrics(recorder, figures.into_iter().chain(pressure))?;
    let kinds: [Histogram; 3] = std::array::from_fn(|kind| seen.tally.kinds[kind].histogram(KINDS[kind]));
    let (interrupted, nanoseconds) = seen.tally.interrupted;
    let uninterrupted = (kinds[0].sum - nanoseconds) as f64 / (kinds[0].count() - interrupted) as f64;
    for (name, value) in access_metrics(&kinds) {
        // The mean of all references, also where few were timed.
        let mean = (name == metrics::ACCESS_MEAN).then_some(elapsed as f64 / plan.references() as f64);
        metric(recorder, name, mean.or(value))?;
        if name == metrics::ACCESS_HIT_MEAN {
            let value = seen.interruptions.then_some(uninterrupted);
            metric(recorder, metrics::ACCESS_HIT_UNINTERRUPTED, value)?;
        }
    }
    let [_, minor, major] = [0, 1, 2].map(|i| kinds[i].count());
    if paging.write_share().is_mixed() {
        let (writes, all) = (&seen.tally.writes, kinds.iter());
        let (count, sum) = all.fold((0, 0), |(count, sum), kind| (count + kind.count(), sum + kind.sum));
        let mean = |sum: u64, count: u64| (count > 0).then(|| sum as f64 / count as f64);
        let reads = (sum.saturating_sub(writes.sum()), count.saturating_sub(writes.count()));
        metric(recorder, metrics::ACCESS_READ_MEAN, mean(reads.0, reads.1))?;
        metric(recorder, metrics::ACCESS_WRITE_MEAN, mean(writes.sum(), writes.count()))?;
        metric(recorder, metrics::WRITES, Some(writes.count() as f64))?;
    }
    for kind in kinds.into_iter().filter(|k| k.count() > 0) {
        recorder.observe(Observation::Histogram(kind))?;
    }
    recorder.observe(Observation::Table(windows(seen, plan)))?;
    let apart = minor.abs_diff(usage.minor) + major.abs_diff(usage.major);
    if seen.every == 1 && apart as f64 > (HAIR * (usage.minor + usage.major) as f64).max(2.0) {
        warn(
            recorder,
            warnings::CLASSIFICATION,
            format!(
                "{minor} references had minor faults and {major} had major faults, but the thread's \
                counters grew by {} and {}: {}",
                usage.minor,
                usage.major,
                warnings::CLASSIFICATION.0
            ),
        )?;
    }
    measured.note_scope(recorder)?;
    snapshots(seen, plan, counted, recorder)
}

/// The windows as a table.
fn windows(seen: &RawResult, plan: &Plan) -> Table {
    let mut windows = Windows::new();
    let mut swap_before = seen.swap_before;
    for (number, &Window { timed, swap, present }) in (1..).zip(&seen.windows) {
        let swapped = swap_before.zip(swap).map(|(before, after)| growth(before, after));
        windows.add(&build::Window {
            reference: plan.end(number) as u64,
            references: (plan.end(number) - plan.start(number)) as u64,
            time: timed.sum,
            longest: timed.max,
            minor: timed.usage.minor,
            major: timed.usage.major,
            swap_in: swapped.map(|s| s.0),
            swap_out: swapped.map(|s| s.1),
            present,
        });
        swap_before = swap;
    }
    windows.table()
}

/// The page maps, completed where they are `counted` here.
fn snapshots(
    seen: &RawResult,
    plan: &Plan,
    mut counted: Option<Counted>,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let points = (0..=plan.windows()).filter(|&window| plan.snapshot_after(window));
    for (snapshot, window) in seen.snapshots.iter().zip(points) {
        let mut map = PageSnapshot {
            reference: plan.end(window) as u64,
            pages: seen.pages,
            present: PageSet::from_flags(snapshot.present()),
            swapped: PageSet::from_flags(snapshot.swapped()),
            count: Vec::new(),
            last: Vec::new(),
        };
        counted.as_mut().map_or(Ok(()), |counted| counted.complete(&mut map))?;
        recorder.observe(Observation::Pages(map))?;
    }
    Ok(())
}

/// The growth of a pair of counters.
fn growth(before: (u64, u64), after: (u64, u64)) -> (u64, u64) {
    (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1))
}
