//! `pagelab show RUN`: one run's figures, what was counted, conditions and remarks; of a recording's file what it holds.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_analysis::findings::assess;
use pagelab_notebook::Notebook;
use pagelab_report::runs;

use crate::context::Context;
use crate::output::text;
use crate::{recordings, summary};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab show @1\n  pagelab show mapanon-3 --all\n  pagelab show make.trace                      # a recording: its processes\n"
)]
pub struct Arguments {
    /// The run: a name, an id, @1 for the newest, @2 for the one before; or the file of a recording
    #[arg(value_name = "RUN", default_value = "@1")]
    run: String,
    /// The kernel's counters and the whole environment as well; of a recording every process
    #[arg(short, long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the run.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let file = Path::new(&arguments.run);
    if file.is_file() {
        recordings::show(file, arguments.all, arguments.json, context)?;
        return Ok(ExitCode::SUCCESS);
    }
    let notebook = Notebook::open_existing(&context.notebook)?;
    let run = notebook.load(notebook.resolve(&arguments.run)?)?;
    let assessment = assess(&[&run]);
    if arguments.json {
        return summary::print_json(&assessment, None);
    }
    text(&(runs::terminal(&run, arguments.all, &context.style) + "\n"));
    text(&runs::verdict(&assessment.findings, &context.style));
    summary::print_tables(&assessment.findings, context);
    Ok(ExitCode::SUCCESS)
}
