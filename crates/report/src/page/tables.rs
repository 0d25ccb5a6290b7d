//! The page's tables: figures, comparisons, where the time went, conditions, counters, remarks.

use pagelab_experiment::environment;
use std::collections::BTreeSet;

use maud::{Markup, html};
use pagelab_analysis::comparison::Comparison;
use pagelab_analysis::finding::{Finding, Severity};
use pagelab_analysis::stats::median;
use pagelab_experiment::observation::{Level, Unit};
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{MetricId, metrics};
use pagelab_experiment::{Outcome, Run, TargetSpec};

use super::contents::Contents;
use super::shown::Shown;
use super::{bars, forest, glossary};
use crate::runs::{self, Measure, range};
use crate::table::TextTable;
use crate::{comparisons, findings, text};

/// What was run, when, where and with what, in a line.
pub fn byline(named: &str, runs: &[&Run]) -> Markup {
    let Some(run) = runs.first() else { return html! { p.soft { "No runs." } } };
    html! {
        p.soft {
            (named) " · "
            (started(run)) " UTC"
            @for part in runs::machines(runs) { " · " (part) }
            " · pagelab " (run.header.pagelab)
        }
    }
}

/// When a run began, to the minute.
fn started(run: &Run) -> String {
    run.header.started.get(..16).unwrap_or(&run.header.started).replace('T', " ")
}

/// The findings, a line each.
pub fn verdict(list: &[&Finding]) -> Markup {
    html! {
        @if !list.is_empty() {
            section.verdict aria-label="Verdict" { ul {
                @for finding in list {
                    li class=[(finding.severity != Severity::Info).then_some("warning")] { (findings::line(finding)) }
                }
            } }
        }
    }
}

/// A comparison: the changes with their intervals, the rows that differ.
pub fn comparison(comparison: &Comparison, contents: &mut Contents) -> Markup {
    html! {
        section {
            (contents.heading(&comparisons::title(comparison)))
            (forest::plot(comparison))
            @if comparison.of_single_counts() { p.soft { "No test: " (comparisons::single_counts()) "." } }
            @if let Some(needed) = comparison.repetitions_needed() { p.soft { (comparisons::repetitions(needed)) } }
            @if !comparison.caveats.is_empty() {
                ul.verdict.warning { @for caveat in &comparison.caveats { li { "Warning: " (comparisons::caveat(caveat)) } } }
            }
        }
        @for table in &comparisons::row_tables(comparison) { (text(table, contents)) }
    }
}

/// A table of texts with its heading.
pub fn text(table: &TextTable, contents: &mut Contents) -> Markup {
    html! { section { (contents.heading(&table.title)) (bare(table)) } }
}

/// A table of texts alone.
pub fn bare(table: &TextTable) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table" { table {
            thead { tr { @for heading in &table.headings { th { (heading) } } } }
            tbody { @for (n, row) in table.rows.iter().enumerate() { tr { @for (place, cell) in row.iter().enumerate() {
                @let tone = table.tones.get(n).filter(|_| place + 1 == row.len());
                @if let Some(tone) = tone { td class=(bars::class(*tone)) { (cell) } }
                @else { td class=[(cell.chars().count() > 24).then_some("text")] { (cell) } }
            } } } }
        } }
        @for remark in &table.remarks { p.soft { (remark) } }
    }
}

