//! The page: runs as one HTML file that needs no network.
//!
//! Everything from outside is escaped by the template or by `plot`'s JSON; a content security policy
//! lets nothing run or load but the page's own style and script.

pub mod curve;
mod figures;
mod flame;
mod forest;
mod knee;
mod latency;
mod overview;
mod plot;
mod presence;
mod scale;
mod svg;
mod sweep;
mod tables;
mod windows;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pagelab_analysis::figure::{Column, Mark, Plot, Table};
use pagelab_analysis::finding::Finding;
use pagelab_analysis::findings::{Assessment, of_run};
use pagelab_analysis::{groups, vmtest};
use pagelab_experiment::{Experiment, Observations, Repetition, Run};
use sha2::{Digest, Sha256};

use crate::{findings, text};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A table of finished texts: a comparison, a study's claims.
pub struct TextTable {
    /// The heading.
    pub title: String,
    /// The columns.
    pub headings: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub remarks: Vec<String>,
    /// What spoils it, above.
    pub warnings: Vec<String>,
}

impl From<&Table> for TextTable {
    /// A table of figures: headings with their units, figures with as many decimals as are worth showing.
    fn from(table: &Table) -> Self {
        let heading = |column: &Column| match column.unit {
            "" => column.name.clone(),
            unit => format!("{} [{unit}]", column.name),
        };
        let cell = |(figure, column): (&Option<f64>, &Column)| {
            figure.map_or_else(|| text::DASH.to_owned(), |v| format!("{v:.*}", usize::from(column.decimals)))
        };
        let row = |(label, figures): &(String, Vec<Option<f64>>)| {
            std::iter::once(label.clone()).chain(figures.iter().zip(&table.columns).map(cell)).collect()
        };
        Self {
            title: table.title.clone(),
            headings: std::iter::once(table.rows_are.to_owned())
                .chain(table.columns.iter().map(heading))
                .collect(),
            rows: table.rows.iter().map(row).collect(),
            remarks: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// A run with the repetition that its plots show.
pub(crate) struct Shown<'a> {
    run: &'a Run,
    /// The repetition whose elapsed time is the median (of an even number the lower one); the first
    /// where no time was measured.
    repetition: &'a Repetition,
    /// The number of its colour.
    color: usize,
    /// What tells it from the others: the target where every run has another one, else its name.
    label: String,
    /// Of a sweep over memory: the time of a read, and its knees.
    curve: Option<vmtest::Curve>,
}

/// A recording that was killed: what it had seen is as good as any.
fn cut_short(run: &Run) -> Option<&Repetition> {
    run.repetitions.first().filter(|_| matches!(run.header.experiment, Experiment::Record(_)))
}

impl<'a> Shown<'a> {
    fn new(run: &'a Run, color: usize, label: String) -> Option<Self> {
        let elapsed = |r: &&Repetition| r.observations.metric("time.elapsed");
        let mut timed: Vec<&Repetition> = run.done().filter(|r| elapsed(r).is_some()).collect();
        timed.sort_by(|a, b| f64::total_cmp(&elapsed(a).unwrap_or(0.0), &elapsed(b).unwrap_or(0.0)));
        let median = timed.get(timed.len().saturating_sub(1) / 2).copied();
        let repetition = median.or_else(|| run.done().next()).or_else(|| cut_short(run))?;
        Some(Self { run, repetition, color, label, curve: vmtest::of_run(run) })
    }

    fn name(&self) -> &str {
        &self.label
    }

    fn seen(&self) -> &'a Observations {
        &self.repetition.observations
    }

    /// The knees, in this run's colour where there are `several` runs.
    fn marks(&self, several: bool) -> Vec<Mark> {
        let color = several.then_some(self.color);
        let mark = |knee: &vmtest::Knee| Mark {
            x: knee.at,
            low: Some(knee.interval.0),
            high: Some(knee.interval.1),
            label: match &knee.cause {
                Some((cause, _)) => format!("{}: {}", text::bytes(knee.at), findings::cause(cause)),
                None => text::bytes(knee.at),
            },
            color,
        };
        self.curve.iter().flat_map(|curve| &curve.knees).map(mark).collect()
    }
}

/// A plot, or what is missing for it.
pub(crate) enum Panel {
    Plot(Box<Plot>),
    /// The plot's title, and why there is none.
    Absent(&'static str, String),
}

/// A part of a [`document`].
pub struct Section {
    /// The heading.
    pub heading: String,
    /// Sentences below it.
    pub paragraphs: Vec<String>,
    /// Tables.
    pub tables: Vec<TextTable>,
    /// Plots.
    pub plots: Vec<Plot>,
}

/// More experiments than these on one page are each shown by their main pictures alone.
const MANY: usize = 3;

/// The page of runs and what they say as HTML.
pub fn page(assessment: &Assessment) -> String {
    let mut number = 0;
    let runs = &assessment.runs;
    let groups = groups(runs);
    let many = groups.len() > MANY;
    // Of many experiments each section begins with its own finding.
    let own = |finding: &&Finding| !many || findings::main(finding).is_none();
    let told: Vec<&Finding> = assessment.findings.iter().filter(own).collect();
    let sweep = assessment.findings.iter().find_map(overview::least_memory);
    // The answer comes first where the page is about it.
    let compared = html! {
        @for comparison in &assessment.comparisons { (tables::comparison(comparison)) }
    };
    let body = html! {
        (tables::byline(runs))
        (overview::ladder(&assessment.ladder))
        @if many { (overview::experiments(&groups)) } @else { (compared) }
        (tables::verdict(&told))
        @if let Some((plots, table)) = &sweep {
            div.plots { @for plot in plots { ({ number += 1; plot::figure(plot, number) }) } }
            (tables::text(table))
            @for group in &groups { details { summary { "Figures of each run" } (tables::metrics(group)) } }
        } @else if many {
            @for (n, group) in groups.iter().enumerate() { (brief(group, n + 1, &mut number)) }
            p.soft { "All pictures of a run: " code { "pagelab report NAME" } "." }
        } @else {
            @for group in &groups { (section(group, groups.len() > 1, &mut number)) }
        }
        @if many { (compared) }
        (tables::conditions(runs))
    };
    shell(&title(runs), &body)
}

/// The names of the runs, of many the first and the last.
fn title(runs: &[&Run]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.header.name.as_str()).collect();
    match names.as_slice() {
        [first, .., last] if names.len() > 4 => format!("{first} … {last} ({} runs)", names.len()),
        _ => names.join(", "),
    }
}

/// A page of finished sections as HTML: studies, curves.
pub fn document(title: &str, sections: &[Section]) -> String {
    let mut number = 0;
    let body = html! {
        @for part in sections {
            section {
                h2 { (part.heading) }
                @for paragraph in &part.paragraphs { p { (paragraph) } }
                div.plots {
                    @for plot in &part.plots { ({ number += 1; plot::figure(plot, number) }) }
                }
            }
            @for table in &part.tables { (tables::text(table)) }
        }
    };
    shell(title, &body)
}

/// The page around `body`.
fn shell(title: &str, body: &Markup) -> String {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · pagelab" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    button #theme type="button" { "light / dark" }
                }
                main { (body) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// The runs with the repetitions that are drawn, and what tells them apart.
fn shown<'a>(runs: &[&'a Run]) -> Vec<Shown<'a>> {
    let targets: Vec<String> = runs.iter().map(|run| run.header.target.to_string()).collect();
    let distinct = runs.len() > 1 && (1..targets.len()).all(|n| !targets[..n].contains(&targets[n]));
    let label = |n: usize| match distinct {
        true => short(&runs[n].header.name, &targets[n]),
        false => runs[n].header.name.clone(),
    };
    runs.iter().enumerate().filter_map(|(n, run)| Shown::new(run, n, label(n))).collect()
}

