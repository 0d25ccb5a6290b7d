//! `pagelab list`: the runs in the notebook.

use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::RunHeader;
use pagelab_notebook::{Entry, Notebook, Summary};
use pagelab_report::text::{self, Style};
use serde_json::{Value, json};

use crate::context::Context;
use crate::output::{print_json, say};
use crate::terminal;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Examples:\n  pagelab list\n  pagelab --notebook other.db list --check\n")]
pub struct Arguments {
    /// Read every figure of every run to find those that cannot be read
    #[arg(long)]
    check: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the runs, the oldest first.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let notebook = Notebook::open_existing(&context.notebook)?;
    let list = if arguments.check { notebook.checked_entries()? } else { notebook.entries()? };
    if arguments.json {
        return print_json("runs", list.iter().map(object).collect());
    }
    if list.is_empty() {
        say!("No run yet in {}: try 'pagelab run'.", context.notebook.display());
        return Ok(ExitCode::SUCCESS);
    }
    let rows = list.iter().map(row);
    // A line each: what has no place at its end, `pagelab show` has.
    let headings = ["id", "name", "started (UTC)", "done", "experiment", "target · setting · parameters"];
    let whole = Style { width: usize::from(u16::MAX), ..context.style };
    let room = if terminal::bounded() { context.style.width } else { whole.width };
    for line in text::table(&headings, &rows.collect::<Vec<_>>(), &whole).lines() {
        say!("{}", cut(line, room));
    }
    Ok(ExitCode::SUCCESS)
}

/// A run as JSON.
fn object(entry: &Entry) -> Value {
    match entry {
        Entry::Readable(s) => json!({
            "id": s.id,
            "name": s.header.name,
            "batch": s.header.batch,
            "started": s.header.started,
            "experiment": s.header.experiment,
            "target": s.header.target,
            "setting": s.header.setting,
            "repetitions": s.repetitions,
            "done": s.done,
        }),
        Entry::Unreadable(run) => json!({
            "id": run.id,
            "name": run.name,
            "started": run.started,
            "unreadable": run.why,
        }),
    }
}

/// A run as cells.
fn row(entry: &Entry) -> Vec<String> {
    let (started, repetitions, experiment, what) = match entry {
        Entry::Readable(s) => {
            (&s.header.started, repetitions(s), s.header.experiment.name(), what(&s.header))
        }
        Entry::Unreadable(run) => {
            (&run.started, "–".to_owned(), run.experiment.as_str(), format!("unreadable: {}", run.why))
        }
    };
    let started = started.get(..16).unwrap_or(started).replace('T', " ");
    vec![entry.id().to_string(), entry.name().to_owned(), started, repetitions, experiment.to_owned(), what]
}

fn repetitions(run: &Summary) -> String {
    if run.done == run.repetitions {
        run.done.to_string()
    } else {
        format!("{} of {}", run.done, run.repetitions)
    }
}

fn what(header: &RunHeader) -> String {
    let parts = [header.target.brief(), header.setting.to_string(), header.experiment.to_string()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// The line, or its beginning and an ellipsis. Escape sequences take no room and are kept.
fn cut(line: &str, room: usize) -> String {
    let mut sequence = false;
    let takes_room = |c: char| {
        sequence |= c == '\u{1b}';
        let visible = !sequence;
        sequence &= c != 'm';
        usize::from(visible)
    };
    let widths: Vec<usize> = line.chars().map(takes_room).collect();
    if room == 0 || widths.iter().sum::<usize>() <= room {
        return line.to_owned();
    }
    let visible = line.chars().zip(&widths).filter(|(_, width)| **width == 1).map(|(c, _)| c);
    let rest = if visible.skip(room - 1).all(char::is_whitespace) { ' ' } else { '…' };
    let mut left = room;
    let mut shown = String::new();
    for (c, width) in line.chars().zip(widths) {
        if width == 1 && left == 1 {
            shown.push(rest);
        } else if width == 0 || left > 1 {
            shown.push(c);
        }
        left = left.saturating_sub(width);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_take_no_room() {
        let bold = "\u{1b}[1mname\u{1b}[0m  \u{1b}[1mexperiment\u{1b}[0m";
        assert_eq!(cut(bold, 16), bold);
        assert_eq!(cut(bold, 10), "\u{1b}[1mname\u{1b}[0m  \u{1b}[1mexp…\u{1b}[0m");
        assert_eq!(cut("ab    ", 4), "ab  ", "blanks are nothing to miss");
        assert_eq!((cut("abcdef", 6).as_str(), cut("abcdef", 4).as_str()), ("abcdef", "abc…"));
    }
}
