//! The host target end to end: a worker process, a memory limit, real paging.
//!
//! Its own main, because a worker process is this program again. One test alone:
//! `cargo test -p pagelab-live --test host -- NAME`.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use pagelab_experiment::environment;
use pagelab_experiment::experiments::{Paging, Touch};
use pagelab_experiment::observation::Level;
use pagelab_experiment::setting::{Limit, Setting, Swap};
use pagelab_experiment::{
    Experiment, Failure, FailureKind, Observation, Observations, Recorder, RecorderError, Request, Size,
    Target,
};
use pagelab_live::{ExecutionContext, Host, worker};
use pagelab_testing::{LIMITS, Need, run_in_turn, tests};
use rustix::process::{Pid, Signal, kill_process};

/// The second argument of this program in the role of a parent that gets killed.
const PARENT: &str = "__parent";
const PAGE: u64 = 4096;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(worker::ARGUMENT) => return pagelab_live::worker_main(),
        Some(PARENT) => {
            let _ = perform(&long(), &Setting::default(), &mut Memory::default());
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    // They look for workers of this process.
    run_in_turn(tests! {
        present_pages_are_hits;
        every_touch_and_the_warm_up_work;
        interruption_ends_the_worker;
        a_killed_worker_is_an_error;
        a_full_notebook_ends_the_worker;
        a_worker_dies_with_its_parent;
        a_file_is_read_once_in_this_process;
        beyond_the_limit_pages_are_swapped: BOUNDED;
        a_file_beyond_the_limit_is_read_again: BOUNDED;
        without_swap_the_load_is_killed: BOUNDED;
    })
}

/// This host bounds a load and gives it swap.
const BOUNDED: Need = Need { name: "limits", on: &[&LIMITS], met: can_be_bounded };

/// Keeps everything in memory, and does `at(phase)` on every progress.
#[derive(Default)]
struct Memory {
    seen: Observations,
    phases: Vec<String>,
    interrupt_in: Option<&'static str>,
    kill_in: Option<&'static str>,
    full_after: Option<usize>,
}

impl Recorder for Memory {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        if let Some(left) = &mut self.full_after {
            *left = left.checked_sub(1).ok_or(RecorderError::new("disk full"))?;
        }
        self.seen.add(observation);
        Ok(())
    }

    fn progress(&mut self, phase: &str, done: u64, total: u64) {
        assert!(done <= total);
        if self.phases.last().map(String::as_str) != Some(phase) {
            self.phases.push(phase.to_owned());
        }
        if self.kill_in == Some(phase) {
            children(std::process::id()).into_iter().for_each(kill);
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupt_in.is_some() && self.phases.last().map(String::as_str) == self.interrupt_in
    }
}

fn perform(experiment: &Experiment, setting: &Setting, memory: &mut Memory) -> Result<(), Failure> {
    let request = Request::new(experiment.clone(), setting.clone());
    Host::new().plan(&request).map_err(Failure::from)?.perform(memory)
}

/// Takes far longer than any test.
fn long() -> Experiment {
    let pattern = "uniform".parse().unwrap();
    Experiment::Mapanon(Paging { pages: 20_000, references: 20_000_000, pattern, ..Paging::default() })
}

fn children(parent: u32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<_>>()).collect()
}

fn kill(pid: i32) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

/// What holds for every run of `references` references to `pages` pages.
fn check(seen: &Observations, pages: u32, references: u64) {
    let kinds = ["access.hit", "access.minor", "access.major"];
    let count = |name| seen.histogram(name).map_or(0, |h| h.count());
    assert_eq!(kinds.map(count).iter().sum::<u64>(), references);
    assert_eq!(count("access.minor"), seen.metric_named("faults.minor").unwrap() as u64, "minor faults");
    assert_eq!(count("access.major"), seen.metric_named("faults.major").unwrap() as u64, "major faults");
    let sum: u64 = kinds.iter().filter_map(|k| seen.histogram(k)).map(|h| h.sum).sum();
    assert_eq!(sum as f64, seen.metric_named("time.elapsed").unwrap());

    let windows = seen.table_named("windows").unwrap();
    let column = |name: &str| -> Vec<f64> {
        windows.numbers_named(name).unwrap().iter().map(|v| v.unwrap()).collect()
    };
    assert!(column("reference").len() >= 200.min(references as usize));
    assert_eq!(column("reference").last(), Some(&(references as f64)));
    assert_eq!(column("time").last(), Some(&(sum as f64)));
    assert_eq!(column("faults.major").iter().sum::<f64>(), seen.metric_named("faults.major").unwrap());
    assert_eq!(column("swap.in").iter().sum::<f64>(), seen.metric_named("swap.in").unwrap());
    assert_eq!(
        column("access.max").into_iter().fold(0.0, f64::max),
        seen.metric_named("access.max").unwrap()
    );

    assert_eq!(seen.pages.len(), 16);
    assert_eq!((seen.pages[0].reference, seen.pages[15].reference), (0, references));
    for snapshot in &seen.pages {
        assert_eq!(snapshot.pages, pages);
        assert_eq!(snapshot.count.iter().map(|&n| u64::from(n)).sum::<u64>(), snapshot.reference);
        assert_eq!(snapshot.last.iter().copied().max().map(u64::from), Some(snapshot.reference));
    }
    for entry in seen.environment.keys() {
        assert!(environment::ALL.iter().any(|(name, _)| name == entry), "{entry}");
    }
    assert!(seen.environment.contains_key("harness.cost"));
    assert!(seen.counters.iter().any(|c| c.source == "vmstat" && c.name == "pgfault"));
    let warnings: Vec<_> = seen.notes.iter().filter(|n| n.level == Level::Warning).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
}

