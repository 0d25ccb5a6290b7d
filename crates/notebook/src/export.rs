//! Writes runs for other programs: JSON whole, CSV and Parquet in long form (one figure a row).

mod json;
mod long;
#[cfg(feature = "parquet")]
mod parquet;

pub use long::{Row, rows};

use std::io::Write;

use pagelab_experiment::Run;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One document with everything, arrays unpacked.
    Json,
    /// Long form, with a heading.
    Csv,
    /// Long form, typed columns.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// An export that failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The output could not be written.
    #[error("the export could not be written: {0}")]
    Io(#[from] std::io::Error),
    /// The Parquet writer failed.
    #[cfg(feature = "parquet")]
    #[error("the export could not be written as Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Writes `runs` to `to`.
///
/// # Errors
/// When `to` cannot be written.
pub fn export(runs: &[Run], format: Format, mut to: impl Write + Send) -> Result<(), ExportError> {
    match format {
        Format::Json => json::write(runs, &mut to)?,
        Format::Csv => long::write_csv(runs, &mut to)?,
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::write(runs, &mut to)?,
    }
    Ok(to.flush()?)
}
