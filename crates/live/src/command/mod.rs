//! `command` on the running kernel: one program of the user's, watched from outside.
//!
//! The worker joins the limit, starts the program, and looks at it every `sample` ms: the resident
//! memory and swap of it and its descendants from `/proc/PID/statm` and `status`, the memory charged
//! to the limit from the cgroup, and every tenth time the working set of all of them, by
//! clearing the accessed bits of its pages (which costs the program a little: see [`working_set`]).
//! Its input is empty and its output goes nowhere; what it writes to standard error is passed on.
//!
//! [`working_set`]: crate::working_set

mod tree;

use std::process::{Child, Command as Program, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pagelab_experiment::build::{Sheet, metrics, note};
use pagelab_experiment::catalogue::name;
use pagelab_experiment::experiments::Command;
use pagelab_experiment::observation::{Level, Unit};
use pagelab_experiment::{Failure, FailureKind, Recorder};

use self::tree::WorkingSets;
use crate::cgroup::Group;
use crate::harness::Harness;
use crate::lifetime::die_with_parent;
use crate::microstates::Whose;
use crate::observe::failed;
use crate::place::Place;
use crate::rusage;

/// Looks between two at the working set.
const WORKING_SET_EVERY: u32 = 10;
/// Rows of the table, at most: then every second one is dropped and looks become half as frequent.
const ROWS: usize = 2000;

/// One look.
#[derive(Clone, Copy, Debug)]
struct Look {
    time: f64,
    memory: tree::Memory,
    charged: Option<f64>,
    working_set: Option<f64>,
}

/// Runs the program once.
///
/// # Errors
/// When it cannot be started, or the kernel kills it inside the limit.
pub fn perform(command: &Command, place: &Place, recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let Some((name, arguments)) = command.program.split_first() else {
        return Err(Failure::unsupported(
            "there is no program to run",
            "write it after --: pagelab run command -- sort big.txt",
        ));
    };
    let mut harness = Harness::open(place, recorder)?;
    place.join()?;
    harness.watch_tasks();
    harness.begin();
    let used = rusage::children();
    let mut program = Program::new(name);
    program.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    die_with_parent(&mut program);
    let child = program.spawn().map_err(failed(&format!("starting {name}")))?;
    let mut running = Running(child);
    let watched = watch(&mut running, command, place, &mut harness, recorder)?;
    let used = rusage::children() - used;
    let mut measured = harness.finish();
    measured.record(recorder)?;
    let peak = |of: fn(&Look) -> Option<f64>| watched.looks.iter().filter_map(of).reduce(f64::max);
    let sampled = peak(|l| Some(l.memory.resident)).unwrap_or(0.0);
    let figures = [
        (name::TIME_ELAPSED, Some(watched.elapsed.as_nanos() as f64)),
        (name::TIME_USER, Some(used.user as f64)),
        (name::TIME_SYSTEM, Some(used.system as f64)),
        (name::FAULTS_MINOR, Some(used.minor as f64)),
        (name::FAULTS_MAJOR, Some(used.major as f64)),
        (name::IO_READ, Some(used.read as f64)),
        (name::REFAULTS, measured.refaults("workingset_refault")),
        (name::SWITCHES_VOLUNTARY, Some(used.voluntary as f64)),
        (name::SWITCHES_INVOLUNTARY, Some(used.involuntary as f64)),
        (name::MEMORY_PEAK, Some(sampled.max(rusage::children_peak() as f64))),
        (name::MEMORY_CHARGED_PEAK, place.group().and_then(charged_peak).or_else(|| peak(|l| l.charged))),
        (name::MEMORY_WORKING_SET_PEAK, peak(|l| l.working_set)),
        (name::COMMAND_STATUS, watched.status.and_then(|status| status.code()).map(f64::from)),
    ];
    metrics(recorder, figures.into_iter().chain(measured.pressure(measured.swap)))?;
    report(&watched.looks, recorder)?;
    measured.states(Whose::Descendants, None, recorder)?;
    measured.note_scope(recorder)?;
    match watched.status {
        None => {
            let seconds = watched.elapsed.as_secs_f64();
            let kind = FailureKind::TimedOut { seconds: seconds.ceil() as u64 };
            Err(Failure::new(kind, format!("{name} was stopped after {seconds:.2} s (--timeout)")))
        }
        Some(status) if status.success() => Ok(()),
        Some(status) if command.allow_failure => {
            note(recorder, Level::Warning, format!("{name} ended with {status}"))
        }
        Some(status) => Err(Failure::program(name, status)),
    }
}

/// As the kernel has noted it: exact, where the looks are samples. A kernel that does not has none.
fn charged_peak(group: Group<'_>) -> Option<f64> {
    group.charged_peak().map(|bytes| bytes as f64)
}

/// Kills the program when dropped before its end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Watched {
    looks: Vec<Look>,
    elapsed: Duration,
    /// How it ended; `None`: it was stopped.
    status: Option<ExitStatus>,
}

