//! Replays on every core: the models have no threads of their own, so their work is handed out here.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use anyhow::Result;
use pagelab_model::mrc::miniature::Miniature;
use pagelab_model::paging::OutOfMemory;
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::{A_PAGE, FUTURE, Replayed, Replays};
use pagelab_model::systems::{Replay, SystemKind};

use crate::cost::Cost;
use crate::{Stopped, Watch};

/// Performs the jobs `0..count` on every core; results in their order. A job that fails ends the others.
pub(crate) fn spread<T: Send>(count: usize, job: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    spread_on(cores(), count, job)
}

/// The same of jobs that do not fail.
pub fn each<T: Send>(count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let Ok(list) = spread_on(cores(), count, |number| Ok::<_, Infallible>(job(number)));
    list
}

/// As [`spread`] on so many threads.
fn spread_on<T: Send, E: Send>(
    threads: usize,
    count: usize,
    job: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<Option<Result<T, E>>>> = Mutex::new((0..count).map(|_| None).collect());
    let work = || {
        while !failed.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                return;
            }
            let result = job(number);
            failed.fetch_or(result.is_err(), Relaxed);
            results.lock().expect("no thread panics while it holds the lock")[number] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            // With fewer threads it takes longer.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    // Jobs that were not begun come after the one that failed.
    results.into_inner().expect("no thread panics while it holds the lock").into_iter().flatten().collect()
}

/// What replaying these policies and systems takes beside the stream: the tables of so many at once, and the future
/// where one needs it.
pub fn cost(policies: &[PolicyKind], at_once: usize) -> Cost {
    let future = policies.iter().any(PolicyKind::needs_future);
    Cost { page: A_PAGE * at_once as u64, reference: if future { FUTURE } else { 0 } }
}

/// The cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Performs replays on so many threads; results in the order of their runs.
///
/// # Errors
/// When `watch` stops it.
pub fn perform(replays: &Replays, threads: usize, watch: &dyn Watch) -> Result<Vec<Replayed>> {
    let total = replays.references() as f64;
    let batches = replays.batches(threads);
    let done = AtomicU64::new(0);
    let replayed = spread_on(threads, batches.len(), |number| {
        let progress = &mut |more| {
            watch.at((done.fetch_add(more, Relaxed) + more) as f64 / total);
            if watch.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        replays.perform(batches[number].clone(), progress).map_err(|_| anyhow::Error::from(Stopped))
    })?;
    Ok(replayed.into_iter().flatten().collect())
}

/// Miniature simulations, each of a policy with its frames; results in the order of `runs`.
pub fn miniatures(
    sample: &Miniature,
    runs: &[(&PolicyKind, u32)],
    watch: &dyn Watch,
) -> Result<Vec<Option<(f64, f64)>>> {
    let future = runs.iter().any(|(policy, _)| policy.needs_future()).then(|| sample.future());
    let done = AtomicU64::new(0);
    spread(runs.len(), |number| {
        watch.go_on()?;
        let (policy, frames) = runs[number];
        let found = sample.miss_ratio(policy, frames, future.as_ref());
        watch.at((done.fetch_add(1, Relaxed) + 1) as f64 / runs.len() as f64);
        Ok(found)
    })
}

/// Replays systems, each with its frames; results in the order of `runs`. A system may need more
/// frames than it has.
pub(crate) fn systems(
    pages: u32,
    references: &[u32],
    runs: &[(&'static SystemKind, u32)],
    watch: &dyn Watch,
) -> Result<Vec<Result<Replay, OutOfMemory>>> {
    let done = AtomicU64::new(0);
    spread(runs.len(), |number| {
        watch.go_on()?;
        let (system, frames) = runs[number];
        let replay = system.replay(pages, references, frames);
        watch.at((done.fetch_add(1, Relaxed) + 1) as f64 / runs.len() as f64);
        Ok(replay)
    })
}
