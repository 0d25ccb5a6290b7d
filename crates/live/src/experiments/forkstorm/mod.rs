//! `forkstorm` on the running kernel: fork, exec and exit as fast as they go (Morton 2002).
//!
//! C copies run at once. A copy of the built-in storm has `pages` pages of its own, all written; it
//! forks, the child writes `touch` of them (each write copies a page) and exits, or executes this
//! program again with an argument on which it exits at once; the copy waits for it and forks the next.
//! With `--script FILE` a copy is a shell that runs the published script over the file instead: each
//! iteration has five forks and three execs.
//!
//! The copies leave all that is pagelab's own behind (module `alone`): `fork.residual` is what is
//! left.
//!
//! The storm is made up to four times, so that no figure disturbs another: timed; watched (the
//! kernel reports each task that ends, for the microstates); counted (the kernel's tracepoints, and
//! where wanted its functions, inherited by every child, which slows forks); profiled (the software
//! clock on every processor). All but the first are of a fifth of the forks.

pub mod copy;
mod storm;

use pagelab_experiment::build::metrics;
use pagelab_experiment::experiments::{Child, Forkstorm};
use pagelab_experiment::{MetricId, Observation, Recorder, Result, Setting, metrics};

use self::storm::{StormResult, storm};
use crate::harness::context::ExecutionContext;
use crate::harness::measurement::Harness;
use crate::harness::microstates::{Microstates, Whose};
use crate::harness::{operations, processor, profile};

/// Samples a second of the profile, where nothing else is asked for.
const PROFILE: u32 = 997;

/// Performs the storm; see the module's comment.
///
/// # Errors
/// When the kernel refuses processes, or the script cannot be run.
pub fn perform(
    forkstorm: &Forkstorm,
    setting: &Setting,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    context.join()?;
    harness.begin();
    let timed = storm(forkstorm, forkstorm.forks, context, "storm", recorder, |_| {})?;
    let measured = harness.finish();
    measured.record(recorder)?;
    let fewer = (forkstorm.forks / 5).max(1);
    // The kernel's report of each task that ends is work in its exit, so it is asked for beside the
    // timing.
    let mut states = Microstates::start();
    if states.listens() {
        storm(forkstorm, fewer, context, "states", recorder, |_| states.poll())?;
    }
    report(forkstorm, &timed, states.user_share(), recorder)?;
    states.report(Whose::Descendants, None, recorder)?;
    operations::count(setting.functions, recorder, |recorder| {
        storm(forkstorm, fewer, context, "count", recorder, |_| {}).map(drop)
    })?;
    match setting.profile.unwrap_or(PROFILE) {
        0 => Ok(()),
        frequency => profile::take(frequency, setting.profile.is_some(), recorder, |sampling, recorder| {
            let forks = fewer.max(forkstorm.forks.min(1000));
            storm(forkstorm, forks, context, "profile", recorder, |_| sampling.poll()).map(drop)
        }),
    }
}

fn report(
    forkstorm: &Forkstorm,
    seen: &StormResult,
    user_share: Option<f64>,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let elapsed = seen.elapsed.as_nanos() as f64;
    // A child is too short for a tick.
    let [processor, user, system] = processor::figures_by(&seen.used, user_share);
    let per = |sum: Option<f64>| sum.filter(|_| seen.forks > 0.0).map(|sum| sum / seen.forks);
    let exec = forkstorm.script.is_none() && forkstorm.child == Child::Exec;
    let figures = [
        (metrics::TIME_ELAPSED, Some(elapsed)),
        processor,
        user,
        system,
        (metrics::FAULTS_MINOR, Some(seen.used.minor as f64)),
        (metrics::FAULTS_MAJOR, Some(seen.used.major as f64)),
        (metrics::SWITCHES_VOLUNTARY, Some(seen.used.voluntary as f64)),
        (metrics::SWITCHES_INVOLUNTARY, Some(seen.used.involuntary as f64)),
        (metrics::FORKS_RATE, Some(seen.forks / elapsed * 1e9)),
        (metrics::FORK_COST, seen.fork_time.and_then(|t| per(Some(t)))),
        (metrics::EXEC_COST, seen.end_time.filter(|_| exec).and_then(|t| per(Some(t)))),
        (metrics::EXIT_COST, seen.end_time.filter(|_| !exec).and_then(|t| per(Some(t)))),
        (metrics::FORK_SYSTEM, per(system.1)),
        (metrics::PAGE_TABLES_PEAK, seen.page_tables),
        (metrics::FORK_RESIDUAL, seen.residual),
    ];
    metrics(recorder, figures)?;
    let [forks, ends] = seen.times.as_ref().map_or([None, None], |[forks, ends]| {
        [Some(forks.histogram("fork")), Some(ends.histogram(if exec { "exec" } else { "exit" }))]
    });
    let end =
        if exec { [metrics::EXEC_P50, metrics::EXEC_P99] } else { [metrics::EXIT_P50, metrics::EXIT_P99] };
    for (histogram, [median, late]) in [(forks, [metrics::FORK_P50, metrics::FORK_P99]), (ends, end)] {
        let timed = |metric: MetricId| (metric, histogram.as_ref().and_then(|times| metric.of(times).1));
        metrics(recorder, [timed(median), timed(late)])?;
        if let Some(histogram) = histogram.filter(|times| times.count() > 0) {
            recorder.observe(Observation::Histogram(histogram))?;
        }
    }
    Ok(())
}
