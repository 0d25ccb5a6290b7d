//! `mapanon` and `mapfile` on the running kernel.
//!
//! In this order, so that the harness neither disturbs nor is disturbed:
//!
//! 1. The stream is generated, all buffers are allocated, the clock is calibrated, the file (if any)
//!    is written and dropped from the page cache, and everything is locked in memory.
//! 2. The memory cgroup is joined: what follows is charged to it, what came before is not.
//! 3. The region is mapped and, if anonymous, every page is written once.
//! 4. The references are made in 240 windows. Between two windows, on nobody's time, the cheap
//!    figures are read; at 16 points (start, end, 14 between) the page map too.
//! 5. The region is unmapped, and only then the observations are made and sent.
//!
//! Anonymous memory is advised `MADV_NOHUGEPAGE` unless the setting says otherwise: the experiment
//! is about base pages. Under `thp=always` nothing is advised, under `thp=madvise` `MADV_HUGEPAGE`.
//! A file is mapped shared with the kernel's own read-ahead and fault-around.
//!
//! Elapsed, user and system time, faults, context switches and the windows' times cover the
//! references alone: what happens between windows and the classification of slow references is not
//! in the elapsed time; the latter is in the system time. The kernel's counters, the swap traffic
//! and the stalled time cover the run from the first reference to the last, pauses included.

pub mod calibrate;
mod plan;
mod seen;
pub mod timing;
pub mod touch;

use std::io;

use pagelab_experiment::experiments::{Backing, Paging, Touch as Way};
use pagelab_experiment::observation::{Counter, Level, Note};
use pagelab_experiment::setting::{Setting, Thp};
use pagelab_experiment::{Observation, Recorder, TargetError};
use pagelab_reference::Stream;
use rustix::mm::{MlockAllFlags, mlockall};

use self::plan::Plan;
use self::timing::{Tally, Timed};
use self::touch::{Page, Touch, Word, Write};
use crate::clock::{Clock, Monotonic};
use crate::environment;
use crate::kernel::{Counters, ResidentSet, Stall, SwapTraffic};
use crate::pagemap::{Look, Looker};
use crate::perform::Place;
use crate::region::{self, HugePages, Region};

/// What is read at the end of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    timed: Timed,
    /// Pages read from swap and written to it, since boot.
    swap: Option<(u64, u64)>,
    present: Option<u64>,
}

/// Everything seen in a run, as raw as it was read.
struct Seen {
    tally: Tally,
    windows: Vec<Window>,
    looks: Vec<Look>,
    swap_before: Option<(u64, u64)>,
    swap_whole_machine: bool,
    stalled: Option<u64>,
    stall_whole_machine: bool,
    counters: Vec<Counter>,
}

/// Performs `paging` in this process; see the module's comment.
///
/// # Errors
/// When the stream cannot be generated or the kernel refuses something that cannot be done without.
pub fn perform(
    paging: &Paging,
    backing: Backing,
    setting: &Setting,
    place: &Place,
    recorder: &mut dyn Recorder,
) -> Result<(), TargetError> {
    #[cfg(target_arch = "x86_64")]
    if let Some(tsc) = crate::clock::Tsc::calibrated() {
        return with_clock(&tsc, paging, backing, setting, place, recorder);
    }
    with_clock(&Monotonic, paging, backing, setting, place, recorder)
}

fn with_clock<C: Clock>(
    clock: &C,
    paging: &Paging,
    backing: Backing,
    setting: &Setting,
    place: &Place,
    recorder: &mut dyn Recorder,
) -> Result<(), TargetError> {
    match paging.touch {
        Way::Page => with_touch::<Page, C>(clock, paging, backing, setting, place, recorder),
        Way::Word => with_touch::<Word, C>(clock, paging, backing, setting, place, recorder),
        Way::Write => with_touch::<Write, C>(clock, paging, backing, setting, place, recorder),
    }
}

