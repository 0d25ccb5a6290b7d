//! `pagelab list`: the runs in the notebook.

use std::process::ExitCode;

use anyhow::Result;
use pagelab_notebook::Notebook;
use pagelab_report::text;
use serde_json::json;

use super::Context;
use crate::output::print_json;
use crate::output::say;

/// The arguments.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the runs, the oldest first.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let notebook = Notebook::open_existing(&context.notebook)?;
    let list = notebook.list()?;
    if arguments.json {
        let list: Vec<_> = list
            .iter()
            .map(|s| {
                json!({
                    "id": s.id,
                    "name": s.header.name,
                    "batch": s.header.batch,
                    "started": s.header.started,
                    "experiment": s.header.experiment,
                    "target": s.header.target,
                    "setting": s.header.setting,
                    "repetitions": s.repetitions,
                    "done": s.done,
                })
            })
            .collect();
        return print_json("runs", list.into());
    }
    if list.is_empty() {
        say!("No run yet in {}: try 'pagelab run'.", context.notebook.display());
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = list
        .iter()
        .map(|s| {
            let repetitions = if s.done == s.repetitions {
                s.done.to_string()
            } else {
                format!("{} of {}", s.done, s.repetitions)
            };
            vec![
                s.id.to_string(),
                s.header.name.clone(),
                s.header.started.get(..19).unwrap_or(&s.header.started).replace('T', " "),
                s.header.experiment.to_string(),
                s.header.target.to_string(),
                s.header.setting.to_string(),
                repetitions,
            ]
        })
        .collect();
    let headings = ["id", "name", "started (UTC)", "experiment", "target", "setting", "done"];
    say!("{}", text::table(&headings, &rows, &context.style));
    Ok(ExitCode::SUCCESS)
}
