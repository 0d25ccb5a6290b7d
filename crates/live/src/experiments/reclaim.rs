//! `reclaim` on the running kernel.
//!
//! The worker joins the cgroup and maps a hot part and a cold one, side by side. Step by step
//! memory is taken from it. Asked by a line to `memory.reclaim`, the writing thread itself
//! reclaims, between two rounds of references to the hot part; a scheme of DAMON's
//! ([`pagelab_kernel::damon`]) acts while the hot part is referenced all the time. Which pages went
//! is read from `/proc/self/pagemap`; what the kernel counts stands beside.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;

use pagelab_experiment::build::{Sheet, metrics};
use pagelab_experiment::experiments::Reclaim;
use pagelab_experiment::experiments::reclaim::By;
use pagelab_experiment::{Failure, Recorder, Result, Setting, metrics, tables};
use pagelab_kernel::cgroup::Group;
use pagelab_kernel::damon::{Kdamond, Scheme, Stats};
use pagelab_kernel::pagemap::{Snapshot, SnapshotReader};
use pagelab_kernel::region::{Region, page_size};
use pagelab_kernel::rusage;

use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::{self, failed};
use crate::harness::measurement::Harness;
use crate::harness::profiled;
use crate::harness::scans::Scans;
use crate::harness::timing::bare;
use crate::harness::touch::Write;

/// The file of a cgroup that is asked.
const FILE: &str = "memory.reclaim";
/// The last pass over the cold part, as a phase.
const REREAD: &str = "reread";

/// What a step showed.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    asked: u64,
    /// As the cgroup counts it, bytes; DAMON's is not counted there.
    reclaimed: Option<u64>,
    /// Fall of what is charged to the cgroup, bytes.
    freed: Option<i64>,
    cold: u64,
    hot: u64,
    faults: u64,
    /// Processor time of asking, or of DAMON's thread, ns.
    time: Option<u64>,
    /// Of DAMON's scheme.
    stats: Option<Stats>,
}

/// The mapping and its two parts.
struct Load {
    region: Region,
    hot: Vec<u32>,
    cold: Vec<u32>,
    reader: SnapshotReader,
    snapshot: Snapshot,
    /// References to the hot part so far, the thread's processor time for them, their faults, and
    /// the major ones of these.
    references: u64,
    time: u64,
    faults: u64,
    major: u64,
}

