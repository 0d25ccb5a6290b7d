//! Writes the page of plots.

use std::path::Path;

use anyhow::{Context as _, Result};
use pagelab_analysis::findings::Assessment;
use pagelab_report::{Section, TextTable};

/// Draws runs and what they say into `file`.
///
/// # Errors
/// When the file cannot be written.
pub fn write(assessment: &Assessment, file: &Path) -> Result<()> {
    put(&pagelab_report::page(assessment), file)
}

/// Draws finished sections into `file`, after a table of all of them where there is one.
///
/// # Errors
/// When the file cannot be written.
pub fn write_document(
    title: &str,
    overview: Option<&TextTable>,
    sections: &[Section],
    file: &Path,
) -> Result<()> {
    put(&pagelab_report::document(title, overview, sections), file)
}

fn put(html: &str, file: &Path) -> Result<()> {
    crate::file::write(file, |out| Ok(out.write_all(html.as_bytes())?)).context("the page of plots")
}
