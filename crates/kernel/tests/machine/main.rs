//! Parts of the crate that only root, or only some kernels, can perform: the counting of tracepoints.

mod bpf;

use std::process::ExitCode;

use pagelab_testing::run_in_turn;

fn main() -> ExitCode {
    run_in_turn(bpf::tests())
}
