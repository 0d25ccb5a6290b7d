//! `forkstorm` on the running kernel: fork, exec and exit as fast as they go (Morton 2002).
//!
//! C copies run at once. A copy of the built-in storm has `pages` pages of its own, all written; it
//! forks, the child writes `touch` of them (each write copies a page) and exits, or executes this
//! program again with an argument on which it exits at once; the copy waits for it and forks the next.
//! With `--script FILE` a copy is a shell that runs the published script over the file instead: each
//! iteration has five forks and three execs.
//!
//! The storm is made up to three times, so that no figure disturbs another: timed; counted (the
//! kernel's tracepoints, and where wanted its functions, inherited by every child, which slows forks); profiled (the software clock on
//! every processor). The last two are of a fifth of the forks.

mod storm;

use std::time::Duration;

use pagelab_experiment::build::metric;
use pagelab_experiment::catalogue::name;
use pagelab_experiment::experiments::{Child, Forkstorm};
use pagelab_experiment::{Failure, Recorder, Setting};

use self::storm::{Seen, storm};
use crate::harness::Harness;
use crate::microstates::Whose;
use crate::place::Place;
use crate::{operations, profile};

/// The argument on which a program that performs experiments exits at once, well.
pub const NOTHING: &str = "__nothing";

/// Samples a second of the profile, where nothing else is asked for.
const PROFILE: u32 = 997;

/// Performs the storm; see the module's comment.
///
/// # Errors
/// When the kernel refuses processes, or the script cannot be run.
pub fn perform(
    forkstorm: &Forkstorm,
    setting: &Setting,
    place: &Place,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let mut harness = Harness::open(place, recorder)?;
    place.join()?;
    harness.watch_tasks();
    harness.begin();
    let timed = storm(forkstorm, forkstorm.forks, place, "storm", recorder, |_| harness.poll())?;
    let mut measured = harness.finish();
    measured.record(recorder)?;
    report(forkstorm, &timed, measured.processor_time(), recorder)?;
    measured.states(Whose::Descendants, None, recorder)?;
    let fewer = (forkstorm.forks / 5).max(1);
    operations::count(setting.functions, recorder, |recorder| {
        storm(forkstorm, fewer, place, "count", recorder, |_| {}).map(drop)
    })?;
    match setting.profile.unwrap_or(PROFILE) {
        0 => Ok(()),
        frequency => profile::take(frequency, recorder, |sampling, recorder| {
            let forks = fewer.max(forkstorm.forks.min(1000));
            storm(forkstorm, forks, place, "profile", recorder, |_| sampling.poll()).map(drop)
        }),
    }
}

fn report(
    forkstorm: &Forkstorm,
    seen: &Seen,
    processor: Option<(f64, f64)>,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let elapsed = seen.elapsed.as_nanos() as f64;
    let (user, system) = processor.unwrap_or((seen.used.user as f64, seen.used.system as f64));
    let per = |sum: Option<f64>| sum.filter(|_| seen.forks > 0.0).map(|sum| sum / seen.forks);
    let exec = forkstorm.script.is_none() && forkstorm.child == Child::Exec;
    for (name, value) in [
        (name::TIME_ELAPSED, Some(elapsed)),
        (name::TIME_USER, Some(user)),
        (name::TIME_SYSTEM, Some(system)),
        (name::FAULTS_MINOR, Some(seen.used.minor as f64)),
        (name::FAULTS_MAJOR, Some(seen.used.major as f64)),
        (name::SWITCHES_VOLUNTARY, Some(seen.used.voluntary as f64)),
        (name::SWITCHES_INVOLUNTARY, Some(seen.used.involuntary as f64)),
        (name::FORKS_RATE, Some(seen.forks / elapsed * 1e9)),
        (name::FORK_COST, seen.fork_time.and_then(|t| per(Some(t)))),
        (name::EXEC_COST, seen.end_time.filter(|_| exec).and_then(|t| per(Some(t)))),
        (name::EXIT_COST, seen.end_time.filter(|_| !exec).and_then(|t| per(Some(t)))),
        (name::FORK_SYSTEM, per(Some(system))),
        (name::PAGE_TABLES_PEAK, seen.page_tables),
    ] {
        metric(recorder, name, value)?;
    }
    Ok(())
}

/// Between two looks at a running storm.
const LOOK: Duration = Duration::from_millis(2);
