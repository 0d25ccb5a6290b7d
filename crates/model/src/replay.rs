//! The same stream on many policies and sizes, on every core, with progress and interruption.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::policy::opt::NextUse;
use crate::policy::{Policy, PolicyKind};
use pagelab_reference::Stream;

/// References a policy is fed at once: enough that its table is in the cache for most of them when
/// several policies take turns in one pass, few enough that progress is told every few milliseconds.
const CHUNK: usize = 1 << 19;

/// Bytes of tables that may be alive at once; beyond that the stream is passed over again.
const BUDGET: u64 = 512 << 20;

/// What a policy made of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// The policy with its parameters.
    pub policy: PolicyKind,
    /// Frames it had.
    pub frames: u32,
    /// References in the stream.
    pub references: u64,
    /// References to a page that was not resident, the first ones included.
    pub misses: u64,
    /// For policies of variable space: mean number of resident pages over the references.
    pub mean_resident: Option<f64>,
}

impl Replayed {
    /// Misses a reference; `None` for an empty stream.
    pub fn miss_ratio(&self) -> Option<f64> {
        (self.references > 0).then(|| self.misses as f64 / self.references as f64)
    }
}

/// The progress callback asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the replay was interrupted")]
pub struct Interrupted;

/// Told after every half million references of a run: references replayed so far and in all, over all
/// runs. It is called from several threads; `Break` ends the replay.
pub type Progress<'a> = dyn Fn(u64, u64) -> ControlFlow<()> + Sync + 'a;

/// Replays one policy with `frames` (at least 1) frames.
///
/// # Panics
/// For `opt`, when the stream has 2^32 − 1 references or more; for `ws`, when it has more than that.
pub fn replay(stream: &Stream, policy: &PolicyKind, frames: u32) -> Replayed {
    let runs = [(policy.clone(), frames)];
    let mut replayed = replay_all(stream, &runs, 1, &|_, _| ControlFlow::Continue(()))
        .expect("the callback never interrupts");
    replayed.remove(0)
}

/// Replays every (policy, frames) pair on `threads` threads; results in the order of `runs`.
///
/// The runs of a thread share one pass over the stream. Tables take up to 16 bytes a page and run;
/// when all runs together would need more than half a GiB they are done in several passes. `opt`
/// needs 4 bytes a reference more, once.
///
/// # Errors
/// When `progress` asks to stop.
///
/// # Panics
/// As [`replay`].
pub fn replay_all(
    stream: &Stream,
    runs: &[(PolicyKind, u32)],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<Replayed>, Interrupted> {
    let future = runs
        .iter()
        .any(|(kind, _)| kind.needs_future())
        .then(|| NextUse::of(stream.pages(), stream.references()));
    let threads = threads.clamp(1, runs.len().max(1));
    let alive = usize::try_from(BUDGET / (16 * u64::from(stream.pages()) + 1)).unwrap_or(usize::MAX);
    // As few passes as the budget allows, and no thread with less to do than another by more than a run.
    let batch = (alive / threads).clamp(1, runs.len().div_ceil(threads).max(1));
    let total = runs.len() as u64 * stream.len() as u64;
    let (taken, done, stop) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let results = Mutex::new(vec![None; runs.len()]);
    let work = || {
        loop {
            let first = taken.fetch_add(batch, Relaxed);
            let Some(mine) = runs.get(first..runs.len().min(first.saturating_add(batch))) else { return };
            if mine.is_empty() {
                return;
            }
            let replayed = pass(stream, mine, future.as_ref(), &|n| {
                let sum = done.fetch_add(n, Relaxed) + n;
                if progress(sum, total).is_break() {
                    stop.store(true, Relaxed);
                }
                stop.load(Relaxed)
            });
            let Some(replayed) = replayed else { return };
            let mut results = results.lock().expect("no thread panics while it holds the lock");
            for (place, one) in results[first..].iter_mut().zip(replayed) {
                *place = Some(one);
            }
        }
    };
    if threads == 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let results = results.into_inner().expect("no thread panics while it holds the lock");
    results.into_iter().collect::<Option<Vec<_>>>().ok_or(Interrupted)
}

/// One pass over the stream for these runs; `None` when `stopped` says so. It is told the references
/// replayed since it was called last.
fn pass(
    stream: &Stream,
    runs: &[(PolicyKind, u32)],
    future: Option<&NextUse>,
    stopped: &dyn Fn(u64) -> bool,
) -> Option<Vec<Replayed>> {
    let mut policies: Vec<(Box<dyn Policy + '_>, u64)> =
        runs.iter().map(|(kind, frames)| (kind.build(stream.pages(), *frames, future), 0)).collect();
    for chunk in stream.references().chunks(CHUNK) {
        for (policy, misses) in &mut policies {
            *misses += policy.misses(chunk);
            if stopped(chunk.len() as u64) {
                return None;
            }
        }
    }
    let replayed = runs.iter().zip(policies).map(|((kind, frames), (policy, misses))| Replayed {
        policy: kind.clone(),
        frames: *frames,
        references: stream.len() as u64,
        misses,
        mean_resident: policy.mean_resident(),
    });
    Some(replayed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{lru_misses, opt_misses};
    use pagelab_reference::Pattern;

    fn stream() -> Stream {
        Pattern::Zipf(0.8).stream(5000, 700_000, 3).unwrap()
    }

    #[test]
    fn many_runs_on_many_threads_give_what_each_gives_alone() {
        let stream = stream();
        let runs: Vec<_> = ["lru", "opt", "sieve", "ws:1000", "2q"]
            .iter()
            .flat_map(|name| [10, 500, 5000].map(|frames| (name.parse().unwrap(), frames)))
            .collect();
        let all = replay_all(&stream, &runs, 3, &|_, _| ControlFlow::Continue(())).unwrap();
        for ((kind, frames), one) in runs.iter().zip(&all) {
            assert_eq!(*one, replay(&stream, kind, *frames));
            assert_eq!((&one.policy, one.frames, one.references), (kind, *frames, 700_000));
        }
        assert_eq!(all[1].misses, lru_misses(&stream, 500));
        assert_eq!(all[4].misses, opt_misses(&stream, 500));
        assert!(all[9].mean_resident.is_some_and(|mean| mean > 100.0 && mean < 1000.0));
    }

    #[test]
    fn progress_is_complete_and_can_stop() {
        let stream = stream();
        let runs = vec![(PolicyKind::Fifo, 100); 4];
        let most = AtomicU64::new(0);
        replay_all(&stream, &runs, 2, &|done, total| {
            assert_eq!(total, 2_800_000);
            most.fetch_max(done, Relaxed);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(most.into_inner(), 2_800_000);
        assert_eq!(replay_all(&stream, &runs, 2, &|_, _| ControlFlow::Break(())), Err(Interrupted));
    }

    #[test]
    fn no_runs_and_no_references_are_no_special_case() {
        let quiet = |_, _| ControlFlow::Continue(());
        assert_eq!(replay_all(&stream(), &[], 2, &quiet), Ok(Vec::new()));
        let empty = Stream::new(1, Vec::new());
        for (name, _) in PolicyKind::catalogue() {
            let one = replay(&empty, &name.replace("TAU", "5").parse().unwrap(), 1);
            assert_eq!((one.misses, one.miss_ratio(), one.mean_resident), (0, None, None));
        }
    }
}
