//! A metric over revisions: its steps in sentences, its points as a table, as JSON and as a section
//! of a page.

use pagelab_analysis::change_points::MIN_POINTS;
use pagelab_analysis::figure::{Axis, Mark, Plot, Tone};
use pagelab_analysis::history::{Point, Series, Step, Track};
use serde_json::{Value, json};

use crate::comparisons::percent;
use crate::page::{Section, unit_name};
use crate::table::TextTable;
use crate::text::{self, DASH};

/// The most points of a printed table: of more, the newest.
const MAX_ROWS: usize = 20;
/// The most other metrics that a sentence names.
const NAMED: usize = 3;

/// A change with both ends of its interval.
fn change(step: &Step) -> String {
    let Some(share) = step.change else { return "from 0".to_owned() };
    match step.interval {
        Some((low, high)) => format!("{} ({} … {})", percent(share), percent(low), percent(high)),
        None => percent(share),
    }
}

fn direction(step: &Step) -> (&'static str, Tone) {
    match step.worse {
        Some(true) => ("worse", Tone::Bad),
        Some(false) => ("better", Tone::Good),
        None => ("changed", Tone::Fair),
    }
}

/// The day of a point.
fn day(point: &Point) -> &str {
    point.started.get(..10).unwrap_or(&point.started)
}

/// The points on both sides of a step: the last of the old level and the first of the new one.
fn sides<'a>(series: &'a Series, track: &Track, step: &Step) -> (&'a Point, &'a Point) {
    let before = (0..step.at).rev().find(|&at| track.values[at].is_some()).unwrap_or(0);
    (&series.points[before], &series.points[step.at])
}

/// The name of the series, with the CPU if it is part of the conditions.
pub fn title(series: &Series) -> String {
    match &series.machine {
        Some(machine) => format!("{} ({machine})", series.name),
        None => series.name.clone(),
    }
}

fn step_sentence(series: &Series, track: &Track, step: &Step) -> String {
    let (before, after) = sides(series, track, step);
    let figure = |value| text::value(Some(value), track.unit);
    let (word, _) = direction(step);
    let verb = if step.worse.is_some() { format!("got {word}") } else { word.to_owned() };
    let with = series.with(step);
    let others: Vec<String> = with
        .iter()
        .take(NAMED)
        .map(|(other, step)| match step.change {
            Some(share) => format!("{} {}", other.metric, percent(share)),
            None => other.metric.clone(),
        })
        .collect();
    let more = with.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let with =
        if others.is_empty() { String::new() } else { format!("; with it {}{more}", others.join(", ")) };
    format!(
        "{} {verb} by {} between {}{} and {} ({}): {} → {}{with}.",
        track.metric,
        change(step).trim_start_matches(['+', '-']),
        before.label,
        if day(before) == day(after) { String::new() } else { format!(" ({})", day(before)) },
        after.label,
        day(after),
        figure(step.medians.0),
        figure(step.medians.1)
    )
}

fn points(series: &Series) -> String {
    match series.points.len() {
        1 => "1 point".to_owned(),
        count => format!("{count} points"),
    }
}

/// Describes the changes of the deciding metric, the newest first. `is_new` selects the steps to
/// report.
pub fn answer(series: &Series, is_new: impl Fn(&Step) -> bool) -> Vec<String> {
    let (count, points) = (series.points.len(), points(series));
    let Some(track) = series.tracks.first() else {
        return vec![format!("No metric was measured ({points}).")];
    };
    if series.is_short() {
        return vec![format!(
            "Too few points to find a change of {}: {count}, and {MIN_POINTS} are needed. Compare two runs with: pagelab \
             compare.",
            track.metric
        )];
    }
    let steps: Vec<&Step> = track.steps.iter().rev().filter(|step| is_new(step)).collect();
    if steps.is_empty() {
        let medians: Vec<f64> = track.values.iter().flatten().map(|value| value.median).collect();
        let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
        let most = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let new = if track.steps.is_empty() { "change" } else { "new change" };
        return vec![format!(
            "No {new} of {} in {points} from {} to {}: medians of {} … {}.",
            track.metric,
            series.points.first().map_or(DASH, day),
            series.points.last().map_or(DASH, day),
            text::value(Some(least), track.unit),
            text::value(Some(most), track.unit)
        )];
    }
    steps.into_iter().map(|step| step_sentence(series, track, step)).collect()
}