/// Which repetition the plots show, and those that do not count.
pub fn drawn(runs: &[&Run], shown: &[Shown]) -> Markup {
    html! {
        @let several: Vec<&Shown> = shown.iter().filter(|s| s.run.repetitions.len() > 1).collect();
        @if !several.is_empty() {
            p.soft {
                "Plots show the repetition of median elapsed time ("
                @for (n, s) in several.iter().enumerate() {
                    @if n > 0 { ", " }
                    @if several.len() > 1 { (s.name()) ": " }
                    "number " (s.repetition.number) " of " (s.run.repetitions.len())
                }
                "; of an even number the shorter of the middle two); the spread is in the table of figures."
            }
        }
        @for run in runs {
            @for repetition in &run.repetitions {
                @match &repetition.outcome {
                    Outcome::Done => {},
                    Outcome::Interrupted => p.verdict.warning { (run.header.name) ": repetition " (repetition.number) " was interrupted and does not count." },
                    Outcome::Torn => p.verdict.warning { (run.header.name) ": repetition " (repetition.number) " is torn (pagelab or the machine was killed) and does not count." },
                    Outcome::Failed(failure) => p.verdict.warning { (run.header.name) ": repetition " (repetition.number) " failed and does not count: " (failure.full()) },
                }
            }
        }
    }
}

/// Where the time went: user, system, waiting. Bars of one unit have one scale.
pub fn time(shown: &[Shown]) -> Markup {
    let parts = |s: &Shown| {
        let of = |id: MetricId| s.seen().metrics.iter().find(|metric| id == *metric.name);
        let unit = of(metrics::TIME_ELAPSED)?.unit;
        let of = |id| of(id)?.value;
        let elapsed = of(metrics::TIME_ELAPSED).filter(|&elapsed| elapsed > 0.0)?;
        let parts = match (of(metrics::TIME_USER), of(metrics::TIME_SYSTEM)) {
            (Some(user), Some(system)) => vec![("user", user), ("system", system)],
            // The run was too short for the kernel's ticks to tell user from system time.
            _ => vec![("processor", of(metrics::TIME_CPU)?)],
        };
        // The processor's times have a microsecond's resolution: never beyond the whole.
        let mut left = elapsed;
        let mut shown = Vec::with_capacity(3);
        for (name, part) in parts {
            let part = part.min(left);
            shown.push((name, part, elapsed - left));
            left -= part;
        }
        shown.push(("waiting", left, elapsed - left));
        Some((elapsed, shown, unit))
    };
    let rows: Vec<_> = shown.iter().filter_map(|s| Some((s, parts(s)?))).collect();
    let most = |unit: Unit| {
        let same = rows.iter().filter(|(_, (.., other))| *other == unit);
        same.map(|(_, (elapsed, ..))| *elapsed).fold(0.0, f64::max)
    };
    if rows.is_empty() {
        return html! {};
    }
    let whole = rows.iter().any(|(_, (_, parts, _))| parts.iter().any(|(name, ..)| *name == "processor"));
    html! {
        h3 { "Where the time went" }
        p.legend { span.key.user { "user" } span.key.system { "system" } @if whole { span.key.processor { "CPU, user and system together" } } span.key.waiting { "waiting (the rest of the elapsed time)" } }
        @for (s, (elapsed, parts, unit)) in &rows {
            @let most = most(*unit);
            @let whole = text::value(Some(*elapsed), *unit);
            @let words = parts.iter().map(|(name, part, _)| format!("{name} {:.0}%", part / elapsed * 100.0)).collect::<Vec<_>>().join(" · ");
            div.bar {
                span.name { (s.name()) }
                svg.track role="img" aria-label={(s.name()) ": " (whole) ", " (words)} {
                    @for (name, part, from) in parts {
                        rect class=(name) x=(percent(*from, most)) width=(percent(*part, most)) height="100%" {}
                    }
                }
                span.total { (whole) " " span.soft { (words) } }
            }
        }
    }
}

fn percent(part: f64, whole: f64) -> String {
    format!("{:.2}%", part / whole * 100.0)
}

