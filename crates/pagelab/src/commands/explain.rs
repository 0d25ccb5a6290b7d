//! `pagelab explain TERM`: what a metric or a term of the output means.

use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::declaration::closest;
use pagelab_experiment::glossary::{Entry, metrics, terms};
use pagelab_experiment::metrics::current;
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
}

/// Prints the paragraph.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let all: Vec<Entry> = terms().into_iter().chain(metrics()).collect();
    let chosen = match arguments.term.join(" ") {
        term if term.is_empty() => all,
        term => found(&term, all)?,
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

/// The entries of this name, the exact one first, then those that differ in case, hyphens or a
/// plural: a term and a metric can share a name. A metric is also found by its former name.
fn found(term: &str, all: Vec<Entry>) -> Result<Vec<Entry>> {
    let term = current(term);
    let plain = |name: &str| name.to_lowercase().replace(['-', '_'], " ").trim_end_matches('s').to_owned();
    // "swap-in, swap-out" is one entry of two names.
    let is = |entry: &Entry| {
        plain(entry.name) == plain(term) || entry.name.split(", ").any(|name| plain(name) == plain(term))
    };
    let mut found: Vec<Entry> = all.iter().filter(|entry| is(entry)).cloned().collect();
    if !found.is_empty() {
        found.sort_by_key(|entry| entry.name != term);
        return Ok(found);
    }
    let names = || all.iter().map(|entry| entry.name);
    let with = names().filter(|name| plain(name).split(' ').any(|word| word == plain(term)));
    let with: Vec<String> = with.map(|name| format!("'{name}'")).collect();
    let meant = match (with.as_slice(), closest(term, names())) {
        ([_, ..], _) => format!(" (there is {})", with.join(", ")),
        ([], Some(name)) => format!(" (did you mean '{name}'?)"),
        ([], None) => String::new(),
    };
    Err(usage(format!("unknown term '{term}'{meant}; 'pagelab explain' lists all")))
}
