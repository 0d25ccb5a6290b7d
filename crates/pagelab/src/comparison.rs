//! Comparisons as tables: on the terminal, as JSON, and for the page. The figures are made in
//! `pagelab_analysis::comparison`.

use anyhow::Result;
use pagelab_analysis::comparison::{Comparison, Line, Verdict, compare};
use pagelab_experiment::Run;
use pagelab_report::TextTable;
use pagelab_report::text::{self, DASH};
use serde_json::{Value, json};

use crate::commands::Context;
use crate::output::say;
use crate::tables::{self, side_by_side};

/// The columns of a comparison.
const HEADINGS: [&str; 7] = ["metric", "before", "after", "change", "95 % interval", "p", "verdict"];

/// Which lines to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Metrics without a difference as well.
    pub all: bool,
}

/// Whether comparing `runs` says anything: the same experiment, more than once.
pub fn comparable(runs: &[&Run]) -> bool {
    let [first, others @ ..] = runs else { return false };
    !others.is_empty()
        && others.iter().all(|run| run.header.experiment == first.header.experiment)
        && runs.iter().all(|run| run.done().next().is_some())
}

/// Every other run against the first.
pub fn against_first(runs: &[&Run]) -> Vec<Comparison> {
    match runs {
        [first, others @ ..] => others.iter().map(|other| compare(first, other)).collect(),
        [] => Vec::new(),
    }
}

/// Finished tables for the page; none when the runs are not comparable.
pub fn tables(runs: &[&Run]) -> Vec<TextTable> {
    if !comparable(runs) {
        return Vec::new();
    }
    let table = |comparison: Comparison| TextTable {
        title: title(&comparison, runs),
        headings: headings(&comparison),
        rows: comparison.lines.iter().map(row).collect(),
        remarks: enough(&comparison).into_iter().collect(),
        warnings: comparison.warnings,
    };
    let mut list: Vec<TextTable> = against_first(runs).into_iter().map(table).collect();
    list.extend(runs[1..].iter().flat_map(|other| side_by_side(runs[0], other)));
    list
}

/// Prints every other run against the first.
pub fn print(runs: &[&Run], options: &Options, context: &Context) -> Result<()> {
    for comparison in against_first(runs) {
        print_one(&comparison, runs, options, context);
    }
    Ok(())
}

/// What is compared with what: the runs, and their targets where these differ.
fn title(comparison: &Comparison, runs: &[&Run]) -> String {
    let of = |name: &str| runs.iter().find(|run| run.header.name == name);
    let (before, after) = (&comparison.names.0, &comparison.names.1);
    match (of(before), of(after)) {
        (Some(a), Some(b)) if a.header.target != b.header.target => {
            format!("{after} ({}) against {before} ({})", b.header.target, a.header.target)
        }
        _ => format!("{after} against {before}"),
    }
}

/// How many repetitions could tell, where there are too few.
fn enough(comparison: &Comparison) -> Option<String> {
    let needed = comparison.lines.iter().filter_map(|line| match line.verdict {
        Verdict::TooFew(needed) => Some(needed),
        _ => None,
    });
    let needed = needed.max()?;
    Some(format!(
        "{needed} repetitions on each side could tell such a difference from chance (--repeat {needed})."
    ))
}

fn headings(comparison: &Comparison) -> Vec<String> {
    let mut headings = HEADINGS.map(str::to_owned);
    headings[1].clone_from(&comparison.names.0);
    headings[2].clone_from(&comparison.names.1);
    headings.to_vec()
}

/// Prints one comparison: the metrics that differ (or all), then what limits it.
pub fn print_one(comparison: &Comparison, runs: &[&Run], options: &Options, context: &Context) {
    say!("{}", title(comparison, runs));
    let shown = |line: &&Line| options.all || line.verdict != Verdict::NoDifference;
    let lines: Vec<&Line> = comparison.lines.iter().filter(shown).collect();
    let rows: Vec<Vec<String>> = lines.iter().map(|line| row(line)).collect();
    if !rows.is_empty() {
        say!("{}", text::table(&headings(comparison), &rows, &context.style));
    }
    let hidden: Vec<&Line> = comparison.lines.iter().filter(|line| !shown(line)).collect();
    if !hidden.is_empty() {
        let names: Vec<String> = hidden.iter().map(|line| no_difference(line)).collect();
        say!("No difference seen: {}.", names.join(", "));
    }
    if comparison.lines.is_empty() {
        say!("No metric was measured on both sides.");
    }
    if let Some(sentence) = enough(comparison) {
        say!("{sentence}");
    }
    for warning in &comparison.warnings {
        say!("Beware: {warning}");
    }
    say!();
    let of = |name: &str| runs.iter().find(|run| run.header.name == name);
    if let (Some(before), Some(after)) = (of(&comparison.names.0), of(&comparison.names.1)) {
        side_by_side(before, after).iter().for_each(|table| tables::print(table, context));
    }
}

/// A metric without a difference, and how large a change would have been seen.
fn no_difference(line: &Line) -> String {
    match line.visible {
        Some(visible) => format!("{} (±{:.0} % would have been)", line.name, (visible * 100.0).max(1.0)),
        None => line.name.clone(),
    }
}

fn row(line: &Line) -> Vec<String> {
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let value = |value: f64| text::value(Some(value), line.unit);
    vec![
        line.name.clone(),
        value(line.medians.0),
        value(line.medians.1),
        line.change.map_or_else(|| DASH.to_owned(), percent),
        line.interval
            .map_or_else(|| DASH.to_owned(), |(low, high)| format!("{} … {}", percent(low), percent(high))),
        line.p.map_or_else(|| DASH.to_owned(), p_value),
        line.verdict.words().to_owned(),
    ]
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// A comparison as JSON.
pub fn json(comparison: &Comparison) -> Value {
    let lines: Vec<Value> = comparison
        .lines
        .iter()
        .map(|line| {
            json!({
                "metric": line.name,
                "unit": line.unit,
                "before": { "median": line.medians.0, "values": line.baseline },
                "after": { "median": line.medians.1, "values": line.other },
                "change": line.change,
                "interval": line.interval.map(|(low, high)| [low, high]),
                "p": line.p,
                "visible_change": line.visible,
                "verdict": line.verdict.words(),
            })
        })
        .collect();
    json!({
        "before": comparison.names.0,
        "after": comparison.names.1,
        "metrics": lines,
        "warnings": comparison.warnings,
    })
}
