//! `command`: a program watched, limited, failing.

use pagelab_experiment::experiments::Command;
use pagelab_experiment::observation::{Level, Unit};
use pagelab_experiment::setting::{FileValue, Swap};
use pagelab_experiment::{Experiment, FailureKind, Setting};
use pagelab_testing::{LIMITS, Test, tests};

use crate::{column, figure, has_column, limit, perform, perform_anyway};

pub fn tests() -> Vec<Test> {
    tests! {
        command_is_watched;
        command_gives_no_zero_that_was_not_measured;
        command_under_a_limit_swaps: LIMITS;
        command_has_nothing_of_the_worker_in_its_peak;
        failing_command_is_reported;
        command_has_the_working_set_of_all_its_processes;
        command_killed_inside_its_limit: LIMITS;
        command_is_stopped_whole_after_its_timeout;
    }
}

fn shell(text: &str) -> Experiment {
    let program = ["sh", "-c", text].map(str::to_owned).to_vec();
    Experiment::Command(Command { sample: 5, ..Command::new(program) })
}

/// Fills a variable of a shell with so many MiB, again and again.
fn fills(mebibytes: u32, times: u32) -> String {
    format!("for i in $(seq {times}); do x=$(head -c {mebibytes}M /dev/zero | tr '\\0' x); done; sleep 0.2")
}

/// With delay accounting, where this user may switch it on.
fn accounted() -> Setting {
    let mut setting = Setting::default();
    let switch = "/proc/sys/kernel/task_delayacct";
    if rustix::process::geteuid().is_root() && std::path::Path::new(switch).exists() {
        setting.set_file(FileValue { path: switch.into(), value: "1".into() });
    }
    setting
}

