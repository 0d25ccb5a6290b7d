//! A harness of four tests: one needs nothing, one what is there, two what is absent. `tests/harness.rs` runs it
//! in every way.

use std::process::ExitCode;

use pagelab_testing::{Need, run, tests};

const THERE: Need = Need { name: "fixture-there", on: &[], met: || Ok(()) };
const ABSENT: Need = Need { name: "fixture-absent", on: &[], met: || Err("nobody has it".into()) };
const ON_ABSENT: Need = Need { name: "fixture-there", on: &[&ABSENT], met: || Ok(()) };

fn main() -> ExitCode {
    run(tests! {
        plain;
        with_what_is_there: THERE;
        with_what_is_absent: THERE, ABSENT;
        with_what_needs_the_absent: ON_ABSENT;
    })
}

fn plain() {}

fn with_what_is_there() {}

fn with_what_is_absent() {
    panic!("performed without what it needs");
}

fn with_what_needs_the_absent() {
    panic!("performed without what it needs");
}
