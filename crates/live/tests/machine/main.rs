//! Parts of the crate that only some machines can perform: the processor's clock.

mod clock;

use std::process::ExitCode;

use pagelab_testing::run_in_turn;

fn main() -> ExitCode {
    run_in_turn(clock::tests())
}
