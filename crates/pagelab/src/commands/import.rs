//! `pagelab import FILE`: takes the runs of another notebook over.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_notebook::Notebook;

use crate::context::Context;
use crate::output::say;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Example:\n  pagelab import colleague.db\n",
    after_help = "Unreadable runs are skipped and reported; the exit status is then 3."
)]
pub struct Arguments {
    /// The other notebook
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Imports and says what came.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let mut notebook = Notebook::open(&context.notebook)?;
    let report = notebook.import(&arguments.file)?;
    for (from, to) in &report.imported {
        if from == to { say!("imported {to}") } else { say!("imported {from} as {to}") }
    }
    if report.known > 0 {
        say!("{} known already", report.known);
    }
    for (name, why) in &report.unreadable {
        crate::output::remark!("skipped '{name}': it cannot be read: {why}");
    }
    if !report.unreadable.is_empty() {
        return Ok(ExitCode::from(3));
    }
    if report.imported.is_empty() && report.known == 0 {
        say!("{} holds no runs", arguments.file.display());
    }
    Ok(ExitCode::SUCCESS)
}
