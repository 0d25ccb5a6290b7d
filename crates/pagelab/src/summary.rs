//! A run on the terminal and as JSON: its conditions, its figures, its remarks, the verdict.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Outcome, Repetition, Run};
use pagelab_report::text;
use serde_json::{Map, Value, json};

use crate::comparison;
use crate::context::Context;
use crate::output::{say, sentences};

/// Prints what `pagelab run` ends with: the verdict first, then the figures.
pub fn print(runs: &[&Run], lines: &[String], page: Option<&Path>, context: &Context) -> Result<()> {
    if comparison::many(runs) {
        say!("Of each run: pagelab show NAME; of any two: pagelab compare NAME NAME.\n");
    } else {
        runs.iter().try_for_each(|run| print_one(run, false, context))?;
    }
    comparison::print(runs, context);
    print_end(runs, lines, page, context)
}

/// Prints the end of that alone: the verdict, and where everything is.
pub fn print_end(runs: &[&Run], lines: &[String], page: Option<&Path>, context: &Context) -> Result<()> {
    print_verdict(lines, context);
    let names: Vec<&str> = runs.iter().map(|run| run.header.name.as_str()).collect();
    say!();
    let kept = format!("Kept in {} as {}.", context.notebook.display(), names.join(", "));
    sentences(&kept, "", "  ", &context.style);
    if let Some(page) = page {
        let full = page.canonicalize().unwrap_or_else(|_| page.to_owned());
        say!("Plots: {}", full.display());
    }
    Ok(())
}

/// Prints the verdict's sentences.
pub fn print_verdict(lines: &[String], context: &Context) {
    if !lines.is_empty() {
        say!("Verdict");
    }
    for line in lines {
        sentences(line, "  ", "    ", &context.style);
    }
}

/// The metrics of all repetitions of a run, in the order first seen: name, unit, and the values of
/// the repetitions that count.
pub fn metrics(run: &Run) -> Vec<(String, Unit, Vec<f64>)> {
    let mut list: Vec<(String, Unit, Vec<f64>)> = Vec::new();
    for metric in run.done().flat_map(|r| &r.observations.metrics) {
        let found = list.iter().position(|(name, ..)| *name == metric.name);
        let at = found.unwrap_or_else(|| {
            list.push((metric.name.clone(), metric.unit, Vec::new()));
            list.len() - 1
        });
        list[at].2.extend(metric.value);
    }
    list
}

/// Prints one run: a line on what it was, a table of figures, remarks.
pub fn print_one(run: &Run, all: bool, context: &Context) -> Result<()> {
    let header = &run.header;
    let what = format!("{} (id {}): {} on {}", header.name, run.id, header.experiment, header.target);
    sentences(&what, "", "  ", &context.style);
    let conditions = [header.setting.to_string(), conditions(run)];
    let conditions: Vec<String> = conditions.into_iter().filter(|c| !c.is_empty()).collect();
    sentences(&conditions.join(" · "), "", "  ", &context.style);
    let rows: Vec<Vec<String>> = metrics(run)
        .into_iter()
        .map(|(name, unit, values)| {
            let median = pagelab_analysis::stats::median(&values);
            let spread = match values.as_slice() {
                [] | [_] => String::new(),
                _ => {
                    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    format!("{} … {}", text::value(Some(low), unit), text::value(Some(high), unit))
                }
            };
            vec![name, text::value(median, unit), spread, values.len().to_string()]
        })
        .collect();
    if !rows.is_empty() {
        say!("{}", text::table(&["metric", "median", "spread", "n"], &rows, &context.style));
    }
    for repetition in &run.repetitions {
        match &repetition.outcome {
            Outcome::Done => {}
            Outcome::Interrupted => say!("Repetition {} was interrupted.", repetition.number),
            Outcome::Torn => {
                say!("Repetition {} is torn: pagelab or the machine was killed.", repetition.number)
            }
            Outcome::Failed(failure) => say!("Repetition {} failed: {}.", repetition.number, failure.full()),
        }
    }
    for text in remarks(run) {
        sentences(&format!("Note: {text}"), "", "  ", &context.style);
    }
    if let (true, Some(last)) = (all, run.repetitions.last()) {
        print_all(last, context);
    }
    say!();
    Ok(())
}

/// The machine in one line.
fn conditions(run: &Run) -> String {
    let Some(last) = run.repetitions.last() else { return String::new() };
    let entry = |key: &str| last.observations.environment.get(key).cloned();
    let kernel = entry("kernel.release").map(|r| format!("Linux {r}"));
    let cpu = entry("cpu.model").map(|m| match entry("cpu.count") {
        Some(n) => format!("{n} × {m}"),
        None => m,
    });
    [kernel, cpu].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn remarks(run: &Run) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for note in run.repetitions.iter().flat_map(|r| &r.observations.notes) {
        if !seen.contains(&note.text) {
            seen.push(note.text.clone());
        }
    }
    seen
}

/// The environment and the kernel's counters of one repetition.
fn print_all(repetition: &Repetition, context: &Context) {
    let observations = &repetition.observations;
    let rows: Vec<Vec<String>> =
        observations.environment.iter().map(|(k, v)| vec![k.clone(), v.clone()]).collect();
    say!("{}", text::table(&["environment", ""], &rows, &context.style));
    let rows: Vec<Vec<String>> = observations
        .counters
        .iter()
        .filter(|c| c.before != c.after)
        .map(|c| vec![c.source.clone(), c.name.clone(), text::count((c.after - c.before) as f64)])
        .collect();
    say!("{}", text::table(&["counter of", "name", "change"], &rows, &context.style));
}

/// Prints runs as JSON: for each its header and every repetition's metrics; the verdict; the page.
pub fn print_json(runs: &[&Run], lines: &[String], page: Option<&Path>) -> Result<ExitCode> {
    let list: Vec<Value> = runs.iter().map(|run| json(run)).collect();
    let value = json!({ "runs": list, "verdict": lines, "report": page.map(|p| p.display().to_string()) });
    crate::output::print_json("result", value)
}

fn json(run: &Run) -> Value {
    let repetitions: Vec<Value> = run
        .repetitions
        .iter()
        .map(|r| {
            let metrics: Map<String, Value> = r
                .observations
                .metrics
                .iter()
                .map(|m| (m.name.clone(), json!({ "value": m.value, "unit": m.unit })))
                .collect();
            json!({
                "number": r.number,
                "started": r.started,
                "result": r.outcome,
                "metrics": metrics,
                "notes": r.observations.notes,
                "environment": r.observations.environment,
            })
        })
        .collect();
    json!({
        "id": run.id,
        "name": run.header.name,
        "experiment": run.header.experiment,
        "target": run.header.target,
        "setting": run.header.setting,
        "started": run.header.started,
        "repetitions": repetitions,
    })
}