impl Load {
    /// Maps and writes both parts.
    fn new(parameters: &Reclaim, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<Self> {
        let pages = usize::try_from(parameters.hot.saturating_add(parameters.cold)).unwrap_or(usize::MAX);
        let reader = SnapshotReader::anonymous().map_err(failed("opening /proc/self/pagemap"))?;
        let (snapshot, first) = (Snapshot::new(pages), parameters.hot as u32);
        let [hot, cold]: [Vec<u32>; 2] = [(0..first).collect(), (first..pages as u32).collect()];
        context.join()?;
        let region = Region::base_pages(pages).map_err(failed(&format!("mapping {pages} pages")))?;
        region.populate(|done, of| recorder.progress("populate", done, of));
        let mut new =
            Self { region, hot, cold, reader, snapshot, references: 0, time: 0, faults: 0, major: 0 };
        // Once before: what it executes for the first time is mapped then, with faults that bring
        // back nothing.
        new.reference(1, || false);
        [new.references, new.time, new.faults, new.major] = [0; 4];
        Ok(new)
    }

    /// Writes the hot part so often, and on while `more`, whose own time and faults are not the
    /// load's.
    fn reference(&mut self, turns: u32, more: impl Fn() -> bool) {
        let mut done = 0;
        while done < turns || more() {
            let (begun, before) = (rusage::thread_time(), rusage::thread());
            bare::<Write>(&self.region, &self.hot);
            let used = rusage::thread() - before;
            self.time += rusage::thread_time() - begun;
            self.faults += used.minor + used.major;
            self.major += used.major;
            done += 1;
        }
        self.references += u64::from(done) * self.hot.len() as u64;
    }

    /// Pages of the hot part and of the cold one that are not in memory.
    fn away(&mut self) -> Result<[u64; 2], Failure> {
        self.reader.read(&self.region, &mut self.snapshot).map_err(failed("reading /proc/self/pagemap"))?;
        let flags = self.snapshot.present().collect::<Vec<bool>>();
        let (hot, cold) = flags.split_at(self.hot.len());
        Ok([hot, cold].map(|part| part.iter().filter(|present| !**present).count() as u64))
    }
}

/// Performs `parameters`; see the module's comment.
///
/// # Errors
/// Without a limit, where the kernel has no such way, and when it refuses.
pub fn perform(
    parameters: &Reclaim,
    setting: &Setting,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let Some(group) = context.cgroup.as_deref() else {
        return Err(Failure::unsupported("reclaim needs a cgroup for the load alone", "give --memory SIZE"));
    };
    let file = group.join(FILE);
    if parameters.by == By::MemoryReclaim && !file.exists() {
        let what = "this kernel's cgroups have no memory.reclaim (version 2, Linux 5.19 and later)";
        return Err(Failure::unsupported(what, "use a kernel image of Linux 5.19 or later"));
    }
    let mut harness = Harness::open(context, recorder)?;
    let mut scans = Scans::open(context);
    let mut load = Load::new(parameters, context, recorder)?;
    harness.begin();
    let result = reclaim(parameters, &mut load, group, &mut scans, recorder)?;
    let measured = harness.finish();
    measured.record(recorder)?;
    report(&result, &load, recorder)?;
    metrics(recorder, measured.scans())?;
    scans.record(recorder)?;
    measured.note_scope(recorder)?;
    // Its pages are charged to the cgroup too.
    drop(load);
    profiled::repeat(setting, context, recorder, |recorder| {
        let mut load = Load::new(parameters, context, recorder)?;
        reclaim(parameters, &mut load, group, &mut Scans::closed(), recorder).map(drop)
    })
}

/// What the steps showed, and the last pass over the cold part.
struct ReclaimResult {
    steps: Vec<Step>,
    /// Processor time of DAMON's thread from its start.
    kdamond: Option<u64>,
    /// Processor time of the pass, and its major faults.
    reread: (u64, u64),
}

/// Takes memory step by step, and references the cold part at last.
fn reclaim(
    parameters: &Reclaim,
    load: &mut Load,
    group: &Path,
    scans: &mut Scans,
    recorder: &mut dyn Recorder,
) -> Result<ReclaimResult> {
    let (steps, kdamond) = match parameters.by {
        By::MemoryReclaim => (asked(parameters, load, group, scans, recorder)?, None),
        By::Damon => watched(parameters, load, group, scans, recorder)?,
    };
    scans.begin();
    let (begun, start) = (rusage::thread_time(), rusage::thread());
    bare::<Write>(&load.region, &load.cold);
    let reread = (rusage::thread_time() - begun, (rusage::thread() - start).major);
    scans.end(REREAD);
    Ok(ReclaimResult { steps, kdamond, reread })
}

/// The steps in which the cgroup is asked.
fn asked(
    parameters: &Reclaim,
    load: &mut Load,
    group: &Path,
    scans: &mut Scans,
    recorder: &mut dyn Recorder,
) -> Result<Vec<Step>> {
    let file = group.join(FILE);
    let (mut steps, mut todo, page) = (Vec::new(), parameters.ask, page_size() as u64);
    for number in 0..parameters.steps {
        let pages = todo / u64::from(parameters.steps - number);
        todo -= pages;
        scans.begin();
        load.reference(parameters.turns, || false);
        let counts = counted(group);
        let (held, before) = (charged(group), load.away()?);
        let time = ask(&file, pages * page)?;
        let (left, away) = (charged(group), load.away()?);
        let after = counted(group);
        let major = load.major;
        load.reference(1, || false);
        scans.end(&(number + 1).to_string());
        steps.push(Step {
            asked: pages * page,
            reclaimed: counts.zip(after).map(|(before, after)| (after.saturating_sub(before)) * page),
            freed: held.zip(left).map(|(before, now)| before - now),
            hot: away[0].saturating_sub(before[0]),
            cold: away[1].saturating_sub(before[1]),
            faults: load.major - major,
            time: Some(time),
            stats: None,
        });
        went_on("reclaim", number, parameters, recorder)?;
    }
    Ok(steps)
}

/// The steps in which DAMON's scheme acts, and the processor time of DAMON's thread from its start.
fn watched(
    parameters: &Reclaim,
    load: &mut Load,
    group: &Path,
    scans: &mut Scans,
    recorder: &mut dyn Recorder,
) -> Result<(Vec<Step>, Option<u64>)> {
    let page = page_size() as u64;
    let quota = parameters.ask.div_ceil(parameters.windows().max(1)).max(1) * page;
    let seconds = |seconds: f64| (seconds * 1e9) as u64;
    let (mut held, mut before) = (charged(group), load.away()?);
    let scheme = Scheme {
        action: parameters.action.to_string(),
        sampling: parameters.sampling,
        aggregation: parameters.aggregation,
        age: parameters.age,
    };
    let kdamond = Kdamond::start(&scheme, &load.region.range(), quota).map_err(failure::of)?;
    let (mut stats, mut time) = (Stats::default(), kdamond.time());
    let mut until = Monotonic.now() + seconds(parameters.lead());
    // What comes before the first step is of it.
    let (mut faults, mut major) = (load.faults, load.major);
    scans.begin();
    load.reference(parameters.turns, || Monotonic.now() < until);
    let (mut steps, mut todo) = (Vec::new(), parameters.ask);
    for number in 0..parameters.steps {
        let pages = todo / u64::from(parameters.steps - number);
        todo -= pages;
        until += seconds(parameters.seconds);
        load.reference(parameters.turns, || Monotonic.now() < until);
        let counts = told(&kdamond, load)?;
        let used = kdamond.time();
        if number + 1 == parameters.steps {
            // Nothing goes any more from here on.
            kdamond.stop().map_err(failure::of)?;
        }
        let (left, now) = (charged(group), load.away()?);
        scans.end(&(number + 1).to_string());
        scans.begin();
        steps.push(Step {
            asked: pages * page,
            reclaimed: None,
            freed: held.zip(left).map(|(before, now)| before - now),
            // Each fault on the hot part has brought one page back that had gone since.
            hot: (load.faults - faults + now[0]).saturating_sub(before[0]),
            cold: now[1].saturating_sub(before[1]),
            faults: load.major - major,
            time: time.zip(used).map(|(before, now)| now.saturating_sub(before)),
            stats: Some(Stats {
                tried: counts.tried.saturating_sub(stats.tried),
                applied: counts.applied.saturating_sub(stats.applied),
            }),
        });
        (before, stats, time) = (now, counts, used);
        (held, faults, major) = (left, load.faults, load.major);
        went_on("watch", number, parameters, recorder)?;
    }
    Ok((steps, time))
}

/// What the scheme counts. It tells at the end of an aggregation interval, and until then the hot
/// part must be referenced on.
fn told(kdamond: &Kdamond, load: &mut Load) -> Result<Stats> {
    thread::scope(|scope| {
        let asked = thread::Builder::new()
            .spawn_scoped(scope, || kdamond.stats().map_err(failure::of))
            .map_err(failed("starting a thread"))?;
        load.reference(0, || !asked.is_finished());
        asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Says how far it is; an error where it is to end.
fn went_on(what: &'static str, step: u32, parameters: &Reclaim, recorder: &mut dyn Recorder) -> Result<()> {
    recorder.progress(what, u64::from(step) + 1, u64::from(parameters.steps));
    recorder.check()
}

/// Asks the cgroup for so many bytes; the processor time of the call, which reclaims.
fn ask(file: &Path, bytes: u64) -> Result<u64> {
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
    Group::new(group).stat("pgsteal")
}

/// What is charged to the cgroup, bytes.
fn charged(group: &Path) -> Option<i64> {
    Group::new(group).charged()?.try_into().ok()
}

/// The tables and the figures of all steps.
fn report(result: &ReclaimResult, load: &Load, recorder: &mut dyn Recorder) -> Result<()> {
    let ReclaimResult { steps, kdamond, reread } = result;
    let float = |count: u64| count as f64;
    let mut sheet = Sheet::new(tables::steps::TABLE);
    let mut scheme = Sheet::new(tables::scheme::TABLE);
    for (number, step) in (1u32..).zip(steps) {
        let values = [
            Some(float(step.asked)),
            step.reclaimed.map(float),
            Some(float(step.cold)),
            Some(float(step.hot)),
            Some(float(step.faults)),
            step.time.map(float),
        ];
        sheet.named([&number.to_string()], values);
        if let Some(stats) = step.stats {
            scheme.named([&number.to_string()], [Some(float(stats.tried)), Some(float(stats.applied))]);
        }
    }
    sheet.record(recorder)?;
    if steps.iter().any(|step| step.stats.is_some()) {
        scheme.record(recorder)?;
    }
    let sum = |of: fn(&Step) -> u64| float(steps.iter().map(of).sum::<u64>());
    let all = |of: fn(&Step) -> Option<u64>| {
        steps.iter().map(of).try_fold(0, |sum: u64, one| Some(sum + one?)).map(float)
    };
    let out = sum(|step| step.cold + step.hot);
    let each = |sum: f64, of: f64| (of > 0.0).then(|| sum / of);
    let freed = steps.iter().try_fold(0, |sum: i64, step| Some(sum + step.freed?)).map(|bytes| bytes as f64);
    // DAMON's thread watches all the time, also before the first step.
    let time = kdamond.map(float).or_else(|| all(|step| step.time));
    metrics(
        recorder,
        [
            (metrics::RECLAIM_REQUESTED, Some(sum(|step| step.asked))),
            (metrics::RECLAIM_RECLAIMED, all(|step| step.reclaimed)),
            (metrics::RECLAIM_FREED, freed),
            (metrics::RECLAIM_PAGES, Some(out)),
            (metrics::RECLAIM_COLD, each(sum(|step| step.cold), out)),
            (metrics::RECLAIM_MISTAKES, Some(float(load.major))),
            (metrics::RECLAIM_COST, time.and_then(|time| each(time, out))),
            (metrics::RECLAIM_TRIED, all(|step| Some(step.stats?.tried))),
            (metrics::RECLAIM_APPLIED, all(|step| Some(step.stats?.applied))),
            (metrics::RECLAIM_KDAMOND, kdamond.map(float)),
            (metrics::RECLAIM_HOT_COST, each(float(load.time), float(load.references))),
            (metrics::RECLAIM_REREAD_FAULTS, Some(float(reread.1))),
            (metrics::RECLAIM_REREAD_COST, each(float(reread.0), float(reread.1))),
        ],
    )
}
