//! `pagelab report RUN… -o FILE`: runs as one self-contained page of plots.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_analysis::findings::assess;
use pagelab_experiment::Run;
use pagelab_notebook::Notebook;

use crate::context::Context;
use crate::output::say;
use crate::{file, page};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab report @1 -o page.html\n  pagelab report before after -o compared.html\n"
)]
pub struct Arguments {
    /// The runs: names, ids, @1 for the newest
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// The page's file; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// Writes the page.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let notebook = Notebook::open_existing(&context.notebook)?;
    let runs = arguments
        .runs
        .iter()
        .map(|name| Ok(notebook.load(notebook.resolve(name)?)?))
        .collect::<Result<Vec<Run>>>()?;
    let runs: Vec<&Run> = runs.iter().collect();
    page::write(&assess(&runs), &arguments.output)?;
    if !context.quiet && !file::is_stdout(&arguments.output) {
        say!("{}", arguments.output.display());
    }
    Ok(ExitCode::SUCCESS)
}