/// The kernel parts processor time by samples at its ticks: a program shorter than one has no part, and a loop none in
/// the kernel, or one that was met there.
fn command_gives_no_zero_that_was_not_measured() {
    let seen = perform(shell("true"), &Setting::default()).unwrap();
    assert!(figure(&seen, "time.cpu") > 1e5);
    assert_eq!(["time.user", "time.system", "state.user"].map(|name| seen.metric_named(name)), [None; 3]);
    let seen =
        perform(shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"), &Setting::default()).unwrap();
    let [user, system] = ["time.user", "time.system"].map(|name| seen.metric_named(name));
    assert!([user, system].into_iter().flatten().all(|part| part > 0.0), "{user:?} {system:?}");
    let parts = user.unwrap_or(0.0) + system.unwrap_or(0.0);
    assert!(parts <= figure(&seen, "time.cpu") * 1.001, "{user:?} {system:?}");
}

fn command_is_watched() {
    let seen = perform(shell(&fills(8, 4)), &accounted()).unwrap();
    assert!(figure(&seen, "time.elapsed") > 200e6, "it slept a fifth of a second");
    assert!(figure(&seen, "memory.peak") > 8e6);
    assert!(figure(&seen, "faults.minor") > 2000.0);
    assert_eq!(figure(&seen, "command.status"), 0.0);
    has_column(&seen, "command", "memory.resident", Unit::Bytes);
    let time = column(&seen, "command", "time");
    assert!(time.len() > 10 && time.windows(2).all(|w| w[0] < w[1]), "{time:?}");
    assert!(column(&seen, "command", "memory.resident").iter().any(|&bytes| bytes > 1e6));
    // Without the kernel's delay accounting neither is known.
    if seen.metric_named("state.fault").is_some() {
        let shares = ["state.user", "state.system", "state.run-queue", "state.sleep", "state.fault"];
        let shares = shares.map(|name| seen.metric_named(name));
        let sum: f64 = shares.iter().flatten().sum();
        assert!((0.9..1.1).contains(&sum), "the shares are of everything: {shares:?}");
        assert!(figure(&seen, "state.sleep") > 0.2);
    }
}

fn command_under_a_limit_swaps() {
    let seen = perform(shell(&fills(24, 2)), &limit(16 << 20)).unwrap();
    assert!(figure(&seen, "swap.out") > 100.0);
    assert!(figure(&seen, "memory.charged.peak") <= f64::from(16 << 20));
    assert!(figure(&seen, "faults.major") > 10.0);
    assert!(column(&seen, "command", "memory.swapped").iter().any(|&bytes| bytes > 0.0));
}

/// The kernel counts the resident set of whoever executes a program as the program's.
fn command_has_nothing_of_the_worker_in_its_peak() {
    let small = Experiment::Command(Command::new(vec!["true".into()]));
    let seen = perform(small, &Setting::default()).unwrap();
    // Without the kernel's task statistics it is not known.
    if let Some(peak) = seen.metric_named("memory.peak") {
        assert!((2e5..4e6).contains(&peak), "{peak} bytes of true(1)");
    }
}

fn failing_command_is_reported() {
    let failed = perform(shell("exit 3"), &Setting::default()).unwrap_err();
    assert_eq!(failed.kind, FailureKind::ProgramFailed { status: Some(3), signal: None });
    let Experiment::Command(command) = shell("exit 3") else { unreachable!("made above") };
    let allowed = Experiment::Command(Command { allow_failure: true, ..command });
    let seen = perform(allowed, &Setting::default()).unwrap();
    assert_eq!(figure(&seen, "command.status"), 3.0);
    assert!(seen.notes.iter().any(|n| n.level == Level::Warning && n.text.contains("exit status: 3")));
    let absent = Experiment::Command(Command::new(vec!["/does/not/exist".into()]));
    let error = perform(absent, &Setting::default()).unwrap_err().to_string();
    assert!(error.contains("/does/not/exist"), "{error}");
}

fn command_killed_inside_its_limit() {
    let setting = Setting { swap: Some(Swap::None), ..limit(16 << 20) };
    let result = perform(shell("head -c 64M /dev/zero | tail -c 60M"), &setting).map(|_| ());
    assert!(
        matches!(result, Err(ref failure) if failure.kind == FailureKind::OutOfMemory { limit: 16 << 20 }),
        "{result:?}"
    );
}

/// The first process only waits for the one that works.
fn command_has_the_working_set_of_all_its_processes() {
    let works = "x=$(head -c 24M /dev/zero | tr '\\0' x); for i in $(seq 30); do y=${#x}; sleep 0.02; done";
    let seen = perform(shell(&format!("sh -c \"{}\"; true", works.replace('$', "\\$"))), &Setting::default());
    let seen = seen.unwrap();
    let peak = figure(&seen, "memory.working-set.peak");
    assert!(peak > 20e6, "{peak} of 24 MiB");
}

/// What its stopped processes did is measured; none of them is left.
fn command_is_stopped_whole_after_its_timeout() {
    let words = "echo $$ > $0; x=$(head -c 24M /dev/zero | tr '\\0' x); sleep 987.25";
    let file = tempfile::NamedTempFile::new().unwrap();
    let inner = format!("sh -c \"{}\" {}; true", words.replace('$', "\\$"), file.path().display());
    let Experiment::Command(command) = shell(&inner) else { unreachable!("made above") };
    let stopped = Experiment::Command(Command { timeout: Some(3.0), ..command });
    let (seen, failed) = perform_anyway(stopped, &Setting::default());
    let failed = failed.unwrap_err();
    assert!(matches!(failed.kind, FailureKind::TimedOut { .. }), "{failed:?}");
    assert!(failed.to_string().contains("sh was stopped after "), "{failed}");
    assert!(figure(&seen, "time.elapsed") >= 3e9);
    assert!(figure(&seen, "faults.minor") > 2000.0, "of the shell's shell");
    assert_eq!(seen.metric_named("command.status"), None);
    let inner = std::fs::read_to_string(file.path()).unwrap();
    let stat = std::path::Path::new("/proc").join(inner.trim()).join("stat");
    // A zombie has ended: its new parent has yet to ask for its status.
    let state = std::fs::read_to_string(stat).ok().and_then(|stat| stat.rsplit(") ").next()?.chars().next());
    let ended = matches!(state, None | Some('Z' | 'X'));
    assert!(!inner.trim().is_empty() && ended, "the inner shell {inner}: {state:?}");
}
