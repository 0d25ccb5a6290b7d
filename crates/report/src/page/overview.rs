//! The first screen of a page of many experiments: the memory ladder, then one row an experiment. And of a
//! sweep over memory: the time and the pages fetched against the limit.

use maud::{Markup, html};
use pagelab_analysis::figure::{Axis, Mark, MarkKind, Plot, Series};
use pagelab_analysis::finding::{Finding, MeasuredLimit, What};
use pagelab_analysis::findings::of_run;
use pagelab_analysis::ladder::Level;
use pagelab_experiment::observation::{Level as NoteLevel, Unit};
use pagelab_experiment::{Outcome, Run};

use super::contents::Contents;
use super::{bars, figures};
use crate::table::TextTable;
use crate::{findings, ladder, text};

/// The ladder; nothing where there is none.
pub fn ladder(levels: &[Level], contents: &mut Contents) -> Markup {
    let ends = ladder::decades(levels);
    let percent = |time: f64| format!("{:.2}%", ladder::share(time, ends) * 100.0);
    let value = |v: f64| text::value(Some(v), Unit::Nanoseconds);
    html! {
        @if !levels.is_empty() {
            section.ladder {
                (contents.heading("The time of one access, and what it moves"))
                (bars::key("median, with the range (min … max) of the repetitions; from one upright line to the next it is ten times slower"))
                @for level in levels {
                    @let spread = ladder::range(level).filter(|(low, high)| low < high);
                    @let words = spread.map_or_else(String::new, |(low, high)| format!("{} … {}", value(low), value(high)));
                    div.bar {
                        span.name { (ladder::name(level)) span.soft { (ladder::moved(level)) } }
                        svg.track role="img" aria-label={(ladder::name(level)) ": " (value(level.time.value)) " " (words)} {
                            @for decade in ends.0..=ends.1 {
                                @let at = percent(10f64.powi(decade));
                                line.decade x1=(at) x2=(at) y1="0" y2="100%" {}
                            }
                            @let ends = spread.map(|(low, high)| (percent(low), percent(high)));
                            (bars::dot(&percent(level.time.value), ends.as_ref().map(|(low, high)| (&**low, &**high))))
                        }
                        span.total { b { (value(level.time.value)) } " " span.soft { (words) } }
                    }
                }
                div.bar.axis aria-hidden="true" {
                    span.name {}
                    svg.track { @for decade in ends.0..=ends.1 {
                        @let at = 10f64.powi(decade);
                        text x=(percent(at)) y="11" { (figures::tick(at, "ns")) }
                    } }
                    span.total {}
                }
            }
        }
    }
}

/// One row for each run: its main figure with the spread, whether something spoils it, and the way to its
/// section.
pub fn experiments(groups: &[Vec<&Run>], contents: &mut Contents) -> Markup {
    html! {
        section {
            (contents.heading("Experiments"))
            div.scroll tabindex="0" { table.experiments {
                thead { tr { th { "run" } th { "main figure" } th { "" } th { "min … max" } th { "remarks" } } }
                tbody {
                    @for (n, group) in groups.iter().enumerate() {
                        @for run in group {
                            @let main = of_run(run).and_then(|finding| findings::main(&finding));
                            tr {
                                th { a href={"#e" (n + 1)} { (run.header.name) } }
                                @match &main {
                                    Some(main) => { td.text { (main.what) } td { b { (main.value) } } td.soft { (main.spread) } },
                                    None => { td.text { "—" } td {} td {} },
                                }
                                @let remarks = remarks(run);
                                @if remarks.is_empty() { td.text.soft { "ok" } } @else {
                                    td.text { @for what in &remarks { div { strong.warning { "Warning: " } (what) } } }
                                }
                            }
                        }
                    }
                }
            } }
        }
    }
}

/// What spoils a run, each once.
fn remarks(run: &Run) -> Vec<String> {
    let failed = run.repetitions.iter().filter_map(|repetition| match &repetition.outcome {
        Outcome::Done => None,
        outcome => Some(findings::not_performed(repetition.number, outcome)),
    });
    let notes = run.repetitions.iter().flat_map(|repetition| &repetition.observations.notes);
    let warnings = notes.filter(|note| note.level == NoteLevel::Warning).map(|note| note.text.clone());
    let mut list: Vec<String> = failed.chain(warnings).collect();
    list.dedup();
    list
}

/// The plots of a sweep over memory, and its table; nothing of other findings.
pub fn least_memory(finding: &Finding) -> Option<(Vec<Plot>, TextTable)> {
    let What::LeastMemory { program, limits, .. } = &finding.what else { return None };
    let bytes = |name: &str| finding.figure(name).map(|figure| figure.value);
    let killed = limits.iter().filter(|limit| limit.time.is_none()).map(|limit| limit.memory).max();
    let killed = killed.map(|memory| Mark {
        label: format!("killed up to {}", text::bytes(memory as f64)),
        kind: MarkKind::Place,
        ..Mark::at(memory as f64)
    });
    let mark = bytes("memory.enough").map(|enough| {
        let low = bytes("memory.too-little");
        Mark { low, high: Some(enough), label: format!("{} needed", text::bytes(enough)), ..Mark::at(enough) }
    });
    let any_stopped = limits.iter().any(|limit| limit.stopped);
    let plot = |title: &str, caption: &str, y: Axis, of: fn(&MeasuredLimit) -> Option<f64>| {
        let mut plot = Plot::new(title, caption, Axis::log("memory limit", "bytes"), y);
        // A program that was stopped would have taken longer and fetched more: its points are no measurement.
        for (stopped, name) in [(false, "ended by itself"), (true, "stopped: at least this")] {
            let wanted = |limit: &MeasuredLimit| of(limit).filter(|_| limit.stopped == stopped);
            if limits.iter().any(|limit| wanted(limit).is_some()) {
                plot.series.push(Series {
                    name: if any_stopped { name.to_owned() } else { String::new() },
                    color: usize::from(stopped),
                    dash: if stopped { 2 } else { 0 },
                    dots: true,
                    x: limits.iter().map(|limit| Some(limit.memory as f64)).collect(),
                    y: limits.iter().map(wanted).collect(),
                    ..Series::default()
                });
            }
        }
        plot.marks.extend(killed.iter().chain(&mark).cloned());
        plot.wide = true;
        plot
    };
    let time = plot(
        "Time against the memory limit",
        "The fastest repetition under each limit; a limit without a point killed the program. The knee lies in the band.",
        Axis::log(format!("time of {program}"), "ns").switchable(),
        |limit| limit.time,
    );
    let mut plots = vec![time];
    if limits.iter().any(|limit| limit.fetched.is_some_and(|pages| pages > 0.0)) {
        plots.push(plot(
            "Pages fetched against the memory limit",
            "Major faults and pages read from the disk for the program: the fewest of the repetitions.",
            Axis::linear("pages", ""),
            |limit| limit.fetched,
        ));
    }
    Some((plots, findings::limits(finding)?))
}
