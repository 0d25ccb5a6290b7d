//! `command` on the running kernel: one program of the user's, watched from outside.
//!
//! The worker joins the limit, starts the program, and looks at it every `sample` ms: the resident
//! memory and swap of it and its descendants from `/proc/PID/statm` and `status`, the memory charged
//! to the limit from the cgroup, and every tenth time the working set of the first process, by
//! clearing the accessed bits of its pages (which costs the program a little: see [`working_set`]).
//! Its input is empty and its output goes nowhere; what it writes to standard error is passed on.
//!
//! [`working_set`]: crate::working_set

mod tree;

use std::path::PathBuf;
use std::process::{Child, Command as Program, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pagelab_experiment::build::{Sheet, metric, note};
use pagelab_experiment::catalogue::name;
use pagelab_experiment::experiments::Command;
use pagelab_experiment::observation::{Level, Unit};
use pagelab_experiment::{Failure, Observation, Recorder};

use crate::environment::{self, Steal};
use crate::kernel::{Counters, Stall, SwapTraffic, value};
use crate::lifetime::die_with_parent;
use crate::microstates::{Microstates, Whose};
use crate::observe::failed;
use crate::perform::Place;
use crate::rusage;
use crate::working_set::Process;

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
    let mut facts = environment::machine();
    facts.extend(place.environment.clone());
    recorder.observe(Observation::Environment(facts))?;
    place.join()?;
    let memory_stat = place.memory_stat.as_deref();
    let (mut swap, mut stall) =
        (SwapTraffic::open(memory_stat), Stall::open(place.memory_pressure.as_deref()));
    let mut counters = Counters::open(memory_stat);
    let mut steal = Steal::start();
    let mut states = Microstates::start();
    let used = rusage::children();
    counters.before();
    let swap_before = swap.as_mut().and_then(SwapTraffic::read);
    let stall_before = stall.as_mut().and_then(Stall::read);
    let begun = Instant::now();
    let mut program = Program::new(name);
    program.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    die_with_parent(&mut program);
    let child = program.spawn().map_err(failed(&format!("starting {name}")))?;
    let mut running = Running(child);
    let watched = watch(&mut running, command, place, &begun, &mut states, recorder)?;
    let used = rusage::children() - used;
    let counted = counters.after();
    let since = |before: Option<(u64, u64)>, after: Option<(u64, u64)>| {
        before.zip(after).map(|(a, b)| ((b.0 - a.0) as f64, (b.1 - a.1) as f64)).unzip()
    };
    let (swapped_in, swapped_out) = since(swap_before, swap.as_mut().and_then(SwapTraffic::read));
    let stalled =
        stall_before.zip(stall.as_mut().and_then(Stall::read)).map(|(a, b)| b.saturating_sub(a) as f64);
    let stolen = steal.as_mut().and_then(Steal::share).map(|s| format!("{s:.4}"));
    recorder.observe(Observation::Environment(environment::entries([("steal.share", stolen)])))?;
    let refaults = refaults(&counted);
    recorder.observe(Observation::Counters(counted))?;
    let peak = |of: fn(&Look) -> Option<f64>| watched.looks.iter().filter_map(of).reduce(f64::max);
    let sampled = peak(|l| Some(l.memory.resident)).unwrap_or(0.0);
    for (name, value) in [
        (name::TIME_ELAPSED, Some(watched.elapsed.as_nanos() as f64)),
        (name::TIME_USER, Some(used.user as f64)),
        (name::TIME_SYSTEM, Some(used.system as f64)),
        (name::TIME_STALLED, stalled),
        (name::FAULTS_MINOR, Some(used.minor as f64)),
        (name::FAULTS_MAJOR, Some(used.major as f64)),
        (name::IO_READ, Some(used.read as f64)),
        (name::SWAP_IN, swapped_in),
        (name::SWAP_OUT, swapped_out),
        (name::REFAULTS, refaults),
        (name::SWITCHES_VOLUNTARY, Some(used.voluntary as f64)),
        (name::SWITCHES_INVOLUNTARY, Some(used.involuntary as f64)),
        (name::MEMORY_PEAK, Some(sampled.max(rusage::children_peak() as f64))),
        (name::MEMORY_CHARGED_PEAK, peak(|l| l.charged)),
        (name::MEMORY_WORKING_SET_PEAK, peak(|l| l.working_set)),
        (name::COMMAND_STATUS, watched.status.code().map(f64::from)),
    ] {
        metric(recorder, name, value)?;
    }
    report(&watched.looks, recorder)?;
    states.report(Whose::Descendants, None, recorder)?;
    if swap.as_ref().is_some_and(|s| s.whole_machine) || stall.as_ref().is_some_and(|s| s.whole_machine) {
        note(
            recorder,
            Level::Info,
            "swap traffic, stalled time or refaults are the whole machine's: this kernel does not count them for one cgroup",
        )?;
    }
    match watched.status.success() {
        true => Ok(()),
        false if command.allow_failure => {
            note(recorder, Level::Warning, format!("{name} ended with {}", watched.status))
        }
        false => Err(Failure::program(name, watched.status)),
    }
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
    status: ExitStatus,
}

