//! Comparisons as tables: on the terminal, as JSON, and for the page. The figures are made in
//! `pagelab_analysis::comparison`.

use pagelab_analysis::comparison::{Comparison, Line, Verdict, compare};
use pagelab_experiment::Run;
use pagelab_report::TextTable;
use pagelab_report::text::{self, DASH};
use serde_json::{Value, json};

use crate::context::Context;
use crate::output::{say, sentences};
use crate::tables::{self, side_by_side};

/// The columns of a comparison.
const HEADINGS: [&str; 7] = ["metric", "before", "after", "change", "95 % interval", "p", "verdict"];

/// The longest name that heads a column.
const LONG_NAME: usize = 12;

/// Which lines to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Metrics without a difference as well.
    pub all: bool,
    /// Nothing but what certainly differs.
    pub differences_alone: bool,
}

/// The runs that say something beside one another, in their order: those of one experiment, where it was
/// performed more than once.
fn groups<'a>(runs: &[&'a Run]) -> Vec<Vec<&'a Run>> {
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for run in runs.iter().filter(|run| run.done().next().is_some()) {
        match groups.iter_mut().find(|group| group[0].header.experiment == run.header.experiment) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// Every other run against the first.
pub fn against_first(runs: &[&Run]) -> Vec<Comparison> {
    match runs {
        [first, others @ ..] => others.iter().map(|other| compare(first, other)).collect(),
        [] => Vec::new(),
    }
}

/// Finished tables for the page; none when no runs are comparable.
pub fn tables(runs: &[&Run]) -> Vec<TextTable> {
    groups(runs).iter().flat_map(|group| tables_of(group)).collect()
}

/// The same of runs of one experiment.
fn tables_of(runs: &[&Run]) -> Vec<TextTable> {
    let table = |comparison: Comparison| TextTable {
        title: title(&comparison, runs),
        headings: headings(&comparison),
        rows: comparison.lines.iter().map(row).collect(),
        remarks: needed(&comparison).map(enough).into_iter().collect(),
        warnings: comparison.warnings,
    };
    let mut list: Vec<TextTable> = against_first(runs).into_iter().map(table).collect();
    list.extend(runs[1..].iter().flat_map(|other| side_by_side(runs[0], other)));
    list
}

/// Whether `runs` are of several experiments on several targets: too many to print all of each.
pub fn many(runs: &[&Run]) -> bool {
    let groups = groups(runs);
    groups.first().is_some_and(|group| group.len() < runs.len())
}

/// Prints the runs of each experiment that was performed more than once, every other against the first; of
/// [`many`] what certainly differs alone.
pub fn print(runs: &[&Run], context: &Context) {
    let many = many(runs);
    let options = Options { all: false, differences_alone: many };
    let comparisons: Vec<Comparison> = groups(runs).iter().flat_map(|group| against_first(group)).collect();
    let told = |comparison: &&Comparison| !many || comparison.lines.iter().any(differs);
    let (told, silent): (Vec<&Comparison>, Vec<&Comparison>) = comparisons.iter().partition(told);
    told.iter().for_each(|comparison| print_one(comparison, runs, &options, context));
    if !silent.is_empty() {
        let enough = silent.iter().filter_map(|comparison| needed(comparison)).max().map(enough);
        let text = format!(
            "Comparisons without a certain difference: {} of {}. {}",
            silent.len(),
            comparisons.len(),
            enough.unwrap_or_default()
        );
        sentences(text.trim_end(), "", "  ", &context.style);
        say!();
    }
}

/// Whether a metric certainly differs.
fn differs(line: &Line) -> bool {
    !matches!(line.verdict, Verdict::NoDifference | Verdict::TooFew(_))
}

/// What is compared with what: the runs, and their targets where these differ.
fn title(comparison: &Comparison, runs: &[&Run]) -> String {
    let of = |name: &str| runs.iter().find(|run| run.header.name == name);
    let (before, after) = (&comparison.names.0, &comparison.names.1);
    match (of(before), of(after)) {
        (Some(a), Some(b)) if a.header.target != b.header.target => {
            format!("{after} ({}) against {before} ({})", b.header.target.brief(), a.header.target.brief())
        }
        _ => format!("{after} against {before}"),
    }
}

/// How many repetitions on each side could tell, where there are too few.
fn needed(comparison: &Comparison) -> Option<usize> {
    let needed = comparison.lines.iter().filter_map(|line| match line.verdict {
        Verdict::TooFew(needed) => Some(needed),
        _ => None,
    });
    needed.max()
}

/// The same as a sentence.
fn enough(needed: usize) -> String {
    format!(
        "Too few repetitions to say: {needed} on each side could tell such a difference from chance (--repeat {needed})."
    )
}

fn headings(comparison: &Comparison) -> Vec<String> {
    let mut headings = HEADINGS.map(str::to_owned);
    let (before, after) = (&comparison.names.0, &comparison.names.1);
    // Longer ones would take the figures' room; the title has them.
    if before.len().max(after.len()) <= LONG_NAME {
        headings[1].clone_from(before);
        headings[2].clone_from(after);
    }
    headings.to_vec()
}

/// Prints one comparison: the metrics that differ (or all), then what limits it.
pub fn print_one(comparison: &Comparison, runs: &[&Run], options: &Options, context: &Context) {
    sentences(&title(comparison, runs), "", "  ", &context.style);
    let shown = |line: &&Line| match line.verdict {
        Verdict::NoDifference => options.all,
        Verdict::TooFew(_) => !options.differences_alone,
        _ => true,
    };
    let lines: Vec<&Line> = comparison.lines.iter().filter(shown).collect();
    let rows: Vec<Vec<String>> = lines.iter().map(|line| row(line)).collect();
    if !rows.is_empty() {
        say!("{}", text::table(&headings(comparison), &rows, &context.style));
    }
    let hidden: Vec<&Line> = comparison.lines.iter().filter(|line| !shown(line)).collect();
    if !hidden.is_empty() && !options.differences_alone {
        let names: Vec<String> = hidden.iter().map(|line| no_difference(line)).collect();
        let same = format!("No difference seen: {}.", names.join(", "));
        sentences(&same, "", "  ", &context.style);
    }
    if comparison.lines.is_empty() {
        say!("No metric was measured on both sides.");
    }
    if let Some(needed) = needed(comparison) {
        sentences(&enough(needed), "", "  ", &context.style);
    }
    for warning in &comparison.warnings {
        sentences(&format!("Beware: {warning}"), "", "  ", &context.style);
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
        match line.verdict {
            // How many would be enough stands below the table.
            Verdict::TooFew(_) => "too few".to_owned(),
            verdict => verdict.words().to_owned(),
        },
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
