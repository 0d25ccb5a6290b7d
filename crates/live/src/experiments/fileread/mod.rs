//! `fileread` and `seqread` on the running kernel: what reading a file costs (McDougall 2005).

pub mod random;
pub mod sequential;

use std::fs::File;

use pagelab_experiment::{Recorder, Result};
use pagelab_kernel::region::page_size;

use crate::harness::context::ExecutionContext;

/// The note on io_uring where it is refused.
const NO_IO_URING: &str = "io_uring is refused here; it takes Linux 5.6 and sysctl kernel.io_uring_disabled=0, and containers often forbid it";

/// Writes a file of `bytes` to the scratch place; on disk, out of the cache.
fn write(
    experiment: &str,
    bytes: u64,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<File> {
    let pages = (bytes as usize).div_ceil(page_size()).max(1);
    context.write_scratch(experiment, pages, recorder)
}
