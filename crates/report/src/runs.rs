//! A run for the terminal and as JSON: its conditions, its figures, its tables, its remarks.

use pagelab_analysis::finding::{Finding, Severity, What};
use pagelab_analysis::findings::{Assessment, of_run, severity};
use pagelab_analysis::stats::median;
use pagelab_experiment::environment;
use pagelab_experiment::experiments::Recording;
use pagelab_experiment::observation::{Better, Level, Unit};
use pagelab_experiment::{Repetition, Run, TableId, catalogue, tables};
use serde_json::{Map, Value, json};

use crate::findings;
use crate::table::TextTable;
use crate::text::{self, Style, wrapped};

/// Rows of a table with named rows.
const ROWS: usize = 15;

/// A metric over the repetitions that count.
#[derive(Clone, Debug)]
pub(crate) struct Measure<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its unit.
    pub unit: Unit,
    /// Which direction is an improvement.
    pub better: Better,
    /// The values that were measured, in the repetitions' order.
    pub values: Vec<f64>,
}

/// The metrics of all repetitions of a run, in the order first seen.
pub(crate) fn measures(run: &Run) -> Vec<Measure<'_>> {
    let mut list: Vec<Measure> = Vec::new();
    for metric in run.done().flat_map(|r| &r.observations.metrics) {
        let found = list.iter().position(|m| m.name == metric.name && m.unit == metric.unit);
        let at = found.unwrap_or_else(|| {
            let (unit, better) = (metric.unit, metric.better);
            list.push(Measure { name: &metric.name, unit, better, values: Vec::new() });
            list.len() - 1
        });
        list[at].values.extend(metric.value);
    }
    list
}

/// The smallest and the greatest of several values.
pub(crate) fn range(values: &[f64], unit: Unit) -> String {
    if values.len() < 2 {
        return String::new();
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} … {}", text::value(Some(low), unit), text::value(Some(high), unit))
}

/// A run: a line on what it was, a table of figures, remarks; with `all` the environment and the kernel's
/// counters as well.
pub fn terminal(run: &Run, all: bool, style: &Style) -> String {
    let header = &run.header;
    let wrap = |text: &str| wrapped(text, "", "  ", style) + "\n";
    let mut out =
        wrap(&format!("{} (id {}): {} on {}", header.name, run.id, header.experiment, header.target));
    let conditions = [header.setting.to_string(), machine(run).join(", ")];
    let conditions: Vec<String> = conditions.into_iter().filter(|c| !c.is_empty()).collect();
    if !conditions.is_empty() {
        out += &wrap(&conditions.join(" · "));
    }
    let rows: Vec<Vec<String>> = measures(run)
        .into_iter()
        .map(|Measure { name, unit, values, .. }| {
            let n = values.len().to_string();
            vec![name.to_owned(), text::value(median(&values), unit), range(&values, unit), n]
        })
        .collect();
    if !rows.is_empty() {
        out += &(text::table(&["metric", "median", "min … max", "n"], &rows, style) + "\n");
    }
    for text in remarks(run) {
        out += &wrap(&format!("Note: {text}"));
    }
    for table in tables(run, all).into_iter().flat_map(|table| table.in_parts(style)) {
        out += &format!("\n{}", table.terminal(style));
    }
    if let (true, Some(last)) = (all, run.repetitions.last()) {
        out += &everything(last, style);
    }
    out
}

/// Of how many experiments on their main figures alone are shown, a line each.
pub const MANY: usize = 3;

/// A narrower terminal has no room for the spread beside the names.
pub(crate) const WITH_SPREAD: usize = 100;

/// Of many experiments one line for each run: its main figure with the spread, and whether something spoils it.
/// Their sentences are in the verdict of each alone.
pub fn experiments(runs: &[&Run], style: &Style) -> String {
    let wide = style.width >= WITH_SPREAD;
    let row = |run: &&Run| {
        let main = of_run(run).and_then(|finding| findings::main(&finding));
        let remark = match severity(run) {
            Severity::Info => "ok",
            Severity::Warning => "warning",
            Severity::Failure => "failed",
        };
        let (what, value, spread) =
            main.map_or_else(Default::default, |main| (main.what.to_owned(), main.value, main.spread));
        let spread = wide.then_some(spread);
        [run.header.name.clone(), what, value].into_iter().chain(spread).chain([remark.to_owned()]).collect()
    };
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let mut headings = vec!["run", "main figure", ""];
    headings.extend(wide.then_some("min … max").into_iter().chain(["notes"]));
    format!("Experiments\n{}\n", text::table(&headings, &rows, style))
}

/// What `findings` say beyond the main figures of [`experiments`].
pub fn beyond_the_main_figures(findings: &[Finding]) -> Vec<Finding> {
    findings.iter().filter(|finding| findings::main(finding).is_none()).cloned().collect()
}

/// The machine: its kernel, and its processors.
pub(crate) fn machine(run: &Run) -> Vec<String> {
    let entry = |key: &str| run.repetitions.last()?.observations.environment.get(key).map(String::as_str);
    let kernel = entry(environment::KERNEL_RELEASE).map(|release| format!("Linux {release}"));
    let processors = entry(environment::CPU_MODEL).map(|model| match entry(environment::CPU_COUNT) {
        None => model.to_owned(),
        Some("1") => format!("1 CPU ({model})"),
        Some(n) => format!("{n} CPUs ({model})"),
    });
    kernel.into_iter().chain(processors).collect()
}

