//! The page: runs as one HTML file that needs no network.
//!
//! Everything from outside is escaped by the template or by `plot`'s JSON; a content security
//! policy lets nothing run or load but the page's own style and script.

mod bandwidth;
mod bars;
mod caches;
mod contents;
pub(crate) mod curve;
mod evictions;
mod figures;
pub(crate) mod flame;
mod forest;
mod glossary;
mod knee;
mod latency;
pub mod mechanisms;
mod overview;
mod plot;
mod presence;
mod recorded;
mod rows;
mod scale;
pub(crate) mod shell;
mod shown;
mod svg;
mod sweep;
mod tables;
mod windows;

use maud::{Markup, html};
use pagelab_analysis::figure::{Bars, Plot, RangeBars};
use pagelab_analysis::finding::{Finding, What};
use pagelab_analysis::findings::{Assessment, of_run};
use pagelab_analysis::groups;
use pagelab_experiment::experiments::{Faultscale, Load};
use pagelab_experiment::metrics;
use pagelab_experiment::{Experiment, Run};

pub use self::bars::Score;
use self::contents::Contents;
pub(crate) use self::contents::{Drawn, Room};
pub(crate) use self::plot::{digit, json, unit_name};
use self::shell::Place;
use self::shown::{Panel, Shown};
use crate::table::TextTable;
use crate::{comparisons, findings, ladder};

/// A part of a [`document`].
#[derive(Default)]
pub struct Section {
    /// The heading.
    pub heading: String,
    /// Its answer, in a sentence.
    pub answer: String,
    /// Sentences below it.
    pub paragraphs: Vec<String>,
    /// Below them, how many things of which kind came out how.
    pub score: Vec<Score>,
    /// Rows of bars that are seen at once.
    pub bars: Vec<Bars>,
    /// Bars with ranges that are seen at once.
    pub ranges: Vec<RangeBars>,
    /// Plots; the first is the section's picture.
    pub plots: Vec<Plot>,
    /// How many of the plots are seen at once, as wide as they are. None: the first, and the second
    /// of two, as wide as the page.
    pub seen: Option<usize>,
    /// What else there is, folded: tables.
    pub tables: Vec<TextTable>,
    /// What else there is to say, folded.
    pub notes: Vec<String>,
}

/// The page of runs and what they say as HTML.
pub fn page(assessment: &Assessment) -> String {
    page_in(assessment, &Place::Alone, None)
}

/// The same page at `place`. With `room`, it leaves out charts beyond that many bytes.
pub(crate) fn page_in(assessment: &Assessment, place: &Place, room: Option<Room>) -> String {
    let contents = &mut Contents::within(room);
    let runs = &assessment.runs;
    let groups = groups(runs);
    let many = groups.len() > crate::runs::MANY;
    // Of many experiments each section begins with its own finding.
    let own = |finding: &&Finding| !many || findings::main(finding).is_none();
    let told: Vec<&Finding> = assessment.findings.iter().filter(own).collect();
    let sweep = assessment.findings.iter().find_map(overview::least_memory);
    let verdict = tables::verdict(&told);
    let (named, found) = (names(runs), found(assessment, many));
    let body = html! {
        (tables::byline(&named, runs))
        @if let Some((plots, table)) = &sweep {
            (verdict)
            (contents.heading("Sweep over memory"))
            (contents.plots(plots))
            (tables::text(table, contents))
            @for group in &groups { details { summary { "Figures of each run" } (tables::metrics(group)) } }
        } @else if many {
            (overview::ladder(&assessment.ladder, contents))
            (overview::experiments(&groups, contents))
            (verdict)
            @for (n, group) in groups.iter().enumerate() { (brief(group, assessment, n + 1, contents)) }
            @for comparison in &assessment.comparisons {
                details { summary { (comparisons::title(comparison)) } (tables::comparison(comparison, contents)) }
            }
            p.soft { "All pictures of a run: " code { "pagelab report NAME" } "." }
        } @else {
            // The answer comes first where the page is about it; of one comparison it is the title.
            @for comparison in &assessment.comparisons {
                @if assessment.comparisons.len() > 1 { p.answer { (comparisons::headline(comparison)) } }
                (tables::comparison(comparison, contents))
            }
            (overview::ladder(&assessment.ladder, contents))
            (verdict)
            (contents.plots(&evictions::plots(&assessment.findings)))
            @for table in assessment.findings.iter().flat_map(findings::tables) { (tables::text(&table, contents)) }
            @for group in &groups { (section(group, groups.len() > 1, contents)) }
        }
        (tables::conditions(runs, contents))
    };
    place.page(found.as_deref().unwrap_or(&named).trim_end_matches('.'), &body, contents)
}

/// So many main figures are a title.
const TITLE: usize = 4;