/// The points of the metric that decides, the newest `MAX_ROWS` unless `all` are wanted.
pub fn table(series: &Series, all: bool) -> TextTable {
    let Some(track) = series.tracks.first() else { return TextTable::default() };
    let skipped = if all { 0 } else { series.points.len().saturating_sub(MAX_ROWS) };
    let cell = |at: usize| {
        let (point, value) = (&series.points[at], &track.values[at]);
        let figure = |value: Option<f64>| text::value(value, track.unit);
        let interval = value.as_ref().and_then(|value| value.interval);
        let interval = interval.map(|(low, high)| format!("{} … {}", figure(Some(low)), figure(Some(high))));
        let step = track.steps.iter().find(|step| step.at == at);
        vec![
            point.label.clone(),
            point.started.get(..16).unwrap_or(&point.started).replace('T', " "),
            value.as_ref().map_or(0, |value| value.n).to_string(),
            figure(value.as_ref().map(|value| value.median)),
            interval.unwrap_or_else(|| DASH.to_owned()),
            step.map_or_else(String::new, |step| format!("{} {}", change(step), direction(step).0)),
        ]
    };
    let title = match skipped {
        0 => format!("{} of {}", track.metric, points(series)),
        _ => format!("{} of the newest {MAX_ROWS} of {}", track.metric, points(series)),
    };
    let headings = ["point", "started (UTC)", "n", "median", "95% interval", "change (95% interval)"];
    TextTable::new(title, headings, (skipped..series.points.len()).map(cell))
}

/// The series as JSON.
pub fn json(series: &Series) -> Value {
    let value = |value: &Option<pagelab_analysis::history::Value>| {
        value.as_ref().map(|value| {
            json!({
                "median": value.median,
                "low": value.interval.map(|(low, _)| low),
                "high": value.interval.map(|(_, high)| high),
                "n": value.n,
            })
        })
    };
    let step = |track: &Track, step: &Step| {
        let (before, after) = sides(series, track, step);
        json!({
            "point": step.at,
            "from": before.label,
            "to": after.label,
            "started": after.started,
            "before": step.medians.0,
            "after": step.medians.1,
            "change": step.change,
            "low": step.interval.map(|(low, _)| low),
            "high": step.interval.map(|(_, high)| high),
            "worse": step.worse,
        })
    };
    let track = |track: &Track| {
        json!({
            "name": track.metric,
            "unit": track.unit,
            "better": track.better,
            "values": track.values.iter().map(value).collect::<Vec<_>>(),
            "changes": track.steps.iter().map(|one| step(track, one)).collect::<Vec<_>>(),
        })
    };
    let point = |point: &Point| json!({ "label": point.label, "runs": point.runs, "started": point.started });
    json!({
        "name": series.name,
        "machine": series.machine,
        "exact": series.exact,
        "points": series.points.iter().map(point).collect::<Vec<_>>(),
        "metrics": series.tracks.iter().map(track).collect::<Vec<_>>(),
    })
}

/// A metric as a plot: its medians, their intervals, the levels, a mark at each step.
fn plot(series: &Series, track: &Track) -> Plot {
    let told =
        |step: &Step| format!(" {}: {} {}.", series.points[step.at].label, change(step), direction(step).0);
    let mut plot = Plot::new(
        track.metric.clone(),
        "A dot is the median of a point's repetitions, with its 95% interval; dashed: the levels.".to_owned()
            + &track.steps.iter().map(told).collect::<String>(),
        Axis::linear("point, the oldest first", ""),
        Axis { close: true, ..Axis::linear(track.metric.clone(), unit_name(Some(track.unit))) },
    );
    let count = series.points.len();
    let x: Vec<Option<f64>> = (1..=count).map(|n| Some(n as f64)).collect();
    let line = |name: &str, dash, y: Vec<Option<f64>>| pagelab_analysis::figure::Series {
        name: name.to_owned(),
        dash,
        x: x.clone(),
        y,
        ..Default::default()
    };
    let of = |pick: fn(&pagelab_analysis::history::Value) -> Option<f64>| -> Vec<Option<f64>> {
        track.values.iter().map(|value| value.as_ref().and_then(pick)).collect()
    };
    let medians = of(|value| Some(value.median));
    plot.series.push(pagelab_analysis::figure::Series { dots: true, ..line("median", 0, medians) });
    for (name, end) in [
        ("lower end", of(|value| value.interval.map(|(low, _)| low))),
        ("upper end", of(|value| value.interval.map(|(_, high)| high))),
    ] {
        if end.iter().any(Option::is_some) {
            plot.series.push(line(name, 1, end));
        }
    }
    if !track.steps.is_empty() {
        let level = |at: usize| match track.steps.iter().rev().find(|step| step.at <= at) {
            Some(step) => step.medians.1,
            None => track.steps[0].medians.0,
        };
        let levels = pagelab_analysis::figure::Series {
            color: 1,
            step: true,
            ..line("level", 2, (0..count).map(|at| Some(level(at))).collect())
        };
        plot.series.push(levels);
    }
    let mark = |step: &Step| Mark {
        label: format!("{}: {}", series.points[step.at].label, change(step)),
        ..Mark::at((step.at + 1) as f64)
    };
    plot.marks = track.steps.iter().map(mark).collect();
    plot
}

