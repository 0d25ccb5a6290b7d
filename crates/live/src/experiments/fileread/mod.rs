//! `fileread` and `seqread` on the running kernel: what reading a file costs (McDougall 2005).

mod cache;
mod device;
pub mod random;
pub mod sequential;

use std::fs::File;

use pagelab_experiment::{Failure, Recorder};

use crate::place::Place;
use crate::region::page_size;

/// Writes a file of `bytes` to the scratch place; on disk, out of the cache.
fn write(experiment: &str, bytes: u64, place: &Place, recorder: &mut dyn Recorder) -> Result<File, Failure> {
    let pages = (bytes as usize).div_ceil(page_size()).max(1);
    place.write_scratch(experiment, pages, recorder)
}
