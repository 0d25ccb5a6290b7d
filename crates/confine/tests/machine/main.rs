//! The confinement on the real kernel, which only root can set up.

mod confine;

use std::process::ExitCode;

use pagelab_testing::run_in_turn;

fn main() -> ExitCode {
    run_in_turn(confine::tests())
}
