//! `command` on the running kernel: one program of the user's, watched from outside.
//!
//! The worker joins the limit, starts the program, and looks at it every `sample` ms: the resident
//! memory and swap of it and its descendants from `/proc/PID/statm` and `status`, the memory charged
//! to the limit from the cgroup, and every tenth time the working set of all of them, by
//! clearing the accessed bits of its pages (which costs the program a little: see [`working_set`]).
//! Its input is empty and its output goes nowhere; what it writes to standard error is passed on.
//!
//! The samples are kept out of the program's way: this thread sleeps between them, does not preempt
//! the program when it wakes (SCHED_BATCH), and looks no more often than takes a fiftieth of a
//! processor, a two-hundredth for working sets. Its processor time is `polls.cpu`, in none of the
//! program's figures.
//!
//! [`working_set`]: pagelab_kernel::working_set

mod tree;

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use pagelab_experiment::build::{Sheet, metrics, warn};
use pagelab_experiment::experiments::Command;
use pagelab_experiment::{Failure, FailureKind, Recorder, Result, metrics, tables, warnings, words};
use pagelab_kernel::cgroup::Group;
use pagelab_kernel::rusage;
use pagelab_kernel::spawn::Program;

use self::tree::WorkingSets;
use crate::harness::context::ExecutionContext;
use crate::harness::descendants;
use crate::harness::failure::failed;
use crate::harness::marker;
use crate::harness::measurement::Harness;
use crate::harness::microstates::Whose;
use crate::harness::phase;

/// Looks between two at the working set.
const WORKING_SET_EVERY: u32 = 10;
/// Of so many nanoseconds one may go into samples, and into samples of the working set.
const POLL_COST_DIVISOR: u32 = 50;
const WORKING_SETS: u32 = 200;
/// Rows of the table, at most: then every second one is dropped and samples become half as frequent.
const ROWS: usize = 2000;

/// One sample.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    time: f64,
    memory: tree::Memory,
    charged: Option<f64>,
    working_set: Option<f64>,
}

/// Runs the program once.
///
/// # Errors
/// When it cannot be started, or the kernel kills it inside the limit.
pub fn perform(command: &Command, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let Some(name) = command.program.first() else {
        return Err(Failure::unsupported(
            "there is no program to run",
            "write it after --: pagelab run command -- sort big.txt",
        ));
    };
    let mut harness = Harness::open(context, recorder)?;
    context.join()?;
    harness.watch_tasks();
    harness.begin();
    let (used, own_peak) = (rusage::children(), rusage::process_peak());
    // Whatever the program leaves running.
    let _left = descendants::KillOnDrop;
    let mut program = Program::start(&words::unescaped_all(&command.program))
        .map_err(failed(&format!("starting {name}")))?;
    let watched = {
        let _background = Background::enter();
        watch(&mut program, command, context, &mut harness, recorder)?
    };
    let used = rusage::children() - used;
    let mut measured = harness.finish();
    measured.record(recorder)?;
    let peak = |of: fn(&Snapshot) -> Option<f64>| watched.samples.iter().filter_map(of).reduce(f64::max);
    let sampled = peak(|l| Some(l.memory.resident));
    // Of one process exactly: as it was when it ended, else, where it is above this process's own.
    let of_one = measured.peak().or_else(|| Some(rusage::children_peak()).filter(|&peak| peak > own_peak));
    let [processor, user, system] = measured.processor_of_children(&used);
    let figures = [
        (metrics::TIME_ELAPSED, Some(watched.elapsed.as_nanos() as f64)),
        processor,
        user,
        system,
        (metrics::FAULTS_MINOR, Some(used.minor as f64)),
        (metrics::FAULTS_MAJOR, Some(used.major as f64)),
        (metrics::IO_READ, Some(used.read as f64)),
        (metrics::SWITCHES_VOLUNTARY, Some(used.voluntary as f64)),
        (metrics::SWITCHES_INVOLUNTARY, Some(used.involuntary as f64)),
        (metrics::MEMORY_PEAK, of_one.map(|peak| peak as f64).into_iter().chain(sampled).reduce(f64::max)),
        (
            metrics::MEMORY_CHARGED_PEAK,
            context.group().and_then(charged_peak).or_else(|| peak(|l| l.charged)),
        ),
        (metrics::MEMORY_WORKING_SET_PEAK, peak(|l| l.working_set)),
        (metrics::POLLS_CPU, Some(watched.cost.as_nanos() as f64)),
        (metrics::COMMAND_STATUS, watched.status.and_then(|status| status.code()).map(f64::from)),
    ];
    let pressure = measured.pressure(measured.swap).into_iter().chain(measured.scans());
    metrics(recorder, figures.into_iter().chain(pressure))?;
    report(&watched.samples, recorder)?;
    measured.states(Whose::Descendants, None, recorder)?;
    measured.note_scope(recorder)?;
    if let (1, Some(device), Some(_)) = (context.traced, &context.tracing_disk, watched.status) {
        marked(command, context, recorder)?;
        marker::tell(device)?;
    }
    match watched.status {
        None => {
            let seconds = watched.elapsed.as_secs_f64();
            let kind = FailureKind::TimedOut { seconds: seconds.ceil() as u64 };
            Err(Failure::new(kind, format!("{name} was stopped after {seconds:.2} s (--timeout)")))
        }
        Some(status) if status.success() => Ok(()),
        Some(status) if command.allow_failure => {
            let text = format!("{name} {} {status}", warnings::ENDED_WITH.0);
            warn(recorder, warnings::ENDED_WITH, text)
        }
        Some(status) => Err(Failure::program(name, status)),
    }
}