/// The machines of several runs: their kernels, then their processors, each once.
pub(crate) fn machines(runs: &[&Run]) -> Vec<String> {
    let mut parts: Vec<String> = runs.iter().flat_map(|run| machine(run)).collect();
    parts.sort_by_key(|part| !part.starts_with("Linux "));
    let mut once: Vec<String> = Vec::new();
    for part in parts {
        if !once.contains(&part) {
            once.push(part);
        }
    }
    once
}

/// The notes that are no warnings (those are findings), each once.
fn remarks(run: &Run) -> Vec<&str> {
    let mut seen: Vec<&str> = Vec::new();
    for note in run.repetitions.iter().flat_map(|r| &r.observations.notes) {
        if note.level == Level::Info && !seen.contains(&note.text.as_str()) {
            seen.push(&note.text);
        }
    }
    seen
}

/// The tables with named rows, without the rows in which nothing happened; `all`: whole. Of a recording
/// the counters themselves.
fn tables(run: &Run, all: bool) -> Vec<TextTable> {
    let of = |id: TableId| {
        let mut table = TextTable::observed(run.done().next()?.observations.table(id)?, all)?;
        let left = table.rows.len().saturating_sub(ROWS);
        if left > 0 && !all && id != tables::operations::TABLE {
            table.rows.truncate(ROWS);
            table.remarks.push(format!("{left} more rows: show --all"));
        }
        Some(table)
    };
    let compared = catalogue::tables().filter(|table| !table.compared.is_empty());
    compared.filter_map(of).chain(recorded(run)).filter(|table| !table.rows.is_empty()).collect()
}

/// A recording's counters over its whole time.
fn recorded(run: &Run) -> Option<TextTable> {
    run.header.experiment.parameters::<Recording>()?;
    let table = run.repetitions.iter().find_map(|r| r.observations.table(tables::counters::TABLE))?;
    let rows = table.columns.iter().skip(1).filter_map(|column| {
        let known: Vec<f64> = column.numbers()?.iter().flatten().copied().collect();
        let unit = column.unit.unwrap_or(Unit::Count);
        let last = known.last().copied();
        let mean = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64);
        let ends = |pick: fn(f64, f64) -> f64| known.iter().copied().reduce(pick);
        let value = |v| text::value(v, unit);
        // A counter that never moved says nothing.
        (ends(f64::max) != Some(0.0) || ends(f64::min) != Some(0.0)).then(|| {
            vec![column.name.clone(), value(mean), value(ends(f64::min)), value(ends(f64::max)), value(last)]
        })
    });
    Some(TextTable::new("counters over the recording", ["counter", "mean", "min", "max", "last"], rows))
}

/// The environment and the kernel's counters of one repetition.
fn everything(repetition: &Repetition, style: &Style) -> String {
    let observations = &repetition.observations;
    let rows: Vec<Vec<String>> =
        observations.environment.iter().map(|(k, v)| vec![k.clone(), v.clone()]).collect();
    let mut out = format!("\n{}\n", text::table(&["environment", ""], &rows, style));
    let rows: Vec<Vec<String>> = observations
        .counters
        .iter()
        .filter(|c| c.before != c.after)
        .map(|c| vec![c.source.clone(), c.name.clone(), text::count(c.after as f64 - c.before as f64)])
        .collect();
    out += &format!("\n{}\n", text::table(&["counter of", "name", "change"], &rows, style));
    out
}

/// The findings for the terminal, a line each.
pub fn verdict(findings: &[Finding], style: &Style) -> String {
    let mut out = String::new();
    if !findings.is_empty() {
        out += "Verdict\n";
    }
    for finding in findings {
        let line = findings::line(finding);
        let (first, others) = match &finding.what {
            // Of a guest that failed its console's last lines follow; the name before them is of one line.
            What::NotPerformed { .. } if !finding.run.contains('\n') => {
                line.split_once('\n').unwrap_or((&line, ""))
            }
            _ => (line.as_str(), ""),
        };
        out += &(wrapped(first, "  ", "    ", style) + "\n");
        out.extend(others.lines().map(|line| wrapped(line, "    ", "    ", style) + "\n"));
    }
    out
}

/// Runs and what they say as JSON: for each run its header and every repetition's metrics; the findings as
/// data and as lines; the comparisons; the page's file.
pub fn json(assessment: &Assessment, page: Option<&str>) -> Value {
    let runs: Vec<Value> = assessment.runs.iter().map(|run| run_json(run)).collect();
    json!({
        "runs": runs,
        "findings": assessment.findings.iter().map(finding_json).collect::<Vec<_>>(),
        "ladder": assessment.ladder,
        "comparisons": assessment.comparisons.iter().map(crate::comparisons::json).collect::<Vec<_>>(),
        "verdict": assessment.findings.iter().map(findings::line).collect::<Vec<_>>(),
        "report": page,
    })
}

/// A finding as JSON, with its sentence.
pub fn finding_json(finding: &Finding) -> Value {
    let mut value = json!(finding);
    value["text"] = findings::text(finding).into();
    value
}

fn run_json(run: &Run) -> Value {
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
