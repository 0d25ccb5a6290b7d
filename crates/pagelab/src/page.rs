//! Writes the page of plots, wholly or not at all.

use std::path::Path;

use anyhow::{Context as _, Result};
use pagelab_experiment::Run;

/// Draws `runs` with the verdict's `lines` into `file`: a neighbour first, then renamed, so that a
/// full disk leaves an older page as it was.
///
/// # Errors
/// When the file cannot be written.
pub fn write(runs: &[&Run], lines: &[String], file: &Path) -> Result<()> {
    let html = pagelab_report::page(&pagelab_report::PageInput {
        title: title(runs),
        verdict: lines.to_vec(),
        runs: runs.to_vec(),
        comparisons: crate::comparison::tables(runs),
    });
    let mut neighbour = file.as_os_str().to_owned();
    neighbour.push(".new");
    let neighbour = Path::new(&neighbour);
    let written = std::fs::write(neighbour, html).and_then(|()| std::fs::rename(neighbour, file));
    if written.is_err() {
        let _ = std::fs::remove_file(neighbour);
    }
    written.with_context(|| format!("the page cannot be written to {}", file.display()))
}

fn title(runs: &[&Run]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.header.name.as_str()).collect();
    match names.as_slice() {
        [first, .., last] if names.len() > 4 => format!("{first} … {last} ({} runs)", names.len()),
        _ => names.join(", "),
    }
}
