//! `forkstorm` on the running kernel: fork, exec and exit as fast as they go (Morton 2002).
//!
//! C copies run at once. A copy of the built-in storm has `pages` pages of its own, all written; it
//! forks, the child writes `touch` of them (each write copies a page) and exits, or executes this
//! program again with an argument on which it exits at once; the copy waits for it and forks the next.
//! With `--script FILE` a copy is a shell that runs the published script over the file instead: each
//! iteration has five forks and three execs.
//!
//! The storm is made up to three times, so that no figure disturbs another: timed; counted (the
//! kernel's tracepoints, inherited by every child, which slows forks); profiled (the software clock on
//! every processor). The last two are of a fifth of the forks.

mod count;
mod storm;

use std::time::Duration;

use pagelab_experiment::experiments::{Child, Forkstorm};
use pagelab_experiment::observation::{Level, Unit};
use pagelab_experiment::{Observation, Recorder, TargetError};

use self::storm::{Seen, storm};
use crate::environment::{self, Steal};
use crate::kernel::Counters;
use crate::microstates::{Microstates, Whose};
use crate::observe::{Sheet, metric, note};
use crate::perf::symbols::Symbols;
use crate::perf::{self, Counting, Profile, Sampling};
use crate::perform::Place;

/// The argument on which a program that performs experiments exits at once, well.
pub const NOTHING: &str = "__nothing";

/// Functions of the profile's table.
const FUNCTIONS: usize = 60;
/// Folded stacks are cut at this many bytes.
const STACKS: usize = 4 << 20;

/// The tracepoints that are counted.
const TRACEPOINTS: &[&str] = &[
    "exceptions:page_fault_user",
    "exceptions:page_fault_kernel",
    "kmem:mm_page_alloc",
    "kmem:mm_page_free",
    "kmem:mm_page_free_batched",
    "kmem:rss_stat",
    "tlb:tlb_flush",
    "sched:sched_process_fork",
    "sched:sched_process_exec",
    "sched:sched_process_exit",
];

/// Performs the storm; see the module's comment.
///
/// # Errors
/// When the kernel refuses processes, or the script cannot be run.
pub fn perform(forkstorm: &Forkstorm, place: &Place, recorder: &mut dyn Recorder) -> Result<(), TargetError> {
    let mut facts = environment::machine();
    facts.extend(place.environment.clone());
    recorder.observe(Observation::Environment(facts))?;
    place.join()?;
    let mut counters = Counters::open(place.memory_stat.as_deref());
    let mut steal = Steal::start();
    let mut states = Microstates::start();
    counters.before();
    let timed = storm(forkstorm, forkstorm.forks, place, "storm", recorder, |_| states.poll())?;
    let counted = counters.after();
    let stolen = steal.as_mut().and_then(Steal::share).map(|s| format!("{s:.4}"));
    recorder.observe(Observation::Environment(environment::entries([("steal.share", stolen)])))?;
    recorder.observe(Observation::Counters(counted))?;
    report(forkstorm, &timed, states.processor_time(), recorder)?;
    states.report(Whose::Descendants, None, recorder)?;
    let fewer = (forkstorm.forks / 5).max(1);
    let counting = Counting::start(TRACEPOINTS);
    if counting.works() {
        let seen = storm(forkstorm, fewer, place, "count", recorder, |_| {})?;
        count::report(&counting.finish(), &seen, recorder)?;
    } else {
        note(recorder, Level::Info, format!("operations were not counted: {}", perf::REMEDY))?;
    }
    if forkstorm.profile > 0 {
        match Sampling::clock(forkstorm.profile) {
            Ok(mut sampling) => {
                storm(forkstorm, fewer.max(forkstorm.forks.min(1000)), place, "profile", recorder, |_| {
                    sampling.poll()
                })?;
                profile(&sampling.finish(&[]), recorder)?;
            }
            Err(error) => note(recorder, Level::Info, format!("no profile ({error}): {}", perf::REMEDY))?,
        }
    }
    Ok(())
}

fn report(
    forkstorm: &Forkstorm,
    seen: &Seen,
    processor: Option<(f64, f64)>,
    recorder: &mut dyn Recorder,
) -> Result<(), TargetError> {
    let elapsed = seen.elapsed.as_nanos() as f64;
    let (user, system) = processor.unwrap_or((seen.used.user as f64, seen.used.system as f64));
    let per = |sum: Option<f64>| sum.filter(|_| seen.forks > 0.0).map(|sum| sum / seen.forks);
    let exec = forkstorm.script.is_none() && forkstorm.child == Child::Exec;
    for (name, value) in [
        ("time.elapsed", Some(elapsed)),
        ("time.user", Some(user)),
        ("time.system", Some(system)),
        ("faults.minor", Some(seen.used.minor as f64)),
        ("faults.major", Some(seen.used.major as f64)),
        ("switches.voluntary", Some(seen.used.voluntary as f64)),
        ("switches.involuntary", Some(seen.used.involuntary as f64)),
        ("forks.rate", Some(seen.forks / elapsed * 1e9)),
        ("fork.cost", seen.fork_time.and_then(|t| per(Some(t)))),
        ("exec.cost", seen.end_time.filter(|_| exec).and_then(|t| per(Some(t)))),
        ("exit.cost", seen.end_time.filter(|_| !exec).and_then(|t| per(Some(t)))),
        ("fork.system", per(Some(system))),
        ("page-tables.peak", seen.page_tables),
    ] {
        metric(recorder, name, value)?;
    }
    Ok(())
}

/// The table `profile` (functions by samples, as Morton's) and the log `folded` (stacks, outermost
/// first, as flame graphs are drawn from).
fn profile(profile: &Profile, recorder: &mut dyn Recorder) -> Result<(), TargetError> {
    let Some(symbols) = Symbols::read() else {
        return note(
            recorder,
            Level::Info,
            "no profile: the kernel hides its symbols (--set /proc/sys/kernel/kptr_restrict=0 shows them to root)",
        );
    };
    let (functions, stacks) = count::fold(profile, &symbols);
    let kernel: u64 = functions.iter().map(|(_, own, _)| own).sum();
    let mut sheet = Sheet::new(
        "profile",
        &[("samples", Unit::Count), ("share", Unit::Share), ("samples.with-callees", Unit::Count)],
    )
    .with_texts("function");
    for (name, own, with) in functions.iter().take(FUNCTIONS) {
        sheet.named(name, [Some(*own as f64), Some(*own as f64 / kernel as f64), Some(*with as f64)]);
    }
    sheet.record(recorder)?;
    let all = profile.samples.len() as f64;
    metric(recorder, "profile.samples", Some(all))?;
    metric(recorder, "profile.kernel", (all > 0.0).then(|| kernel as f64 / all))?;
    let mut folded = String::new();
    for (stack, samples) in &stacks {
        if folded.len() + stack.len() > STACKS {
            break;
        }
        folded += &format!("{stack} {samples}\n");
    }
    recorder.observe(Observation::Log("folded".into(), folded))?;
    if profile.lost > 0 {
        note(recorder, Level::Info, format!("{} records of the profile were lost", profile.lost))?;
    }
    Ok(())
}

/// Between two looks at a running storm.
const LOOK: Duration = Duration::from_millis(2);