/// Every metric: the median and the extremes over the repetitions that count.
pub fn metrics(runs: &[&Run]) -> Markup {
    let figures: Vec<Vec<Measure>> = runs.iter().map(|run| runs::measures(run)).collect();
    // A guest's times may be instructions, beside another run's nanoseconds.
    let mut names: Vec<(&str, Unit)> = Vec::new();
    for &Measure { name, unit, .. } in figures.iter().flatten() {
        if !names.contains(&(name, unit)) {
            names.push((name, unit));
        }
    }
    if names.is_empty() {
        return html! {};
    }
    let cell = |list: &[Measure], name: &str, unit: Unit| {
        let found = list.iter().find(|measure| measure.name == name && measure.unit == unit);
        let values = found.map_or(&[][..], |measure| &measure.values);
        html! { td { (text::value(median(values), unit)) } td.soft { (range(values, unit)) } }
    };
    html! {
        h3 { "Figures" }
        div.scroll tabindex="0" role="region" aria-label="Table" { table {
            thead { tr {
                th { "median, and min … max" }
                @for run in runs { th colspan="2" { (run.header.name) br; span.soft title=(run.header.target) { (without_folder(&run.header.target)) } " (n = " (run.done().count()) ")" } }
            } }
            tbody { @for (name, unit) in &names { tr { th { (glossary::metric(name)) } @for list in &figures { (cell(list, name, *unit)) } } } }
        } }
    }
}

/// A target as the head of a column can hold it: an image is its file's name. The conditions have all of it.
fn without_folder(target: &TargetSpec) -> TargetSpec {
    let mut target = target.clone();
    if let TargetKind::Kernel(path) = &mut target.kind
        && let Some((_, file)) = path.rsplit_once('/')
    {
        *path = file.to_owned();
    }
    target
}

/// Rows of a table that are shown.
const ROWS: usize = 40;

/// The tables whose rows have names: a profile, the locks waited for, cases.
pub fn named_rows(shown: &Shown, several: bool) -> Markup {
    let tables = shown.seen().tables.iter().filter_map(|table| TextTable::observed(table, false));
    let shortened = |mut table: TextTable| {
        let count = table.rows.len();
        if count > ROWS {
            table.rows.truncate(ROWS);
            table.remarks.push(format!("The first {ROWS} of {count} rows; the notebook has all."));
        }
        table
    };
    html! {
        @for table in tables.filter(|table| !table.rows.is_empty()).map(shortened) {
            h3 { (table.title) @if several { ": " (shown.name()) } }
            (bare(&table))
        }
    }
}

