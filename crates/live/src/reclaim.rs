//! `reclaim` on the running kernel.
//!
//! The worker joins the cgroup and maps a hot part and a cold one, side by side. Before each step the hot part is referenced
//! several times, then the kernel is asked for a part of the memory by a line to `memory.reclaim`, which the calling thread itself
//! then reclaims. Which pages went is read from `/proc/self/pagemap`, before the hot part is referenced again; the kernel's
//! count of reclaimed pages stands beside.

use std::fs;
use std::io;
use std::path::Path;

use pagelab_experiment::build::{Sheet, metrics};
use pagelab_experiment::catalogue::name;
use pagelab_experiment::experiments::Reclaim;
use pagelab_experiment::experiments::paging::Backing;
use pagelab_experiment::experiments::reclaim::COLUMNS;
use pagelab_experiment::{Failure, Recorder};

use crate::harness::Harness;
use crate::kernel::value;
use crate::observe::failed;
use crate::pagemap::{Snapshot, SnapshotReader};
use crate::paging::timing::bare;
use crate::paging::touch::Write;
use crate::place::Place;
use crate::region::{HugePages, Region, page_size};
use crate::rusage;

/// The file of a cgroup that is asked.
const FILE: &str = "memory.reclaim";

/// What a step showed.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    asked: u64,
    /// As the cgroup counts it, bytes.
    reclaimed: Option<u64>,
    cold: u64,
    hot: u64,
    faults: u64,
    /// Processor time of asking, ns.
    time: u64,
}

/// Performs `parameters`; see the module's comment.
///
/// # Errors
/// Without a limit, where the kernel has no such way, and when it refuses.
pub fn perform(parameters: &Reclaim, place: &Place, recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let Some(group) = place.cgroup.as_deref() else {
        return Err(Failure::unsupported("reclaim needs a cgroup of the load's own", "give --memory SIZE"));
    };
    let file = group.join(FILE);
    if !file.exists() {
        let what = "this kernel's cgroups have no memory.reclaim (version 2, Linux 5.19 and later)";
        return Err(Failure::unsupported(what, "use a kernel image of Linux 5.19 or later"));
    }
    let mut harness = Harness::open(place, recorder)?;
    let pages = usize::try_from(parameters.hot.saturating_add(parameters.cold)).unwrap_or(usize::MAX);
    let mut reader = SnapshotReader::new(Backing::Anonymous).map_err(failed("opening /proc/self/pagemap"))?;
    let (mut look, hot) = (Snapshot::new(pages), parameters.hot as usize);
    let [warm, rest]: [Vec<u32>; 2] = [(0..hot as u32).collect(), (hot as u32..pages as u32).collect()];
    place.join()?;
    let region = Region::anonymous(pages).map_err(failed(&format!("mapping {pages} pages")))?;
    let _ = region.advise(HugePages::Forbidden);
    region.populate(|done, of| recorder.progress("populate", done, of));
    harness.begin();
    let mut steps = Vec::new();
    let page = page_size() as u64;
    let (mut todo, mut warmed) = (parameters.ask, 0);
    for number in 0..parameters.steps {
        let pages = todo / u64::from(parameters.steps - number);
        todo -= pages;
        warmed += warm_up(&region, &warm, parameters.turns);
        let before = counted(group);
        let gone = |look: &Snapshot| {
            let flags = look.present().flags(region.pages() as u32);
            let away = |part: &[bool]| part.iter().filter(|present| !**present).count() as u64;
            (away(&flags[..hot]), away(&flags[hot..]))
        };
        let looked = |reader: &mut SnapshotReader, look: &mut Snapshot| {
            reader.look(&region, look).map_err(failed("reading /proc/self/pagemap"))
        };
        looked(&mut reader, &mut look)?;
        let away = gone(&look);
        let time = ask(&file, pages * page)?;
        looked(&mut reader, &mut look)?;
        let (hot_away, cold_away) = gone(&look);
        let after = counted(group);
        let start = rusage::thread();
        bare::<Write>(&region, &warm);
        let faults = rusage::thread().major - start.major;
        steps.push(Step {
            asked: pages * page,
            reclaimed: before.zip(after).map(|(before, after)| (after.saturating_sub(before)) * page),
            cold: cold_away.saturating_sub(away.1),
            hot: hot_away.saturating_sub(away.0),
            faults,
            time,
        });
        recorder.progress("reclaim", u64::from(number) + 1, u64::from(parameters.steps));
        if recorder.interrupted() {
            return Err(Failure::interrupted());
        }
    }
    let (begun, start) = (rusage::thread_time(), rusage::thread());
    bare::<Write>(&region, &rest);
    let (time, used) = (rusage::thread_time() - begun, rusage::thread() - start);
    let measured = harness.finish();
    drop(region);
    measured.record(recorder)?;
    report(&steps, warmed, (time, used.major), recorder)?;
    measured.note_scope(recorder)
}