/// Runs the program once more, alone, between the marks of a machine that counts.
fn marked(command: &Command, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let words = words::unescaped_all(&command.program);
    recorder.progress(marker::COUNTING, 0, 1);
    marker::settle();
    // At the same moment in all repetitions.
    phase::wait(context.repetition.map(|_| 0));
    let status =
        Program::run_marked(&words).map_err(failed(&format!("starting {} once more", command.program[0])))?;
    recorder.check()?;
    match status {
        status if status.success() || command.allow_failure => Ok(()),
        status => Err(Failure::program(&command.program[0], status)),
    }
}

/// As the kernel has noted it: exact, unlike the samples. A kernel that does not has none.
fn charged_peak(group: Group<'_>) -> Option<f64> {
    group.charged_peak().map(|bytes| bytes as f64)
}

/// This thread does not preempt others when it wakes; as it was when dropped.
struct Background(libc::c_int);

impl Background {
    fn enter() -> Self {
        // SAFETY: asks for the calling thread's policy.
        let before = unsafe { libc::sched_getscheduler(0) };
        Self::set(libc::SCHED_BATCH);
        Self(before)
    }

    /// A refusal leaves it as it is.
    fn set(policy: libc::c_int) {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the calling thread's own policy, from parameters that live as long as the call.
        unsafe { libc::sched_setscheduler(0, policy, &parameters) };
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        Self::set(self.0.max(0));
    }
}

struct Watched {
    samples: Vec<Snapshot>,
    elapsed: Duration,
    /// How it ended; `None`: it was stopped.
    status: Option<ExitStatus>,
    /// CPU time of the samples.
    cost: Duration,
}

fn watch(
    program: &mut Program,
    command: &Command,
    context: &ExecutionContext,
    harness: &mut Harness,
    recorder: &mut dyn Recorder,
) -> Result<Watched> {
    let pid = program.id();
    let mut working_sets = WorkingSets::default();
    let group = context.group();
    let kills = || group.map_or(0, Group::kills);
    let killed = kills();
    let begun = harness.begun();
    let cost = Cost::start();
    let mut samples = Vec::new();
    let mut step = Duration::from_millis(command.sample.max(1));
    let mut next = begun + step;
    let mut next_working_set = begun + step * WORKING_SET_EVERY;
    let timeout = command.timeout.map(Duration::from_secs_f64);
    loop {
        if let Some(status) = program.ended() {
            let elapsed = begun.elapsed();
            // Any process of the program's, not only the first.
            if let (true, Some(limit)) = (kills() > killed, context.limit()) {
                return Err(Failure::out_of_memory(limit));
            }
            return Ok(Watched { samples, elapsed, status: Some(status), cost: cost.so_far() });
        }
        if timeout.is_some_and(|timeout| begun.elapsed() >= timeout) {
            let elapsed = begun.elapsed();
            let killed = descendants::kill(std::process::id());
            program.wait();
            descendants::reap(&killed);
            harness.poll();
            return Ok(Watched { samples, elapsed, status: None, cost: cost.so_far() });
        }
        recorder.check()?;
        harness.poll();
        let now = Instant::now();
        if now >= next {
            let before = cost.so_far();
            let (memory, processes) = tree::memory(pid);
            let charged = group.and_then(Group::charged).map(|bytes| bytes as f64);
            let middle = cost.so_far();
            let working_set = (now >= next_working_set).then(|| working_sets.sample(&processes)).flatten();
            if now >= next_working_set {
                let pause = (step * WORKING_SET_EVERY).max((cost.so_far() - middle) * WORKING_SETS);
                next_working_set = now + pause;
            }
            samples.push(Snapshot { time: begun.elapsed().as_nanos() as f64, memory, charged, working_set });
            if samples.len() >= ROWS {
                let mut keep = false;
                samples.retain(|sample| {
                    keep = !keep;
                    keep || sample.working_set.is_some()
                });
                step *= 2;
            }
            next = now + step.max((middle - before) * POLL_COST_DIVISOR);
        }
        let left = timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(begun.elapsed()));
        program.sleep(left.min(next.saturating_duration_since(Instant::now())).min(INTERRUPTIBLE));
    }
}

/// How long a wish to end may wait.
const INTERRUPTIBLE: Duration = Duration::from_millis(100);

/// Processor time of this thread since its start.
struct Cost(u64);

impl Cost {
    fn start() -> Self {
        Self(rusage::thread_time())
    }

    fn so_far(&self) -> Duration {
        Duration::from_nanos(rusage::thread_time() - self.0)
    }
}

/// The table `command`, one row per sample.
fn report(samples: &[Snapshot], recorder: &mut dyn Recorder) -> Result<()> {
    let mut sheet = Sheet::new(tables::command::TABLE);
    for sample in samples {
        sheet.row([
            Some(sample.time),
            Some(sample.memory.resident),
            Some(sample.memory.swapped),
            sample.charged,
            sample.working_set,
            Some(sample.memory.processes),
        ]);
    }
    sheet.record(recorder)
}