fn present_pages_are_hits() {
    let mut memory = Memory::default();
    let paging = Paging { pages: 300, references: 100_001, ..Paging::default() };
    perform(&Experiment::Mapanon(paging), &Setting::default(), &mut memory).unwrap();
    check(&memory.seen, 300, 100_001);
    assert_eq!(memory.seen.metric_named("faults.major"), Some(0.0));
    assert_eq!(memory.seen.metric_named("access.major.p50"), None);
    assert_eq!(memory.seen.metric_named("pages.present"), Some(300.0));
    // Each reading makes the caches cold.
    let present = memory.seen.table_named("windows").unwrap().numbers_named("pages.present").unwrap();
    let read = present.iter().flatten().count();
    assert!((15..120).contains(&read), "{read} of {} windows were read", present.len());
    assert_eq!(memory.phases, ["prepare", "populate", "references"]);
}

fn every_touch_and_the_warm_up_work() {
    for touch in [Touch::Page, Touch::Word, Touch::Write] {
        let mut memory = Memory::default();
        let paging = Paging { pages: 50, references: 100, warm: true, touch, ..Paging::default() };
        perform(&Experiment::Mapanon(paging), &Setting::default(), &mut memory).unwrap();
        check(&memory.seen, 50, 100);
    }
}

fn interruption_ends_the_worker() {
    for phase in ["prepare", "populate", "references"] {
        let mut memory = Memory { interrupt_in: Some(phase), ..Memory::default() };
        let result = perform(&long(), &Setting::default(), &mut memory);
        assert!(matches!(&result, Err(failure) if failure.is_interrupted()), "{result:?}");
        assert!(children(std::process::id()).is_empty(), "a worker is left");
    }
}

fn a_killed_worker_is_an_error() {
    let mut memory = Memory { kill_in: Some("references"), ..Memory::default() };
    let error = perform(&long(), &Setting::default(), &mut memory).unwrap_err();
    assert!(error.kind == FailureKind::WorkerDied { signal: Some(9) }, "{error}");
}

fn a_full_notebook_ends_the_worker() {
    let mut memory = Memory { full_after: Some(1), ..Memory::default() };
    let paging = Paging { pages: 100, references: 10_000, ..Paging::default() };
    let error = perform(&Experiment::Mapanon(paging), &Setting::default(), &mut memory).unwrap_err();
    assert!(error.kind == FailureKind::Recorder, "{error}");
    assert!(children(std::process::id()).is_empty(), "a worker is left");
}

fn a_worker_dies_with_its_parent() {
    let program = std::env::current_exe().unwrap();
    let mut parent = Command::new(program).arg(PARENT).stdout(Stdio::null()).spawn().unwrap();
    let worker = loop {
        if let Some(&worker) = children(parent.id()).first() {
            break worker;
        }
        assert!(parent.try_wait().unwrap().is_none(), "no worker came");
        thread::sleep(Duration::from_millis(5));
    };
    // Long enough to be at work, and after it asked for the signal.
    thread::sleep(Duration::from_millis(500));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let gone = || {
        let status = fs::read_to_string(format!("/proc/{worker}/status")).unwrap_or_default();
        status.is_empty() || status.contains("\nState:\tZ")
    };
    while !gone() {
        assert!(Instant::now() < deadline, "the worker outlives its parent");
        thread::sleep(Duration::from_millis(5));
    }
}

