//! Tests that say what they need of the machine. One whose need is lacking is reported as ignored, with the
//! reason, and fails where `PAGELAB_TEST_REQUIRE` names the need: it never passes unperformed.
//!
//! A test file that uses it has `harness = false` in its crate's manifest, plain functions in the
//! place of `#[test]`, and a `main` that lists them (a module of one lists its own, which `main`
//! joins to the others):
//!
//! ```no_run
//! use pagelab_testing::{ROOT, run, tests};
//!
//! fn main() -> std::process::ExitCode {
//!     run(tests! {
//!         anybody_may_read;
//!         only_root_may_write: ROOT;
//!     })
//! }
//!
//! fn anybody_may_read() {}
//! fn only_root_may_write() {}
//! ```
//!
//! The command line is that of `cargo test`: filters, `--exact`, `--skip`, `--list`, `--test-threads`. A test whose
//! need is lacking is performed all the same under `--ignored` and `--include-ignored`. Output is not captured.

pub mod browser;
pub mod fuzz;
mod needs;
pub mod random;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

pub use needs::{
    ALONE, ARM64, CC, CGROUP_1, CHROMIUM, KERNELS, LIMITS, Lack, Need, PRELOAD, PROMETHEUS, QEMU, QEMU_USER,
    READERS, ROOT, STRACE, THP, TMPFS, USERFAULT, arm64, chromium, kernels, prometheus, reader,
};

/// The number of slow tests that are named after a run.
const SLOWEST: usize = 20;
/// A test that takes less is not slow.
const SLOW: Duration = Duration::from_secs(5);

/// How long each slow test took.
static TOOK: Mutex<Vec<(Duration, &str)>> = Mutex::new(Vec::new());

/// The variable with the needs, separated by commas, whose lack is a failure.
pub const REQUIRE: &str = "PAGELAB_TEST_REQUIRE";

/// A test and what it needs.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Its name, as filters and reports have it: its path in the test program.
    pub name: &'static str,
    /// What it needs of the machine.
    pub needs: &'static [&'static Need],
    /// Performs it; a panic is a failure.
    pub perform: fn(),
}

/// The list of tests: `name;` or `name: NEED, NEED;` for each function.
#[macro_export]
macro_rules! tests {
    ($($($part:ident)::+ $(: $($need:expr),+)?;)*) => {
        ::std::vec![$($crate::Test {
            name: $crate::below_the_program(::std::concat!(
                ::std::module_path!(), "::", ::std::stringify!($($part)::+)
            )),
            needs: &[$($(&$need),+)?],
            perform: $($part)::+,
        }),*]
    };
}

/// A path without the name of the program.
#[doc(hidden)]
#[must_use]
pub fn below_the_program(path: &'static str) -> &'static str {
    path.split_once("::").map_or(path, |(_, below)| below)
}

/// Runs the tests that the command line selects: in parallel, then those that need to be [`ALONE`]
/// one by one.
#[must_use]
pub fn run(tests: Vec<Test>) -> ExitCode {
    perform(tests, Arguments::from_args())
}

/// Runs them one by one: for tests that look at the whole process.
#[must_use]
pub fn run_in_turn(tests: Vec<Test>) -> ExitCode {
    perform(tests, Arguments { test_threads: Some(1), ..Arguments::from_args() })
}

fn perform(tests: Vec<Test>, mut arguments: Arguments) -> ExitCode {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    let required: Vec<String> =
        required.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if let Some(unknown) = required.iter().find(|name| !needs::NAMES.contains(&name.as_str())) {
        eprintln!("{REQUIRE}: unknown need '{unknown}'; it must be one of {}", needs::NAMES.join(", "));
        return ExitCode::from(2);
    }
    let asked = arguments.ignored || arguments.include_ignored;
    let (alone, parallel): (Vec<Test>, Vec<Test>) =
        tests.into_iter().partition(|test| test.needs.iter().any(|need| need.name == ALONE.name));
    let mut run = |tests: Vec<Test>| {
        let trials: Vec<Trial> = tests.into_iter().map(|test| trial(test, required.clone(), asked)).collect();
        let failed = !trials.is_empty() && libtest_mimic::run(&arguments, trials).has_failed();
        arguments.test_threads = Some(1);
        failed
    };
    let failed = [run(parallel), run(alone)];
    let mut took = TOOK.lock().unwrap_or_else(PoisonError::into_inner);
    took.sort_unstable_by(|a, b| b.cmp(a));
    for (time, name) in took.iter().take(SLOWEST) {
        println!("{:6.1} s {name}", time.as_secs_f64());
    }
    if failed.contains(&true) { ExitCode::from(101) } else { ExitCode::SUCCESS }
}

/// `asked`: tests whose need is lacking were asked for by name of what they are, ignored.
fn trial(test: Test, required: Vec<String>, asked: bool) -> Trial {
    if asked {
        let lacking = Need::lack(test.needs).is_some();
        let performed = move || {
            timed(&test);
            Ok(())
        };
        return Trial::test(test.name, performed).with_ignored_flag(lacking);
    }
    Trial::ignorable_test(test.name, move || match Need::lack(test.needs) {
        None => {
            timed(&test);
            Ok(Completion::Completed)
        }
        Some(lack) if required.iter().any(|name| name == lack.name) => {
            Err(Failed::from(format!("{lack} ({REQUIRE} requires it)")))
        }
        Some(lack) => Ok(Completion::ignored_with(lack)),
    })
}

/// Performs a test, and notes its time if it is slow.
fn timed(test: &Test) {
    let begun = Instant::now();
    (test.perform)();
    let took = begun.elapsed();
    if took >= SLOW {
        TOOK.lock().unwrap_or_else(PoisonError::into_inner).push((took, test.name));
    }
}