/// What the kernel counted in the repetitions shown.
pub fn counters(shown: &[Shown]) -> Markup {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for s in shown {
        for counter in s.repetition.observations.counters.iter().filter(|c| c.before != c.after) {
            let name = (counter.source.as_str(), counter.name.as_str());
            let total = name.0 == "memory.stat" && name.1.starts_with("total_");
            // The totals repeat the cgroup's own: it has no children.
            if !total && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.is_empty() {
        return html! {};
    }
    let growth = |s: &Shown, (source, name): (&str, &str)| {
        let found = s.repetition.observations.counters.iter().find(|c| c.source == source && c.name == name);
        found.map_or_else(|| text::DASH.to_owned(), |c| text::count(c.after as f64 - c.before as f64))
    };
    html! {
        details {
            summary { "What the kernel counted (" (names.len()) " counters that changed)" }
            div.scroll tabindex="0" role="region" aria-label="Counters" { table {
                thead { tr { th { "counter" } @for s in shown { th { (s.name()) } } } }
                tbody { @for name in &names { tr { th { (name.0) ": " (name.1) } @for s in shown { td { (growth(s, *name)) } } } } }
            } }
        }
    }
}

/// How a run was measured: the command, the clock and what it and the harness cost.
fn measured(run: &Run) -> Markup {
    let environment = run.repetitions.last().map(|r| &r.observations.environment);
    let entry = |key: &str| environment.and_then(|e| e.get(key));
    let setting = run.header.setting.to_string();
    html! {
        p.soft {
            b { (run.header.name) } ": " code { (run.header.experiment) } " on " code { (run.header.target) }
            @if !setting.is_empty() { " with " code { (setting) } }
            @if let Some(source) = entry(environment::CLOCK_SOURCE) {
                "; timed by " (source)
                @if let Some(cost) = entry(environment::CLOCK_COST) { ", " (cost) " ns per reading" }
                @if let Some(cost) = entry(environment::HARNESS_COST) {
                    "; the harness adds " (cost) " ns per reference"
                    @if let Some((low, high)) = entry(environment::HARNESS_COST_INTERVAL).and_then(|i| i.split_once("..")) {
                        " (95% interval " (low) " … " (high) ")"
                    }
                    ", measured before the run and not subtracted"
                } @else { "; the cost that the harness adds to a reference is not significant (" (text::DASH) ")" }
            }
            "."
        }
    }
}

/// So many runs have their conditions folded.
const MIN_FOLDED_RUNS: usize = 5;

/// An entry with the unit that the catalogue gives it.
fn with_unit(key: &str, value: &str) -> String {
    let help = environment::ALL.iter().find(|(name, _)| *name == key).map_or("", |(_, help)| help);
    match (help.split([' ', ',']).next(), value.parse::<f64>()) {
        (Some("bytes"), Ok(bytes)) => format!("{} ({value} bytes)", text::bytes(bytes)),
        (Some("ns"), Ok(_)) => format!("{value} ns"),
        _ => value.to_owned(),
    }
}

/// The conditions of all runs side by side, and their remarks.
pub fn conditions(runs: &[&Run], contents: &mut Contents) -> Markup {
    let of = |run: &Run, key: &str| {
        let entry = run.repetitions.last().and_then(|r| r.observations.environment.get(key));
        entry.map(|value| with_unit(key, value))
    };
    let keys: BTreeSet<&String> = runs
        .iter()
        .filter_map(|run| run.repetitions.last())
        .flat_map(|r| r.observations.environment.keys())
        .collect();
    let mut notes: Vec<(Level, &str, &str)> = Vec::new();
    for run in runs {
        for note in run.repetitions.iter().flat_map(|r| &r.observations.notes) {
            let line = (note.level, run.header.name.as_str(), note.text.as_str());
            if !notes.contains(&line) {
                notes.push(line);
            }
        }
    }
    let table = html! {
        div.scroll tabindex="0" { table.conditions {
            thead { tr { th { "" } @for run in runs { th { (run.header.name) } } } }
            tbody {
                tr { td { "target" } @for run in runs { td.text { code { (run.header.target) } } } }
                tr { td { "setting" } @for run in runs { td.text { code { (run.header.setting) } } } }
                tr { td { "started" } @for run in runs { td.text { (started(run)) } } }
                @for key in &keys {
                    @let values: Vec<Option<String>> = runs.iter().map(|run| of(run, key)).collect();
                    tr class=[values.windows(2).any(|w| w[0] != w[1]).then_some("differs")] {
                        td { (key) }
                        @if values.len() > 1 && values.windows(2).all(|w| w[0] == w[1]) {
                            td.text colspan=(values.len()) { (values[0].as_deref().unwrap_or(text::DASH)) }
                        } @else {
                            @for value in &values { td.text { (value.as_deref().unwrap_or(text::DASH)) } }
                        }
                    }
                }
            }
        } }
    };
    let all = html! {
        @for run in runs { (measured(run)) }
        (table)
        @if !notes.is_empty() {
            h3 { "Remarks" }
            ul { @for (level, run, note) in &notes { li { @if *level == Level::Warning { strong { "Warning: " } } (run) ": " (note) } } }
        }
    };
    html! {
        section {
            (contents.heading("Conditions"))
            @if runs.len() < MIN_FOLDED_RUNS { (all) } @else { details { summary { "Machine, settings and remarks of each run" } (all) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_its_files_name() {
        let of = |text: &str| without_folder(&text.parse().unwrap()).to_string();
        assert_eq!(of("kernel:/boot/a/vmlinuz-6.12,accel=icount"), "kernel:vmlinuz-6.12,accel=icount");
        assert_eq!(of("kernel:vmlinuz"), "kernel:vmlinuz");
        assert_eq!(of("model:lru"), "model:lru");
    }
}
