//! `forkstorm`: the counts are those of what was done.

use std::io::Write;

use pagelab_experiment::experiments::{Child, Forkstorm};
use pagelab_experiment::observation::Values;
use pagelab_experiment::{Experiment, Observations, Setting};
use pagelab_testing::{LIMITS, Test, tests};

use crate::{figure, limit, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        forkstorm_counts_its_forks;
        forkstorm_executes;
        forkstorm_runs_the_published_script;
        forkstorm_under_a_limit: LIMITS;
        forkstorm_has_nothing_of_ours;
        forkstorm_counts_its_processor_time;
        a_fork_costs_no_more_than_was_worked;
    }
}

fn without_profile() -> Setting {
    Setting { profile: Some(0), ..Setting::default() }
}

fn small() -> Forkstorm {
    Forkstorm { forks: 200, pages: 64, touch: 16, ..Forkstorm::default() }
}

/// The count of a tracepoint for each fork; `None` where this kernel or user does not count.
fn each_fork(seen: &Observations, tracepoint: &str) -> Option<f64> {
    let table = seen.table_named("operations")?;
    let Values::Text(names) = &table.columns[0].values else { panic!("names first") };
    let row = names.iter().position(|name| name == tracepoint)?;
    table.numbers_named("each.fork")?[row]
}

fn forkstorm_counts_its_forks() {
    let seen = perform(Experiment::Forkstorm(small()), &Setting::default()).unwrap();
    let rate = figure(&seen, "forks.rate");
    assert!((rate * figure(&seen, "time.elapsed") / 1e9 - 400.0).abs() < 1.0, "two copies, 200 forks each");
    // Each child writes 16 pages, and each write copies one.
    assert!(figure(&seen, "faults.minor") >= 400.0 * 16.0);
    let (fork, exit) = (figure(&seen, "fork.cost"), figure(&seen, "exit.cost"));
    assert!(fork > 0.0 && exit > 0.0, "{fork} {exit}");
    assert_eq!(seen.metric_named("exec.cost"), None);
    if let Some(faults) = each_fork(&seen, "exceptions:page_fault_user") {
        assert!((16.0..200.0).contains(&faults), "{faults} faults a fork");
        assert_eq!(each_fork(&seen, "sched:sched_process_fork"), Some(1.0));
        assert!(each_fork(&seen, "kmem:mm_page_alloc").unwrap() >= 16.0);
    }
    if let Some(table) = seen.table_named("profile") {
        let samples: f64 = table.numbers_named("samples").unwrap().iter().flatten().sum();
        assert!(samples > 5.0, "{samples}");
        let Values::Text(names) = &table.columns[0].values else { panic!("names first") };
        assert!(names.iter().all(|name| !name.is_empty()));
        let (_, folded) = seen.logs.iter().find(|(name, _)| name == "folded").unwrap();
        assert!(folded.contains("do_syscall_64;") || !cfg!(target_arch = "x86_64"), "{folded}");
    } else {
        assert!(seen.notes.iter().any(|n| n.text.contains("profile")), "said why not");
    }
}

fn forkstorm_executes() {
    let storm = Forkstorm { child: Child::Exec, forks: 50, ..small() };
    let seen = perform(Experiment::Forkstorm(storm), &without_profile()).unwrap();
    assert!(figure(&seen, "exec.cost") > 100e3, "an exec costs more than a tenth of a millisecond");
    assert_eq!(seen.metric_named("exit.cost"), None);
    if let Some(execs) = each_fork(&seen, "sched:sched_process_exec") {
        // The two copies themselves were forked and execute nothing.
        assert!((execs - 20.0 / 22.0).abs() < 1e-9, "{execs}");
    }
}

fn forkstorm_runs_the_published_script() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"one\ntwo\n").unwrap();
    let storm = Forkstorm { script: Some(file.path().into()), forks: 10, ..Forkstorm::default() };
    let seen = perform(Experiment::Forkstorm(storm), &without_profile()).unwrap();
    assert!(figure(&seen, "forks.rate") > 10.0);
    assert!(figure(&seen, "faults.minor") > 1000.0);
    if let (Some(execs), Some(fork)) =
        (each_fork(&seen, "sched:sched_process_exec"), each_fork(&seen, "sched:sched_process_fork"))
    {
        assert_eq!(fork, 1.0);
        // Three execs for five forks, and the shells themselves.
        assert!((0.5..0.9).contains(&execs), "{execs}");
    }
    let absent = Forkstorm { script: Some("/does/not/exist".into()), ..Forkstorm::default() };
    assert!(perform(Experiment::Forkstorm(absent), &Setting::default()).is_err());
}

fn forkstorm_under_a_limit() {
    let storm = Forkstorm { forks: 100, ..small() };
    perform(Experiment::Forkstorm(storm), &Setting { profile: Some(0), ..limit(32 << 20) }).unwrap();
}

/// A fault for each page that a child writes, one for its code, and one of its parent's for the stack.
fn forkstorm_has_nothing_of_ours() {
    let storm = Forkstorm { copies: 1, forks: 500, pages: 64, touch: 16, ..Forkstorm::default() };
    let seen = perform(Experiment::Forkstorm(storm), &without_profile()).unwrap();
    let each = figure(&seen, "faults.minor") / 500.0;
    assert!((16.0..18.5).contains(&each), "{each} faults for 16 pages");
    let residual = figure(&seen, "fork.residual");
    assert!((1.0..=2.0).contains(&residual), "{residual} pages beyond the experiment's");
}

/// What the storm consumed is part of what the worker and its descendants did: the kernel's account
/// of this process's own children.
fn forkstorm_counts_its_processor_time() {
    let consumed = || {
        let used = pagelab_kernel::rusage::children();
        (used.user + used.system) as f64
    };
    let before = consumed();
    let storm = Forkstorm { copies: 1, forks: 3000, pages: 512, touch: 64, ..Forkstorm::default() };
    let seen = perform(Experiment::Forkstorm(storm), &without_profile()).unwrap();
    let all = consumed() - before;
    let counted = figure(&seen, "time.cpu");
    assert!(counted > 0.0 && counted < all, "{counted} of {all} ns");
}

/// Where copies wait for one another's processors, a fork costs what its caller worked and not what it waited.
fn a_fork_costs_no_more_than_was_worked() {
    let copies = 4 * std::thread::available_parallelism().unwrap().get() as u32;
    let storm = Forkstorm { copies, forks: 100, pages: 512, touch: 1, ..Forkstorm::default() };
    let seen = perform(Experiment::Forkstorm(storm), &without_profile()).unwrap();
    let forking = figure(&seen, "fork.cost") * 100.0 * f64::from(copies);
    let worked = figure(&seen, "time.cpu");
    assert!(forking > 0.0 && forking < worked, "{forking} ns in fork of {worked} ns of work");
}