/// What was found: a comparison's answer, the ladder's, or the main figure of each run.
fn found(assessment: &Assessment, many: bool) -> Option<String> {
    if let ([only], false) = (&assessment.comparisons[..], many) {
        // Its statistics stand in the table below.
        let answer = comparisons::headline(only);
        let short = answer.strip_suffix(").").and_then(|answer| answer.rsplit_once(" ("));
        return Some(short.map_or_else(|| answer.clone(), |(short, _)| short.to_owned()));
    }
    let figure = |finding: &Finding| {
        let main = findings::main(finding)?;
        // Of one curve its ends and knees are the answer.
        let is_curve = matches!(finding.what, What::ReadTime { .. }) && assessment.runs.len() == 1;
        if let What::LeastMemory { .. } = finding.what {
            return findings::text(finding).split(';').next().map(str::to_owned);
        }
        let answer = if is_curve { findings::text(finding) } else { format!("{} {}", main.what, main.value) };
        Some(format!("{}: {answer}", finding.run))
    };
    let figures: Vec<String> = assessment.findings.iter().filter_map(figure).collect();
    ladder::answer(&assessment.ladder).or_else(|| match (figures.len(), &assessment.runs[..]) {
        (0, [run]) => of_run(run).as_ref().map(findings::text),
        (1..=TITLE, _) => Some(figures.join("; ")),
        _ => None,
    })
}

/// The names of the runs; of many what they begin with alike, or the first and the last.
fn names(runs: &[&Run]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.header.name.as_str()).collect();
    let prefix = |first: &str| {
        let ends = first.match_indices('-').map(|(end, _)| end);
        let alike = |end: &usize| names.iter().all(|name| name.starts_with(&first[..=*end]));
        let end = ends.take_while(alike).last()?;
        Some(format!("{}: {} runs", &first[..end], names.len()))
    };
    match names.as_slice() {
        [first, .., last] if names.len() > 4 => {
            prefix(first).unwrap_or_else(|| format!("{first} … {last} ({} runs)", names.len()))
        }
        _ => names.join(", "),
    }
}

/// A page of finished sections as HTML: studies, curves.
pub fn document(title: &str, overview: Option<&TextTable>, sections: &[Section]) -> String {
    document_in(title, overview, sections, &Place::Alone)
}

/// The same page at `place`.
pub(crate) fn document_in(
    title: &str,
    overview: Option<&TextTable>,
    sections: &[Section],
    place: &Place,
) -> String {
    let contents = &mut Contents::default();
    // Of one section the answer's first sentence is the title.
    let answer = match sections {
        [only] if !only.answer.is_empty() => Some(only.answer.trim_end_matches('.')),
        _ => None,
    };
    let (found, more) = answer.map_or((title, ""), |answer| answer.split_once(". ").unwrap_or((answer, "")));
    let body = html! {
        @if answer.is_some() { p.soft { (title) } }
        @if let Some(table) = overview { (tables::text(table, contents)) }
        @for part in sections {
            (finished(part, answer.map_or(&part.answer, |_| more), contents))
        }
    };
    place.page(found, &body, contents)
}

/// The page of all metrics and terms.
pub(crate) fn glossary_in(place: &Place) -> String {
    let contents = &mut Contents::default();
    let body = glossary::all(contents);
    place.page("Glossary", &body, contents)
}

/// A finished section: its answer and its main pictures, the rest folded.
fn finished(part: &Section, answer: &str, contents: &mut Contents) -> Markup {
    // Two pictures are both seen; of more, the first.
    let usual = if part.plots.len() == 2 { 2 } else { 1 };
    let (picture, others) = part.plots.split_at(part.seen.unwrap_or(usual).min(part.plots.len()));
    let wide = |plot: &Plot| plot.wide || part.seen.is_none();
    let picture: Vec<Plot> = picture.iter().map(|plot| Plot { wide: wide(plot), ..plot.clone() }).collect();
    html! {
        section {
            (contents.heading(&part.heading))
            @if !answer.is_empty() { p.answer { (answer) } }
            (bars::score(&part.score))
            @for paragraph in &part.paragraphs { p { (paragraph) } }
            @for rows in &part.bars { (bars::figure(rows)) }
            @for rows in &part.ranges { (bars::ranges(rows)) }
            (contents.plots(&picture))
            @if !others.is_empty() {
                details { summary { "More pictures (" (others.len()) ")" } (contents.plots(others)) }
            }
            @for table in &part.tables { details { summary { (table.title) " (" (table.rows.len()) " rows)" } (tables::bare(table)) } }
            @if !part.notes.is_empty() {
                details { summary { "Notes (" (part.notes.len()) ")" } ul { @for note in &part.notes { li { (note) } } } }
            }
        }
    }
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
    matches!(run.header.experiment.declaration().load(), Load::References(..))
}

/// The command line that performs an experiment, or computes it.
fn command_line(experiment: &Experiment) -> String {
    match experiment.declaration().load() {
        Load::None => format!("pagelab {experiment}"),
        _ => format!("pagelab run {experiment}"),
    }
}