/// Whether the experiment is references to a mapping.
fn is_mapping(run: &Run) -> bool {
    matches!(run.header.experiment, Experiment::Mapanon(_) | Experiment::Mapfile(_))
}

/// The runs of one experiment: their plots have the same axes.
fn section(runs: &[&Run], named: bool, number: &mut usize) -> Markup {
    let shown = shown(runs);
    let plots = knee::plot(&shown).into_iter().chain(sweep::plots(&shown));
    let mut panels: Vec<Panel> = plots.map(|plot| Panel::Plot(Box::new(plot))).collect();
    panels.extend(windows::panels(&shown));
    panels.extend(latency::panels(&shown));
    panels.extend(presence::panels(&shown));
    panels.extend(sweep::recorded(&shown).into_iter().map(|plot| Panel::Plot(Box::new(plot))));
    let drawn = panels.iter().any(|panel| matches!(panel, Panel::Plot(_)));
    // Only the references to a mapping have all of these; of other experiments none is missed.
    if !drawn || !is_mapping(runs[0]) {
        panels.retain(|panel| matches!(panel, Panel::Plot(_)));
    }
    let names: Vec<&str> = runs.iter().map(|run| run.header.name.as_str()).collect();
    html! {
        section {
            h2 { @if named { (names.join(", ")) } @else { "What was seen" } }
            p.soft { code { "pagelab run " (runs[0].header.experiment) } }
            (tables::drawn(runs, &shown))
            (tables::time(&shown))
            @if !drawn {
                p.soft { "No time series for this experiment." }
            }
            div.plots {
                @for panel in &panels {
                    @match panel {
                        Panel::Plot(plot) => ({ *number += 1; plot::figure(plot, *number) }),
                        Panel::Absent(title, why) => p.absent { b { (title) } " is not drawn: " (why) "." },
                    }
                }
            }
            (flame::graphs(&shown))
            @for s in &shown { (tables::named_rows(s, shown.len() > 1)) }
            (tables::metrics(runs))
            (tables::counters(&shown))
        }
    }
}

