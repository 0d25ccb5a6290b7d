//! `pagelab report RUN… -o FILE`: runs as one self-contained page of plots; of a trace's file the stream in space and time.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use pagelab_analysis::findings::assess;
use pagelab_experiment::Run;
use pagelab_notebook::Notebook;

use crate::context::Context;
use crate::failure::usage;
use crate::output::say;
use crate::{file, page, portrait};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab report @1 -o page.html\n  pagelab report before after -o compared.html\n  pagelab report sort.trace -o sort.html        # a recorded program\n"
)]
pub struct Arguments {
    /// The runs: names, ids, @1 for the newest; or a trace's file
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Of a recording one process alone: its number in what pagelab show FILE lists
    #[arg(long, value_name = "N")]
    process: Option<NonZeroU32>,
    /// The page's file; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// Writes the page.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if let [one] = arguments.runs.as_slice()
        && Path::new(one).is_file()
    {
        portrait::draw(Path::new(one), arguments.process, &arguments.output, context)?;
        if !context.quiet && !file::is_stdout(&arguments.output) {
            say!("{}", arguments.output.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.process.is_some() {
        return Err(usage(
            "--process needs a recording\nhint: pagelab report FILE.trace --process 2".to_owned(),
        ));
    }
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
