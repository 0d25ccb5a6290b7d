//! A crew of workers that begin and end together.

use std::fs::File;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use pagelab_experiment::experiments::{Beside, Faultscale, Work, Workers};
use pagelab_experiment::{Failure, FailureKind, Recorder, Result};
use pagelab_kernel::mappings;
use pagelab_kernel::rusage::{self, Usage};

use super::beside::Other;
use super::work::Worker;
use super::{OPERATION, Point};
use crate::harness::bare;
use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::family::{Barrier, Family};
use crate::harness::samples::Samples;

/// Cells: workers ready, whether to go, whether to stop, workers that were refused, mappings; then
/// for each worker the operations and when it ended, and for each process its consumption.
const READY: usize = 0;
const GO: usize = 1;
const STOP: usize = 2;
const REFUSED: usize = 3;
/// Mappings of pagelab's own in the first process.
const MAPPINGS: usize = 4;
/// Calls of the thread beside them.
const CALLS: usize = 5;
/// How often the workers slept in their operations.
const WAITS: usize = 6;
const COMMON: usize = 8;
const EACH: usize = 8;

/// Times of a worker that are kept.
const TIMES: usize = 1 << 14;
/// Between two samples.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Makes a crew, and the thread beside it where `beside` says so, lets it work for `time`, and
/// calls `look` many times a second.
pub(super) fn crew(
    faultscale: &Faultscale,
    (workers, beside): (u32, bool),
    file: Option<&File>,
    time: Duration,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
    mut look: impl FnMut(),
) -> Result<Point> {
    let count = workers as usize;
    let barrier = Barrier::new(COMMON + 2 * EACH * count).map_err(failed("making shared memory"))?;
    let samples = Samples::new(count, TIMES).map_err(failed("making shared memory"))?;
    let mut family = Family::default();
    let (processes, threads) = match faultscale.as_ {
        Workers::Threads => (1, count),
        Workers::Processes => (count, 1),
    };
    for process in 0..processes {
        let work = || host(faultscale, beside, file, (&barrier, &samples), process, threads, count);
        family.fork(work).map_err(failed(&format!("forking process {} of {processes}", process + 1)))?;
    }
    let refused = || {
        Failure::new(
            FailureKind::System { errno: None },
            format!("the kernel refused the memory or threads of {workers} workers"),
        )
    };
    let all = count as u64 + u64::from(beside);
    let wait = |family: &mut Family, look: &mut dyn FnMut(), done: &dyn Fn() -> bool| {
        while !done() {
            std::thread::sleep(POLL_INTERVAL);
            look();
            if barrier[REFUSED].load(Relaxed) > 0 {
                return Err(refused());
            }
            family.poll().map_err(|lost| lost.error(context))?;
            recorder.check()?;
        }
        Ok(())
    };
    wait(&mut family, &mut look, &|| barrier[READY].load(Acquire) == all)?;
    let (start, deadline) = (Monotonic.now(), Instant::now() + time);
    barrier[GO].store(1, Release);
    wait(&mut family, &mut look, &|| Instant::now() >= deadline)?;
    barrier[STOP].store(1, Release);
    while family.poll().map_err(|lost| lost.error(context))? > 0 {
        std::thread::sleep(POLL_INTERVAL);
        look();
        if barrier[REFUSED].load(Relaxed) > 0 {
            return Err(refused());
        }
    }
    let cell = |index: usize, n: usize| barrier[COMMON + index * EACH + n].load(Relaxed);
    let operations = (0..count).map(|worker| cell(worker, 0)).sum::<u64>() as f64;
    let ended = (0..count).map(|worker| cell(worker, 1)).max().unwrap_or(start);
    let mut used = Usage::default();
    for process in count..count + processes {
        used += Usage::of_told(|n| cell(process, n));
    }
    let elapsed = Duration::from_nanos(ended.saturating_sub(start).max(1));
    let mappings = Some(barrier[MAPPINGS].load(Relaxed)).filter(|&count| count > 0);
    let calls = barrier[CALLS].load(Relaxed) as f64 / elapsed.as_secs_f64();
    Ok(Point {
        workers,
        calls,
        waits: barrier[WAITS].load(Relaxed) as f64,
        operations,
        elapsed,
        used,
        times: Some(samples.all().histogram(OPERATION)),
        mappings,
    })
}

/// One process with its threads; the exit status.
fn host(
    faultscale: &Faultscale,
    beside: bool,
    file: Option<&File>,
    (barrier, samples): (&[AtomicU64], &Samples),
    process: usize,
    threads: usize,
    count: usize,
) -> i32 {
    let refused = || {
        barrier[REFUSED].fetch_add(1, AcqRel);
        false
    };
    if process == 0 {
        barrier[MAPPINGS].store(mappings::own().unwrap_or(0), Relaxed);
    }
    let ready = || {
        barrier[READY].fetch_add(1, AcqRel);
        while barrier[GO].load(Acquire) == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    };
    let stop = || barrier[STOP].load(Relaxed) != 0;
    let work = |index: usize| -> bool {
        let Some(worker) = Worker::new(faultscale.work, faultscale.pages.max(1) as usize, file) else {
            return refused();
        };
        let mut times = samples.of(index);
        ready();
        let mut operations = 0;
        let mut waits = (faultscale.beside != Beside::None).then_some(0);
        for number in 0.. {
            if stop() {
                break;
            }
            match worker.turn(number, &mut times, &mut waits, stop) {
                Some(made) => operations += made,
                None => return refused(),
            }
        }
        barrier[WAITS].fetch_add(waits.unwrap_or(0), Relaxed);
        barrier[COMMON + index * EACH].store(operations, Relaxed);
        barrier[COMMON + index * EACH + 1].store(Monotonic.now(), Relaxed);
        true
    };
    let other = || -> bool {
        let Ok(Some(mut other)) = Other::new(faultscale) else { return refused() };
        ready();
        let mut calls = 0;
        while !stop() {
            match other.turn() {
                Ok(made) => calls += made,
                Err(_) => return refused(),
            }
        }
        barrier[CALLS].store(calls, Relaxed);
        true
    };
    if faultscale.work == Work::Fork && bare::keep_all_from_children().is_err() {
        refused();
        return 2;
    }
    // The threads' stacks and the preparation are not counted: their faults are few beside the work's.
    let before = (rusage::process(), rusage::children());
    let well = if threads == 1 && !beside {
        work(process)
    } else {
        std::thread::scope(|scope| {
            let (work, other) = (&work, &other);
            let of = |index: usize| move || if index < threads { work(index) } else { other() };
            let all: Vec<_> = (0..threads + usize::from(beside))
                .map(|index| {
                    let thread = std::thread::Builder::new().spawn_scoped(scope, of(index));
                    if thread.is_err() {
                        refused();
                    }
                    thread
                })
                .collect();
            all.into_iter().all(|thread| thread.is_ok_and(|thread| thread.join().unwrap_or(false)))
        })
    };
    if !well {
        return 2;
    }
    let mut used = rusage::process() - before.0;
    used += rusage::children() - before.1;
    for (n, value) in used.told().into_iter().enumerate() {
        barrier[COMMON + (count + process) * EACH + n].store(value, Relaxed);
    }
    0
}
