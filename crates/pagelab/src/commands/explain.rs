//! `pagelab explain TERM`: what a metric or a term of the output means.

use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::declaration::closest;
use pagelab_experiment::glossary::{Entry, metrics, terms};
use serde_json::json;

use crate::context::Context;
use crate::failure::usage;
use crate::output::{self, print_json, say};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab explain refault\n  pagelab explain faults.major\n  pagelab explain working set\n"
)]
pub struct Arguments {
    /// The metric or term; without one, all names
    #[arg(value_name = "TERM")]
    term: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print everything as docs/glossary.md
    #[arg(long, conflicts_with_all = ["term", "json"])]
    markdown: bool,
}

/// Prints the paragraph.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if arguments.markdown {
        output::text(&markdown());
        return Ok(ExitCode::SUCCESS);
    }
    let all: Vec<Entry> = terms().into_iter().chain(metrics()).collect();
    let chosen = match arguments.term.join(" ") {
        term if term.is_empty() => all,
        term => vec![found(&term, all)?],
    };
    if arguments.json {
        let list: Vec<_> = chosen.iter().map(|e| json!({"name": e.name, "text": e.text})).collect();
        return print_json("terms", list.into());
    }
    if arguments.term.is_empty() {
        let names = |entries: Vec<Entry>| entries.iter().map(|e| e.name).collect::<Vec<_>>().join("; ");
        output::sentences(&names(terms()), "Terms: ", "  ", &context.style);
        say!();
        output::sentences(&names(metrics()), "Metrics: ", "  ", &context.style);
    }
    for entry in chosen.iter().filter(|_| !arguments.term.is_empty()) {
        output::sentences(&format!("{}: {}", entry.name, entry.text), "", "  ", &context.style);
    }
    Ok(ExitCode::SUCCESS)
}

/// The entry of this name, however it is written: case, hyphens, a plural.
fn found(term: &str, all: Vec<Entry>) -> Result<Entry> {
    let plain = |name: &str| name.to_lowercase().replace(['-', '_'], " ").trim_end_matches('s').to_owned();
    // «swap-in, swap-out» is one entry of two names.
    let is = |entry: &Entry| {
        plain(entry.name) == plain(term) || entry.name.split(", ").any(|name| plain(name) == plain(term))
    };
    if let Some(entry) = all.iter().find(|entry| is(entry)) {
        return Ok(entry.clone());
    }
    let meant = closest(term, all.iter().map(|entry| entry.name));
    let meant = meant.map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"));
    Err(usage(format!("unknown term '{term}'{meant}; 'pagelab explain' lists all")))
}

/// docs/glossary.md.
fn markdown() -> String {
    let paragraphs = |entries: Vec<Entry>| -> String {
        entries.iter().map(|e| format!("\n**{}**: {}\n", e.name, e.text)).collect()
    };
    format!(
        "# Glossary\n\nThe terms and metrics of pagelab's output, as `pagelab explain TERM` gives them. This file is what \
         `pagelab explain --markdown` prints.\n\n## Terms\n{}\n## Metrics\n{}",
        paragraphs(terms()),
        paragraphs(metrics())
    )
}
