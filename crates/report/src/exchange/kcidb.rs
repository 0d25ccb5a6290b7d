//! A report for KCIDB, KernelCI's database: a test for each run with the outcome, below it one for
//! each metric.

use std::io::{self, Write};

use pagelab_analysis::stats::median;
use pagelab_experiment::failure::FailureKind;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Outcome, Run};
use serde_json::{Map, Value, json};

use super::{Build, failure, repetitions, symbol};
use crate::runs::Measure;

/// The schema's version; a later one of the same major number takes it as well.
const VERSION: (u32, u32) = (5, 3);

pub(super) fn write(runs: &[(&Run, Vec<Measure>)], build: &Build, to: &mut impl Write) -> io::Result<()> {
    let tests: Vec<Value> = runs.iter().flat_map(|(run, measures)| tests(run, measures, build)).collect();
    let report = json!({ "version": { "major": VERSION.0, "minor": VERSION.1 }, "tests": tests });
    serde_json::to_writer_pretty(&mut *to, &report)?;
    writeln!(to)
}

fn tests(run: &Run, measures: &[Measure], build: &Build) -> Vec<Value> {
    let header = &run.header;
    let environment: Map<String, Value> = run
        .done()
        .flat_map(|r| &r.observations.environment)
        .map(|(key, value)| (key.clone(), clean(value).into()))
        .collect();
    let test = |path: &str, status: &str, comment: String| {
        json!({
            "build_id": build.id,
            "origin": build.origin,
            "id": format!("{}:{}/{}/{path}", build.origin, header.started, clean(&header.name)),
            "path": path,
            "status": status,
            "comment": clean(&comment),
            "start_time": header.started,
        })
    };
    let path = format!("pagelab.{}", header.experiment.name());
    let mut whole = test(&path, status(run), header.series());
    whole["environment"] = json!({ "misc": environment });
    whole["misc"] = json!({ "pagelab": header.pagelab, "figures": repetitions(run) });
    if let Some(why) = failure(run) {
        whole["log_excerpt"] = clean(&why).chars().take(1_000).collect::<String>().into();
    }
    let metrics = measures.iter().filter_map(|measure| {
        let value = median(&measure.values)?;
        let below = format!("{path}.{}", measure.name.replace('.', "_"));
        let mut test = test(&below, "DONE", format!("{}: {}", repetitions(run), header.series()));
        test["number"] = number(value, measure.unit);
        Some(test)
    });
    std::iter::once(whole).chain(metrics).collect()
}

/// A run measures, and says nothing of whether the kernel is right; what was not performed says
/// why.
fn status(run: &Run) -> &'static str {
    let bad = run.repetitions.iter().find(|repetition| repetition.outcome != Outcome::Done);
    match bad.map(|repetition| &repetition.outcome) {
        None if run.repetitions.is_empty() => "MISS",
        None => "DONE",
        Some(Outcome::Failed(failure)) => match failure.kind {
            FailureKind::Unsupported { .. } | FailureKind::Refused { .. } => "SKIP",
            FailureKind::NeverBooted | FailureKind::GuestDied => "FAIL",
            _ => "ERROR",
        },
        Some(_) => "MISS",
    }
}

/// Seconds where a service would draw "m" and "µ" before the unit; other units as they are.
fn number(value: f64, unit: Unit) -> Value {
    match unit {
        Unit::Nanoseconds => json!({ "value": value / 1e9, "unit": "s", "prefix": "metric" }),
        Unit::Bytes | Unit::BytesPerSecond | Unit::BytesPerMillionInstructions => {
            json!({ "value": value, "unit": symbol(unit), "prefix": "binary" })
        }
        unit => match symbol(unit) {
            "" => json!({ "value": value }),
            symbol => json!({ "value": value, "unit": symbol }),
        },
    }
}

/// The schema allows no NUL.
fn clean(text: &str) -> String {
    text.replace('\0', "")
}