/// As in a guest: no worker, no confinement.
fn a_file_is_read_once_in_this_process() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let context =
        ExecutionContext { scratch: Some(folder.path().join("scratch")), ..ExecutionContext::default() };
    let paging = Paging { pages: 2000, references: 20_000, touch: Touch::Write, ..Paging::default() };
    let mut memory = Memory::default();
    pagelab_live::perform(&Experiment::Mapfile(paging), &Setting::default(), &context, &mut memory).unwrap();
    let seen = &memory.seen;
    check(seen, 2000, 20_000);
    assert!(seen.pages[0].present.len() < 100, "the file starts outside the cache");
    assert_eq!(seen.pages[15].present.len(), 2000);
    assert!(seen.metric_named("faults.major").unwrap() > 0.0);
    assert!(seen.pages.iter().all(|p| p.swapped.is_empty()));
    assert_eq!(memory.phases, ["prepare", "write", "references"]);
    // The disk reads ahead in pauses: between most windows there is none.
    let windows = seen.table_named("windows").unwrap();
    let read = windows.numbers_named("pages.present").unwrap().iter().flatten().count();
    assert!((16..120).contains(&read), "{read} of 240 windows were read");
}

fn limit(swap: Swap) -> Setting {
    Setting { memory: Some(Limit::Of(Size::Bytes(32 << 20))), swap: Some(swap), ..Setting::default() }
}

/// Why this machine cannot bound a load, if so.
fn can_be_bounded() -> Result<(), String> {
    let paging = Paging { pages: 10, references: 10, ..Paging::default() };
    match perform(&Experiment::Mapanon(paging), &limit(Swap::File), &mut Memory::default()) {
        Err(error) if matches!(error.kind, FailureKind::Unsupported { .. }) => Err(error.full()),
        _ => Ok(()),
    }
}

/// 48 MiB.
const PAGES: u64 = (48 << 20) / PAGE;

fn beyond_the_limit_pages_are_swapped() {
    let mut memory = Memory::default();
    let paging = Paging { pages: PAGES, references: 100_000, ..Paging::default() };
    perform(&Experiment::Mapanon(paging), &limit(Swap::File), &mut memory).unwrap();
    let seen = &memory.seen;
    check(seen, PAGES as u32, 100_000);
    assert!(seen.metric_named("faults.major").unwrap() > 100.0);
    assert!(seen.metric_named("swap.in").unwrap() > 1000.0);
    let major = seen.histogram("access.major").unwrap();
    let hit = seen.histogram("access.hit").unwrap();
    assert!(major.quantile(0.5).is_some() && hit.quantile(0.99).is_some());
    for snapshot in &seen.pages {
        let (present, swapped) = (snapshot.present.len(), snapshot.swapped.len());
        assert!(present * PAGE <= 32 << 20, "{present} pages present under the limit");
        assert!(present > 1000, "{present} pages present");
        assert_eq!(present + swapped, PAGES, "every page is somewhere");
    }
    // The windows count what the process has mapped, the page map what it finds: the same pages.
    let last =
        seen.table_named("windows").unwrap().numbers_named("pages.present").unwrap().last().unwrap().unwrap();
    assert!((last - seen.pages[15].present.len() as f64).abs() < 300.0, "{last}");
    assert_eq!(seen.environment["swap.kind"], "file");
    assert_eq!(seen.environment["memory.limit"], (32u64 << 20).to_string());
    assert!(seen.counters.iter().any(|c| c.source == "memory.stat"));
}

fn a_file_beyond_the_limit_is_read_again() {
    let mut memory = Memory::default();
    let paging =
        Paging { pages: PAGES, references: 2_000, pattern: "uniform".parse().unwrap(), ..Paging::default() };
    perform(&Experiment::Mapfile(paging), &limit(Swap::None), &mut memory).unwrap();
    let seen = &memory.seen;
    check(seen, PAGES as u32, 2_000);
    assert!(seen.metric_named("faults.major").unwrap() > 200.0);
    assert!(seen.pages[0].present.len() < PAGES / 20, "the file starts outside the cache");
    for snapshot in &seen.pages {
        assert!(snapshot.present.len() * PAGE <= 32 << 20, "the cache is bounded");
        assert!(snapshot.swapped.is_empty());
    }
}

fn without_swap_the_load_is_killed() {
    let mut memory = Memory::default();
    let paging = Paging { pages: PAGES, references: 100_000, ..Paging::default() };
    let error = perform(&Experiment::Mapanon(paging), &limit(Swap::None), &mut memory).unwrap_err();
    assert!(error.kind == FailureKind::OutOfMemory { limit: 32 << 20 }, "{error}");
    assert!(children(std::process::id()).is_empty(), "a worker is left");
}