fn with_touch<T: Touch, C: Clock>(
    clock: &C,
    paging: &Paging,
    backing: Backing,
    setting: &Setting,
    place: &Place,
    recorder: &mut dyn Recorder,
) -> Result<(), TargetError> {
    recorder.observe(Observation::Environment(environment::machine()))?;
    recorder.progress("prepare", 0, 1);
    let stream = paging
        .pattern
        .stream(paging.pages, paging.references, paging.seed)
        .map_err(|e| TargetError::Failed(e.to_string()))?;
    let pages = stream.pages() as usize;
    let file = match backing {
        Backing::Anonymous => None,
        Backing::File => {
            let path = place.scratch.as_ref().ok_or_else(|| TargetError::Unsupported {
                what: "mapfile has no file to map".into(),
                remedy: "give the target a folder for scratch files".into(),
            })?;
            let doing = format!("writing {pages} pages to {}", path.display());
            let written = region::write_file(path, pages, |done, of| recorder.progress("write", done, of));
            Some(written.map_err(failed(&doing))?)
        }
    };
    let warming: Vec<u32> = match paging.warm {
        true => (0..stream.pages()).rev().flat_map(|page| [page, page]).collect(),
        false => Vec::new(),
    };
    let threshold = calibrate::threshold(clock).map_err(failed("calibrating"))?;
    let cost = calibrate::harness_cost::<T, C>(clock, threshold).map_err(failed("calibrating"))?;
    recorder.observe(Observation::Environment(environment::clock(clock, cost)))?;

    let plan = Plan::new(stream.len());
    let mut looker = Looker::new(backing).map_err(failed("opening /proc/self/pagemap"))?;
    let mut harness = Harness {
        clock,
        plan: &plan,
        swap: SwapTraffic::open(place.memory_stat.as_deref()),
        stall: Stall::open(place.memory_pressure.as_deref()),
        resident: ResidentSet::open(),
        others: None,
        counters: Counters::open(place.memory_stat.as_deref()),
        seen: Seen {
            tally: Tally::new(threshold),
            windows: Vec::with_capacity(plan.windows()),
            looks: vec![Look::new(pages); plan.looks()],
            swap_before: None,
            swap_whole_machine: false,
            stalled: None,
            stall_whole_machine: false,
            counters: Vec::new(),
        },
    };
    if let Err(error) = mlockall(MlockAllFlags::CURRENT) {
        note(
            recorder,
            Level::Info,
            format!(
                "the harness's own memory could not be locked ({error}) and may itself be paged; run as root or raise the limit of locked memory (ulimit -l)"
            ),
        )?;
    }

    harness.others = harness.resident.as_mut().and_then(ResidentSet::read);
    let region = match &file {
        None => Region::anonymous(pages),
        Some(file) => Region::file(file, pages),
    };
    let region = region.map_err(failed(&format!("mapping {pages} pages")))?;
    if backing == Backing::Anonymous {
        let huge = match setting.thp {
            None | Some(Thp::Never) => HugePages::Forbidden,
            Some(Thp::Madvise) => HugePages::Wanted,
            Some(Thp::Always) => HugePages::System,
        };
        if let (Err(error), HugePages::Wanted) = (region.advise(huge), huge) {
            note(recorder, Level::Warning, format!("huge pages could not be asked for: {error}"))?;
        }
        region.populate(|done, of| recorder.progress("populate", done, of));
    }
    timing::bare::<T>(&region, &warming);
    let mut steal = environment::Steal::start();
    harness.run::<T>(&region, &stream, &mut looker, recorder)?;
    let stolen = steal.as_mut().and_then(environment::Steal::share).map(|share| format!("{share:.4}"));
    let Harness { seen, .. } = harness;
    drop(region);
    recorder.observe(Observation::Environment(environment::entries([("steal.share", stolen)])))?;
    seen::report(&seen, &plan, &stream, recorder)
}

/// What is at hand during a run.
struct Harness<'a, C> {
    clock: &'a C,
    plan: &'a Plan,
    swap: Option<SwapTraffic>,
    stall: Option<Stall>,
    resident: Option<ResidentSet>,
    /// Pages that this process had mapped before the region; they are locked, so they stay.
    others: Option<u64>,
    counters: Counters,
    seen: Seen,
}

impl<C: Clock> Harness<'_, C> {
    fn run<T: Touch>(
        &mut self,
        region: &Region,
        stream: &Stream,
        looker: &mut Looker,
        recorder: &mut dyn Recorder,
    ) -> Result<(), TargetError> {
        let Self { clock, plan, swap, stall, resident, others, counters, seen } = self;
        let mut looks = 0;
        let mut look = |window: usize, seen: &mut Seen| -> Result<(), TargetError> {
            if plan.look_after(window) {
                looker.look(region, &mut seen.looks[looks]).map_err(failed("reading the page map"))?;
                looks += 1;
            }
            Ok(())
        };
        look(0, seen)?;
        counters.before();
        seen.swap_before = swap.as_mut().and_then(SwapTraffic::read);
        let stall_before = stall.as_mut().and_then(Stall::read);
        for window in 1..=plan.windows() {
            let part = &stream.references()[plan.start(window)..plan.end(window)];
            let timed = timing::references::<T, C>(clock, region, part, &mut seen.tally);
            let present = resident.as_mut().and_then(ResidentSet::read);
            seen.windows.push(Window {
                timed,
                swap: swap.as_mut().and_then(SwapTraffic::read),
                present: present.zip(*others).map(|(all, others)| all.saturating_sub(others)),
            });
            look(window, seen)?;
            recorder.progress("references", plan.end(window) as u64, stream.len() as u64);
            if recorder.interrupted() {
                return Err(TargetError::Interrupted);
            }
        }
        seen.stalled =
            stall.as_mut().and_then(Stall::read).zip(stall_before).map(|(a, b)| a.saturating_sub(b));
        seen.counters = counters.after();
        seen.swap_whole_machine = swap.as_ref().is_some_and(|s| s.whole_machine);
        seen.stall_whole_machine = stall.as_ref().is_some_and(|s| s.whole_machine);
        Ok(())
    }
}

fn failed(doing: &str) -> impl FnOnce(io::Error) -> TargetError {
    let doing = doing.to_owned();
    move |error| TargetError::Failed(format!("{doing}: {error}"))
}

fn note(recorder: &mut dyn Recorder, level: Level, text: String) -> Result<(), TargetError> {
    Ok(recorder.observe(Observation::Note(Note { level, text }))?)
}
