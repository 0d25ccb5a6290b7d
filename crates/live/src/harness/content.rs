//! How the pages of an experiment are filled.

use std::io;

use pagelab_experiment::experiments::Content;
use pagelab_kernel::content::{Filler, MAX_FILE_BYTES};

/// The filler of `content`.
///
/// # Errors
/// When its file cannot be read, or is empty.
pub fn filler(content: &Content) -> io::Result<Filler> {
    Ok(match content {
        Content::Compressible(share) => Filler::compressible(*share),
        Content::Random => Filler::compressible(0.0),
        Content::Zero => Filler::Zero,
        Content::File(path) => Filler::file(path)?,
    })
}

/// The bytes that the filler of `content` takes.
pub fn bytes(content: &Content) -> u64 {
    match content {
        Content::File(path) => {
            std::fs::metadata(path).map_or(MAX_FILE_BYTES, |m| m.len().min(MAX_FILE_BYTES))
        }
        _ => 0,
    }
}
