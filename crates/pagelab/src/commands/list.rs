//! `pagelab list`: the runs in the notebook.

use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::RunHeader;
use pagelab_notebook::Notebook;
use pagelab_report::text::{self, Style};
use serde_json::json;

use super::Context;
use crate::output::{print_json, say};
use crate::terminal;

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
    let rows = list.iter().map(|s| {
        let repetitions = if s.done == s.repetitions {
            s.done.to_string()
        } else {
            format!("{} of {}", s.done, s.repetitions)
        };
        vec![
            s.id.to_string(),
            s.header.name.clone(),
            s.header.started.get(..16).unwrap_or(&s.header.started).replace('T', " "),
            repetitions,
            s.header.experiment.name().to_owned(),
            what(&s.header),
        ]
    });
    // A line each: what has no place at its end, `pagelab show` has.
    let headings = ["id", "name", "started (UTC)", "done", "experiment", "target · setting · parameters"];
    let whole = Style { width: usize::from(u16::MAX), ..context.style };
    let room = if terminal::bounded() { context.style.width } else { whole.width };
    for line in text::table(&headings, &rows.collect::<Vec<_>>(), &whole).lines() {
        say!("{}", cut(line, room));
    }
    Ok(ExitCode::SUCCESS)
}

fn what(header: &RunHeader) -> String {
    let parts = [header.target.brief(), header.setting.to_string(), header.experiment.to_string()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// The line, or its beginning and an ellipsis.
fn cut(line: &str, room: usize) -> String {
    if line.chars().count() <= room {
        return line.to_owned();
    }
    line.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}
