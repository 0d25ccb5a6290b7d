//! Writes the page of plots.

use std::path::Path;

use anyhow::{Context as _, Result};
use pagelab_analysis::findings::Assessment;
use pagelab_report::Section;

/// Draws runs and what they say into `file`.
///
/// # Errors
/// When the file cannot be written.
pub fn write(assessment: &Assessment, file: &Path) -> Result<()> {
    put(&pagelab_report::page(assessment), file)
}

/// Draws finished sections into `file`.
///
/// # Errors
/// When the file cannot be written.
pub fn write_document(title: &str, sections: &[Section], file: &Path) -> Result<()> {
    put(&pagelab_report::document(title, sections), file)
}

fn put(html: &str, file: &Path) -> Result<()> {
    crate::file::write(file, |out| Ok(out.write_all(html.as_bytes())?)).context("the page of plots")
}