fn watch(
    running: &mut Running,
    command: &Command,
    place: &Place,
    harness: &mut Harness,
    recorder: &mut dyn Recorder,
) -> Result<Watched, Failure> {
    let pid = running.0.id();
    let mut working_sets = WorkingSets::default();
    working_sets.look(&[pid]);
    let group = place.group();
    let kills = || group.map_or(0, Group::kills);
    let killed = kills();
    let begun = harness.begun();
    let mut looks = Vec::new();
    let mut step = Duration::from_millis(command.sample.max(1));
    let mut next = begun + step;
    let timeout = command.timeout.map(Duration::from_secs_f64);
    let mut number = 0;
    loop {
        if let Some(status) = running.0.try_wait().map_err(failed("waiting for the program"))? {
            let elapsed = begun.elapsed();
            // Any process of the program's, not only the first.
            if let (true, Some(limit)) = (kills() > killed, place.limit()) {
                return Err(Failure::out_of_memory(limit));
            }
            return Ok(Watched { looks, elapsed, status: Some(status) });
        }
        if timeout.is_some_and(|timeout| begun.elapsed() >= timeout) {
            let elapsed = begun.elapsed();
            tree::kill(pid);
            let _ = running.0.wait();
            harness.poll();
            return Ok(Watched { looks, elapsed, status: None });
        }
        if recorder.interrupted() {
            return Err(Failure::interrupted());
        }
        harness.poll();
        let now = Instant::now();
        if now >= next {
            number += 1;
            let (memory, processes) = tree::memory(pid);
            let working_set = match number % WORKING_SET_EVERY {
                0 => working_sets.look(&processes),
                _ => None,
            };
            looks.push(Look {
                time: begun.elapsed().as_nanos() as f64,
                memory,
                charged: group.and_then(Group::charged).map(|bytes| bytes as f64),
                working_set,
            });
            if looks.len() >= ROWS {
                let mut keep = false;
                looks.retain(|look| {
                    keep = !keep;
                    keep || look.working_set.is_some()
                });
                step *= 2;
            }
            next = now + step;
        }
        let left = timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(begun.elapsed()));
        // Ending is seen within a two-hundredth of what has passed, and within a millisecond at first.
        let nap = (begun.elapsed() / 200).clamp(Duration::from_micros(200), Duration::from_millis(20));
        std::thread::sleep(
            nap.min(left).min(next.saturating_duration_since(Instant::now()).max(Duration::from_micros(100))),
        );
    }
}

/// The table `command`, one row for each look.
fn report(looks: &[Look], recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let mut sheet = Sheet::new(
        "command",
        &[
            ("time", Unit::Nanoseconds),
            ("memory.resident", Unit::Bytes),
            ("memory.swapped", Unit::Bytes),
            ("memory.charged", Unit::Bytes),
            ("memory.working-set", Unit::Bytes),
            ("processes", Unit::Count),
        ],
    );
    for look in looks {
        sheet.row([
            Some(look.time),
            Some(look.memory.resident),
            Some(look.memory.swapped),
            look.charged,
            look.working_set,
            Some(look.memory.processes),
        ]);
    }
    sheet.record(recorder)
}