/// The section of a page: every metric in small, with its steps.
pub fn section(series: &Series, is_new: impl Fn(&Step) -> bool) -> Section {
    let mut answers = answer(series, is_new).into_iter();
    let plots: Vec<Plot> = series.tracks.iter().map(|track| plot(series, track)).collect();
    Section {
        heading: title(series),
        answer: answers.next().unwrap_or_default(),
        paragraphs: answers.collect(),
        seen: Some(plots.len()),
        plots,
        tables: vec![table(series, true)],
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use pagelab_analysis::history::Value;
    use pagelab_experiment::observation::{Better, Unit};

    use super::*;

    fn track(metric: &str, figures: &[f64], steps: Vec<Step>) -> Track {
        let value = |median: &f64| Some(Value { median: *median, interval: None, n: 3 });
        Track {
            metric: metric.to_owned(),
            unit: Unit::Nanoseconds,
            better: Better::Lower,
            values: figures.iter().map(value).collect(),
            steps,
        }
    }

    fn step(at: usize, medians: (f64, f64)) -> Step {
        let change = medians.1 / medians.0 - 1.0;
        Step {
            at,
            medians,
            change: Some(change),
            interval: Some((change - 0.02, change + 0.02)),
            worse: Some(change > 0.0),
        }
    }

    fn series(tracks: Vec<Track>) -> Series {
        let count = tracks.first().map_or(0, |track| track.values.len());
        let point = |n: usize| Point {
            label: format!("r{n}"),
            runs: vec![format!("run-{n}")],
            started: format!("2026-11-{:02}T10:00:00Z", n + 1),
        };
        Series {
            name: "latency on host".to_owned(),
            machine: Some("2 × AMD EPYC".to_owned()),
            points: (0..count).map(point).collect(),
            tracks,
            exact: false,
        }
    }

    fn of_ten() -> Series {
        let figures = [100.0, 100.0, 100.0, 100.0, 110.0, 110.0, 110.0, 110.0, 110.0, 110.0];
        let other = track("time.cpu", &figures, vec![step(5, (100.0, 108.0))]);
        series(vec![track("latency.dram", &figures, vec![step(4, (100.0, 110.0))]), other])
    }

    #[test]
    fn a_step_is_told_with_its_sides_and_company() {
        assert_eq!(
            answer(&of_ten(), |_| true),
            [
                "latency.dram got worse by 10.0% (+8.0% … +12.0%) between r3 (2026-11-04) and r4 (2026-11-05): 100 ns → \
                 110 ns; with it time.cpu +8.0%."
            ]
        );
        assert_eq!(
            answer(&of_ten(), |_| false),
            [
                "No new change of latency.dram in 10 points from 2026-11-01 to 2026-11-10: medians of 100 ns … 110 ns."
            ]
        );
        let short = series(vec![track("latency.dram", &[1.0, 2.0], Vec::new())]);
        assert!(
            answer(&short, |_| true)[0].starts_with("Too few points to find a change of latency.dram: 2,")
        );
        assert_eq!(answer(&series(Vec::new()), |_| true), ["No metric was measured (0 points)."]);
    }

    #[test]
    fn the_table_marks_the_step_and_has_the_newest_points() {
        let table = table(&of_ten(), false);
        assert_eq!(table.rows[4][5], "+10.0% (+8.0% … +12.0%) worse");
        assert_eq!(table.rows[3][..4], ["r3", "2026-11-04 10:00", "3", "100 ns"]);
        let long = series(vec![track("latency.dram", &[1.0; 50], Vec::new())]);
        assert_eq!(super::table(&long, false).rows.len(), MAX_ROWS);
        assert_eq!(super::table(&long, true).rows.len(), 50);
    }

    #[test]
    fn json_has_a_value_for_each_point() {
        let json = json(&of_ten());
        assert_eq!(
            json["metrics"][0]["values"].as_array().unwrap().len(),
            json["points"].as_array().unwrap().len()
        );
        assert_eq!(json["metrics"][0]["changes"][0]["from"], "r3");
        assert_eq!(json["metrics"][0]["changes"][0]["to"], "r4");
    }

    #[test]
    fn the_page_has_every_metric_with_its_mark() {
        let page = crate::document("History", None, &[section(&of_ten(), |_| true)]);
        assert!(page.contains("latency.dram") && page.contains("time.cpu"));
        assert!(page.contains("r4: +10.0%"));
        assert!(!page.contains("style="));
    }
}
