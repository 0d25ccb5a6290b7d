//! Counters recorded over time, by the names that people have for them: what belongs together is one picture, pages
//! are bytes, and what stayed 0 is said instead of drawn.

use pagelab_analysis::figure::{Axis, Plot, Series};
use pagelab_experiment::counters::{Named, named};
use pagelab_experiment::environment;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::tables::counters;

use super::plot::unit_name;
use super::shown::{Panel, Shown};

/// The pictures of one run; so many lines can be read for one alone.
pub fn panels(shown: &[Shown]) -> Vec<Panel> {
    let [s] = shown else { return Vec::new() };
    let Some(table) = s.seen().table(counters::TABLE) else { return Vec::new() };
    let Some((x, columns)) = table.columns.split_first() else { return Vec::new() };
    let Some(times) = x.numbers() else { return Vec::new() };
    let page = s.number(environment::PAGE_SIZE);
    let mut plots: Vec<(String, Unit, Plot)> = Vec::new();
    let mut still: Vec<String> = Vec::new();
    for column in columns {
        let Some(values) = column.numbers() else { continue };
        let Named { title, words, pages } = named(&column.name);
        if values.iter().flatten().all(|&value| value == 0.0) {
            still.push(format!("{words} ({})", title.to_lowercase()));
            continue;
        }
        let counted = column.unit.unwrap_or(Unit::Count);
        let (unit, by) = match (counted, page) {
            (Unit::Pages, Some(page)) => (Unit::Bytes, page),
            (Unit::PerSecond, Some(page)) if pages => (Unit::BytesPerSecond, page),
            (unit, _) => (unit, 1.0),
        };
        let at = plots.iter().position(|(known, its, _)| *known == title && *its == unit);
        let at = at.unwrap_or_else(|| {
            let x = Axis::linear("time", unit_name(x.unit));
            let y = Axis::linear(label(unit), unit_name(Some(unit))).switchable();
            plots.push((title.clone(), unit, Plot::new(title.clone(), CAPTION, x, y)));
            plots.len() - 1
        });
        let plot = &mut plots[at].2;
        plot.series.push(Series {
            name: words,
            color: plot.series.len() % 6,
            dash: plot.series.len() / 6 * 2,
            dots: values.len() <= MAX_DOTS,
            x: times.to_vec(),
            y: values.iter().map(|value| value.map(|value| value * by)).collect(),
            ..Series::default()
        });
    }
    let mut panels: Vec<Panel> = plots.into_iter().map(|(_, _, plot)| Panel::Plot(Box::new(plot))).collect();
    if !still.is_empty() {
        panels.push(Panel::Absent("What stayed 0", still.join(", ")));
    }
    panels
}

/// So many looks have a dot each.
const MAX_DOTS: usize = 60;

const CAPTION: &str = "One point per sample.";

/// What the ordinate is called.
fn label(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "memory",
        Unit::BytesPerSecond => "bytes per second",
        Unit::Share => "share of the time",
        Unit::PerSecond => "per second",
        Unit::Nanoseconds => "time",
        _ => "count",
    }
}