fn watch(
    running: &mut Running,
    command: &Command,
    place: &Place,
    begun: &Instant,
    states: &mut Microstates,
    recorder: &mut dyn Recorder,
) -> Result<Watched, Failure> {
    let pid = running.0.id();
    let first = Process::open(pid).ok().filter(|process| process.clear().is_ok());
    let charged = place.cgroup.as_deref().and_then(charged_file);
    let killed = kills(place);
    let mut looks = Vec::new();
    let mut step = Duration::from_millis(command.sample.max(1));
    let mut next = *begun + step;
    let mut number = 0;
    loop {
        if let Some(status) = running.0.try_wait().map_err(failed("waiting for the program"))? {
            let elapsed = begun.elapsed();
            // Any process of the program's, not only the first.
            let limit = place.environment.get("memory.limit").and_then(|v| v.parse().ok());
            if let (true, Some(limit)) = (kills(place) > killed, limit) {
                return Err(Failure::out_of_memory(limit));
            }
            return Ok(Watched { looks, elapsed, status });
        }
        if recorder.interrupted() {
            return Err(Failure::interrupted());
        }
        states.poll();
        let now = Instant::now();
        if now >= next {
            number += 1;
            let working_set =
                first.as_ref().filter(|_| number % WORKING_SET_EVERY == 0).and_then(|process| {
                    let seen = process.look().ok()?;
                    process.clear().ok()?;
                    Some(seen.referenced as f64)
                });
            looks.push(Look {
                time: begun.elapsed().as_nanos() as f64,
                memory: tree::memory(pid),
                charged: charged.as_ref().and_then(|path| number_in(path)),
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
        // Ending is seen within a two-hundredth of what has passed, and within a millisecond at first.
        let nap = (begun.elapsed() / 200).clamp(Duration::from_micros(200), Duration::from_millis(20));
        std::thread::sleep(
            nap.min(next.saturating_duration_since(Instant::now()).max(Duration::from_micros(100))),
        );
    }
}

/// The cgroup's file that says what is charged to it.
fn charged_file(cgroup: &std::path::Path) -> Option<PathBuf> {
    ["memory.current", "memory.usage_in_bytes"].map(|name| cgroup.join(name)).into_iter().find(|p| p.exists())
}

/// Processes that the kernel has killed in the cgroup for want of memory.
fn kills(place: &Place) -> u64 {
    let Some(cgroup) = &place.cgroup else { return 0 };
    let text = |name: &str| std::fs::read_to_string(cgroup.join(name)).ok();
    let found = text("memory.events").or_else(|| text("memory.oom_control"));
    found.and_then(|text| value(&text, "oom_kill")).unwrap_or(0)
}

fn number_in(path: &std::path::Path) -> Option<f64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Refaults over the run: the cgroup's where its `memory.stat` counts them, else the machine's.
fn refaults(counters: &[pagelab_experiment::observation::Counter]) -> Option<f64> {
    let of = |source: &str| {
        let own = counters.iter().filter(|c| c.source == source && c.name.starts_with("workingset_refault"));
        own.map(|c| (c.after - c.before) as f64).reduce(|a, b| a + b)
    };
    of("memory.stat").or_else(|| of("vmstat"))
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
