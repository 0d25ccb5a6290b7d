//! `fileread` and `seqread` on the running kernel: what reading a file costs (McDougall 2005).

mod cache;
mod device;
pub mod random;
pub mod sequential;

use std::fs::File;

use pagelab_experiment::{Failure, Recorder};

use crate::observe::failed;
use crate::perform::Place;
use crate::region::{self, page_size};

/// Writes a file of `bytes` to the scratch place; on disk, out of the cache.
fn write(bytes: u64, place: &Place, recorder: &mut dyn Recorder) -> Result<File, Failure> {
    let path = place.scratch.as_ref().ok_or_else(|| {
        Failure::unsupported("there is no file to read", "give the target a folder for scratch files")
    })?;
    let pages = (bytes as usize).div_ceil(page_size()).max(1);
    let written = region::write_file(path, pages, |done, of| recorder.progress("write", done, of));
    written.map_err(failed(&format!("writing {pages} pages to {}", path.display())))
}