/// Pictures of a section among many.
const PICTURES: usize = 2;

/// The same in brief: the finding of each run, the main pictures, and the rest folded.
fn brief(runs: &[&Run], place: usize, number: &mut usize) -> Markup {
    let shown = shown(runs);
    let plots: Vec<Plot> = if is_mapping(runs[0]) {
        let main = [windows::panels(&shown), latency::panels(&shown)].map(|panels| {
            panels.into_iter().find_map(|panel| match panel {
                Panel::Plot(plot) => Some(*plot),
                Panel::Absent(..) => None,
            })
        });
        main.into_iter().flatten().collect()
    } else {
        match knee::plot(&shown) {
            Some(knee) => vec![knee],
            None => sweep::plots(&shown).into_iter().filter(|plot| !plot.is_flat()).take(PICTURES).collect(),
        }
    };
    let names: Vec<&str> = runs.iter().map(|run| run.header.name.as_str()).collect();
    html! {
        section id={"e" (place)} {
            h2 { (names.join(", ")) }
            @for finding in runs.iter().filter_map(|run| of_run(run)) {
                p { @if runs.len() > 1 { b { (finding.run) } ": " } (findings::text(&finding)) "." }
            }
            (tables::drawn(runs, &[]))
            div.plots { @for plot in &plots { ({ *number += 1; plot::figure(plot, *number) }) } }
            details {
                summary { "Figures, and where the time went" }
                p.soft { code { "pagelab run " (runs[0].header.experiment) } }
                (tables::time(&shown))
                @for s in &shown { (tables::named_rows(s, shown.len() > 1)) }
                (tables::metrics(runs))
            }
        }
    }
}

/// A target as a legend can hold it: of a long one, such as an image with its options, the run's name and
/// the end, where options that differ usually stand. The conditions have all of it.
fn short(name: &str, target: &str) -> String {
    const LONGEST: usize = 40;
    const END: usize = 20;
    let length = target.chars().count();
    if length <= LONGEST {
        return target.to_owned();
    }
    let end: String = target.chars().skip(length - END).collect();
    format!("{name} (…{end})")
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_target_is_shortened_to_its_end() {
        assert_eq!(short("a-1", "model:linux-lru"), "model:linux-lru");
        let long = "kernel:/boot/vmlinuz-6.12,accel=icount,set=/sys/kernel/mm/lru_gen/enabled=n";
        assert_eq!(short("a-1", long), "a-1 (…mm/lru_gen/enabled=n)");
    }
}
