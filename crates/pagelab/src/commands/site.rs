//! `pagelab site DIR`: the notebook as a static site.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use pagelab_notebook::Notebook;
use pagelab_report::site::INDEX;
use pagelab_report::text;
use serde_json::json;

use crate::context::Context;
use crate::output::{self, say};
use crate::site;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab site public\n  pagelab --notebook nightly.db site public --full\n",
    after_help = "The site needs no server: open DIR/index.html. The index lists all runs, with a filter. Each run has \
a page, any two runs can be compared, and a page shows the history of every series of nine or more runs. The pages of \
1,000 runs take about 40 MB: a page that would exceed its share leaves out charts and states how many. A second call \
replaces the files of the first, and no others."
)]
pub struct Arguments {
    /// The folder: new, empty, or written by this command
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Draw every chart of every run, however large the site becomes
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Writes the site.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let notebook = Notebook::open_existing(&context.notebook)?;
    if notebook.entries()?.is_empty() {
        return Err(anyhow!("{}: no run yet\nhint: 'pagelab run' makes one", context.notebook.display()));
    }
    let written = site::write(&notebook, &arguments.folder, arguments.full, context.quiet || arguments.json)?;
    let index = arguments.folder.join(INDEX);
    if arguments.json {
        return output::print_json(
            "site",
            json!({
                "index": index,
                "runs": written.runs,
                "unreadable": written.unreadable,
                "limited": written.limited,
                "files": written.files,
                "bytes": written.bytes,
                "changed": written.changed,
                "removed": written.removed,
            }),
        );
    }
    if context.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    let count = |n: usize, one: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{} {one}s", text::count(n as f64)),
    };
    say!(
        "{}: {}, {}, {}",
        index.display(),
        count(written.runs, "run"),
        count(written.files, "file"),
        text::bytes(written.bytes as f64)
    );
    if written.unreadable > 0 {
        say!("{} cannot be read: the index says why.", count(written.unreadable, "run"));
    }
    if written.limited > 0 {
        say!("The pages of {} lack charts, for their size: --full draws all.", count(written.limited, "run"));
    }
    Ok(ExitCode::SUCCESS)
}