/// The plots, and those of the panels in which there is something to see; of the others why not.
fn panels(runs: &[&Run], shown: &[Shown]) -> Vec<Panel> {
    let plots = own(shown).into_iter().chain(sweep::plots(shown));
    let mut panels: Vec<Panel> = plots.map(|plot| Panel::Plot(Box::new(plot))).collect();
    panels.extend(windows::panels(shown));
    panels.extend(latency::panels(shown));
    panels.extend(presence::panels(shown));
    let drawn = panels.iter().any(|panel| matches!(panel, Panel::Plot(_)));
    // Only the references to a mapping have all of these; of other experiments none is missed.
    if !drawn || !is_mapping(runs[0]) {
        panels.retain(|panel| matches!(panel, Panel::Plot(_)));
    }
    panels.extend(recorded::panels(shown));
    panels
}

/// The runs of one experiment: their plots have the same axes.
fn section(runs: &[&Run], named: bool, contents: &mut Contents) -> Markup {
    let shown = shown(runs);
    let panels = panels(runs, &shown);
    let names: Vec<&str> = runs.iter().map(|run| run.header.name.as_str()).collect();
    html! {
        section {
            (contents.heading(&if named { names.join(", ") } else { "Plots and figures".to_owned() }))
            p.soft { code { (command_line(&runs[0].header.experiment)) } }
            (tables::drawn(runs, &shown))
            (tables::time(&shown))
            @for rows in rows::bars(&shown) { (bars::ranges(&rows)) }
            @if panels.is_empty() && shown.iter().all(|s| s.repetition.observations.tables.is_empty()) {
                p.soft { "No time series for this experiment." }
            }
            div.plots {
                @for panel in &panels {
                    @match panel {
                        Panel::Plot(plot) => (contents.plot(plot)),
                        Panel::Absent(title, why) => p.absent { b { (title) } " is not drawn: " (why) "." },
                    }
                }
            }
            (contents.lacking(&runs[0].header.name))
            (flame::graphs(&shown))
            @for s in &shown { (tables::named_rows(s, shown.len() > 1)) }
            (tables::metrics(runs))
            (tables::counters(&shown))
        }
    }
}

/// The main pictures of a section among many; none where nothing happened that a picture would
/// show.
fn pictures(runs: &[&Run], shown: &[Shown]) -> Vec<Plot> {
    let plot = |panels: Vec<Panel>| {
        panels.into_iter().find_map(|panel| match panel {
            Panel::Plot(plot) => Some(*plot),
            Panel::Absent(..) => None,
        })
    };
    if is_mapping(runs[0]) {
        let faulted = |metric| shown.iter().any(|s| s.seen().metric(metric).is_some_and(|n| n > 0.0));
        if !faulted(metrics::FAULTS_MAJOR) && !faulted(metrics::FAULTS_MINOR) {
            return Vec::new();
        }
        return [windows::panels(shown), latency::panels(shown)].map(plot).into_iter().flatten().collect();
    }
    let scaled = runs[0].header.experiment.parameters::<Faultscale>().is_some();
    let swept = if scaled { sweep::plots(shown) } else { Vec::new() };
    own(shown).into_iter().chain(swept).take(1).collect()
}

/// The pictures of one experiment alone, one file each.
fn own(shown: &[Shown]) -> Vec<Plot> {
    knee::plot(shown).into_iter().chain(caches::plot(shown)).chain(bandwidth::plots(shown)).collect()
}

/// The same in brief: the finding of each run, how they differ, the main pictures, and the rest
/// folded.
fn brief(runs: &[&Run], assessment: &Assessment, place: usize, contents: &mut Contents) -> Markup {
    let shown = shown(runs);
    let plots = pictures(runs, &shown);
    let names: Vec<&str> = runs.iter().map(|run| run.header.name.as_str()).collect();
    let compared = assessment.comparisons.iter().filter(|c| names.contains(&c.other.run.as_str()));
    let id = format!("e{place}");
    contents.place(&id, &names.join(", "));
    html! {
        section id=(id) {
            h2 { (names.join(", ")) }
            @for comparison in compared { p.answer { (comparisons::headline(comparison)) } }
            @for finding in runs.iter().filter_map(|run| of_run(run)) {
                p { @if runs.len() > 1 { b { (finding.run) } ": " } (findings::text(&finding)) "." }
            }
            (tables::drawn(runs, &[]))
            (contents.plots(&plots))
            @for rows in rows::bars(&shown) { (bars::ranges(&rows)) }
            details {
                summary { "Figures, and where the time went" }
                p.soft { code { (command_line(&runs[0].header.experiment)) } }
                (tables::time(&shown))
                @for s in &shown { (tables::named_rows(s, shown.len() > 1)) }
                (tables::metrics(runs))
            }
        }
    }
}

/// A target as a legend can hold it: of a long one, such as an image with its options, the run's
/// name and the end, where options that differ usually stand. The conditions have all of it.
fn short(name: &str, target: &str) -> String {
    const MAX_NAME_CHARS: usize = 40;
    const END: usize = 20;
    let length = target.chars().count();
    if length <= MAX_NAME_CHARS {
        return target.to_owned();
    }
    let end: String = target.chars().skip(length - END).collect();
    format!("{name} (…{end})")
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
