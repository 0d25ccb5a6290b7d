//! Parts of the crate that only root, or only some kernels, can perform: the confinement, the counting of
//! tracepoints, the processor's clock.

mod bpf;
mod clock;
mod confine;

use std::process::ExitCode;

use pagelab_testing::run_in_turn;

fn main() -> ExitCode {
    run_in_turn([bpf::tests(), clock::tests(), confine::tests()].concat())
}