/// References the hot part so often; its major faults.
fn warm_up(region: &Region, hot: &[u32], turns: u32) -> u64 {
    let before = rusage::thread().major;
    (0..turns).for_each(|_| bare::<Write>(region, hot));
    rusage::thread().major - before
}

/// Asks the cgroup for so many bytes; the processor time of the call, which reclaims.
fn ask(file: &Path, bytes: u64) -> Result<u64, Failure> {
    let begun = rusage::thread_time();
    let asked = fs::write(file, bytes.to_string());
    let time = rusage::thread_time() - begun;
    match asked {
        // It could not reclaim as much: what it did is counted.
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
            Err(failed(&format!("writing {bytes} to {}", file.display()))(error))
        }
        _ => Ok(time),
    }
}

/// Pages that the cgroup counts as reclaimed: `pgsteal`, since Linux 6.1 of the cgroup itself.
fn counted(group: &Path) -> Option<u64> {
    let text = fs::read_to_string(group.join("memory.stat")).ok()?;
    value(&text, "pgsteal")
}

/// The table `steps` and the figures of all of them; `back` is the processor time of referencing the cold part at last, and its major
/// faults.
fn report(steps: &[Step], warmed: u64, back: (u64, u64), recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let mut sheet = Sheet::new("steps", &COLUMNS).with_texts("step");
    for (number, step) in (1u32..).zip(steps) {
        let values = [
            Some(step.asked as f64),
            step.reclaimed.map(|bytes| bytes as f64),
            Some(step.cold as f64),
            Some(step.hot as f64),
            Some(step.faults as f64),
            Some(step.time as f64),
        ];
        sheet.named([&number.to_string()], values);
    }
    sheet.record(recorder)?;
    let sum = |of: fn(&Step) -> u64| steps.iter().map(of).sum::<u64>() as f64;
    let all = |of: fn(&Step) -> Option<u64>| {
        steps.iter().map(of).try_fold(0, |sum: u64, one| Some(sum + one?)).map(|sum| sum as f64)
    };
    let out = sum(|step| step.cold + step.hot);
    let each = |sum: f64, of: f64| (of > 0.0).then(|| sum / of);
    metrics(
        recorder,
        [
            (name::RECLAIM_ASKED, Some(sum(|step| step.asked))),
            (name::RECLAIM_HAD, all(|step| step.reclaimed)),
            (name::RECLAIM_PAGES, Some(out)),
            (name::RECLAIM_COLD, each(sum(|step| step.cold), out)),
            (name::RECLAIM_MISTAKES, Some(sum(|step| step.faults) + warmed as f64)),
            (name::RECLAIM_COST, each(sum(|step| step.time), out)),
            (name::RECLAIM_BACK_FAULTS, Some(back.1 as f64)),
            (name::RECLAIM_BACK_COST, each(back.0 as f64, back.1 as f64)),
        ],
    )
}
