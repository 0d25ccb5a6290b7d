//! A harness of five tests: one needs nothing, one what is there, two what is absent, one to be alone.
//! `tests/harness.rs` runs it in every way.

use std::process::ExitCode;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use pagelab_testing::{ALONE, Need, run, tests};

const THERE: Need = Need { name: "fixture-there", on: &[], met: || Ok(()) };
const ABSENT: Need = Need { name: "fixture-absent", on: &[], met: || Err("nobody has it".into()) };
const ON_ABSENT: Need = Need { name: "fixture-there", on: &[&ABSENT], met: || Ok(()) };

fn main() -> ExitCode {
    run(tests! {
        by_itself: ALONE;
        plain;
        with_what_is_there: THERE;
        with_what_is_absent: THERE, ABSENT;
        with_what_needs_the_absent: ON_ABSENT;
    })
}

/// The tests that have begun, and those that have ended.
static BEGUN: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

/// The first in the list and the last to begin.
fn by_itself() {
    assert_eq!(BEGUN.load(SeqCst), ENDED.load(SeqCst), "another test runs");
    println!("alone after {} others", ENDED.load(SeqCst));
}

fn plain() {
    BEGUN.fetch_add(1, SeqCst);
    std::thread::sleep(Duration::from_millis(50));
    ENDED.fetch_add(1, SeqCst);
}

fn with_what_is_there() {
    plain();
}

fn with_what_is_absent() {
    panic!("performed without what it needs");
}

fn with_what_needs_the_absent() {
    panic!("performed without what it needs");
}
