//! The index of a site: the table of its runs.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::row::{Row, State};
use crate::text;

/// The sortable columns, and whether the first click sorts in descending order.
const COLUMNS: [(&str, bool); 8] = [
    ("run", false),
    ("experiment", false),
    ("target", false),
    ("kernel", false),
    ("started (UTC)", true),
    ("n", true),
    ("primary metric (median)", false),
    ("state", false),
];
/// The column by which the table is initially sorted, in descending order.
const SORTED: usize = 4;

/// The title: the number of runs and experiments, and the dates.
pub(super) fn title(rows: &[Row]) -> String {
    let count = |n: usize, one: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{} {one}s", text::count(n as f64)),
    };
    let experiments: BTreeSet<&str> = rows.iter().map(|row| row.experiment.as_str()).collect();
    let days: BTreeSet<&str> = rows.iter().map(Row::day).filter(|day| !day.is_empty()).collect();
    let runs = format!("{} of {}", count(rows.len(), "run"), count(experiments.len(), "experiment"));
    match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => {
            format!("{runs} from {first} to {last}, newest first")
        }
        (Some(day), _) => format!("{runs} on {day}, newest first"),
        _ => "No runs".to_owned(),
    }
}

/// The filter and the table; `history` is the sentence about the series, with its link.
pub(super) fn body(rows: &[Row], history: &Markup) -> Markup {
    html! {
        p.soft { "Each run has its own page. Any two runs can be " a href="compare.html" { "compared" } "." }
        (history)
        div.bar-top role="search" {
            input #filter type="search" placeholder="filter by words: name, experiment, target, kernel, revision" aria-label="Filter the runs" autocomplete="off" spellcheck="false";
            span.soft #shown role="status" {}
            span.pair {
                span { "before: " b #before { (text::DASH) } }
                span { "after: " b #after { (text::DASH) } }
                a.do #compare aria-disabled="true" { "compare" }
            }
        }
        div.scroll tabindex="0" role="region" aria-label="Runs" { table.runs {
            thead { tr {
                @for (n, (name, descending)) in COLUMNS.iter().enumerate() {
                    @let sorted = if n == SORTED { "descending" } else { "none" };
                    th scope="col" aria-sort=(sorted) data-first=[descending.then_some("descending")] { button type="button" { (name) } }
                }
                th.choose scope="col" { "before / after" }
            } }
            tbody #runs { @for row in rows { (line(row)) } }
        } }
    }
}

fn line(row: &Row) -> Markup {
    let (done, begun) = row.repetitions;
    let started = row.started.get(..16).unwrap_or(&row.started).replace('T', " ");
    html! {
        tr data-id=(row.id) data-words=[(!row.revision.is_empty()).then_some(&row.revision)] {
            td.name { @match &row.page { Some(page) => a href=(page) { (row.name) }, None => (row.name) } }
            td.what { (row.experiment) @if !row.parameters.is_empty() { " " span.soft { (row.parameters) } } }
            td.where { (row.target) @if !row.setting.is_empty() { " " span.soft.setting { (row.setting) } } }
            td.kernel { (row.kernel) @if !row.revision.is_empty() { " " span.soft { "revision " (row.revision) } } }
            td.date { (started) }
            td.n data-number=(done) { @if done == begun { (done) } @else { (done) " of " (begun) } }
            @match &row.primary {
                Some(figure) => td.figure data-group=(figure.metric) data-number=(figure.value) { span.soft { (figure.metric) } " " (figure.text) },
                None => td.figure { (text::DASH) },
            }
            (state(&row.state))
            td.choose { @if row.page.is_some() && done > 0 {
                @for side in ["before", "after"] {
                    label { input type="radio" name=(side) value=(row.id) data-name=(row.name) aria-label={(side) ": " (row.name)}; }
                }
            } }
        }
    }
}

fn state(state: &State) -> Markup {
    match state {
        State::Complete => html! { td.state { "complete" } },
        State::Warning => html! { td.state.warned { "warning" } },
        State::Failed => html! { td.state.failed { "failed" } },
        State::Running => html! { td.state { "running" } },
        State::Unreadable(why) => html! { td.state.failed title=(why) { "unreadable" } },
    }
}
