//! `pagelab compare RUN RUN…`: every other run against the first, metric by metric.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_analysis::comparison::{Comparison, Line, against_first, headlines_against_first};
use pagelab_experiment::Run;
use pagelab_experiment::declaration::Refusal;
use pagelab_experiment::metrics::current;
use pagelab_notebook::Notebook;
use pagelab_report::comparisons::{self, Options};
use pagelab_report::exchange::{self, Gate};

use crate::context::Context;
use crate::failure::usage;
use crate::{file, output};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab compare before after\n  pagelab compare @2 @1 --fail-on 5   # status 1 if 5% worse\n  pagelab compare @2 @1 --fail-on 5 --metric all-headline\n  pagelab compare base patch --fail-on 1 --junit gate.xml\n",
    after_help = "For each metric: both medians, the change with its 95% interval, the p-value, and a \
verdict. Interleaved repetitions are tested in pairs (Wilcoxon's signed-rank test), others by their ranks \
(Mann-Whitney). The experiment's primary metric is tested on its own and decides --fail-on (of command, \
elapsed time and CPU time decide); the p-values of the others are corrected for their number (Holm). Two simulators differ exactly, without p-values. A \
repetition is one sample; repetitions that one command interleaves (--on, --repeat) compare best."
)]
pub struct Arguments {
    /// The runs; the first is the baseline: names, ids, @1 for the newest
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    runs: Vec<String>,
    /// Exit with status 1 when the primary metric (or those of --metric) got significantly worse by more than PERCENT
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    fail_on: Option<f64>,
    /// Compare these metrics only; the first decides the answer, all decide --fail-on.
    /// all-headline: the primary metric and the experiment's headline metrics, corrected for their
    /// number
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = metric_name)]
    metric: Vec<String>,
    /// Also list metrics that did not change
    #[arg(short, long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write what --fail-on judged to FILE as JUnit's XML, which CI services show
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    junit: Option<PathBuf>,
}

/// The primary and the headline metrics of the experiment.
const ALL_HEADLINE: &str = "all-headline";
/// Metrics that a warning names.
const NAMED: usize = 5;

/// A percentage with or without its sign: `5`, `5%`.
pub fn percent(text: &str) -> Result<f64, Refusal> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err(Refusal::new("must be a percentage from 0, such as 5 or 5%")),
    }
}

/// A metric's present name, of a present or former one.
pub fn metric_name(text: &str) -> Result<String, Infallible> {
    Ok(current(text).to_owned())
}

/// That a metric asked for was measured by one of the runs.
pub fn measured(metric: &str, runs: &[Run]) -> Result<()> {
    match runs.iter().any(|run| !run.values_named(metric).is_empty()) {
        true => Ok(()),
        false => Err(usage(format!(
            "--metric {metric}: no run measured it\nhint: 'pagelab show RUN' lists the metrics of a run"
        ))),
    }
}

/// Compares and prints.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let notebook = Notebook::open_existing(&context.notebook)?;
    let runs = arguments
        .runs
        .iter()
        .map(|name| Ok(notebook.load(notebook.resolve(name)?)?))
        .collect::<Result<Vec<Run>>>()?;
    let headline = arguments.metric == [ALL_HEADLINE];
    for metric in arguments.metric.iter().filter(|_| !headline) {
        measured(metric, &runs)?;
    }
    let runs: Vec<&Run> = runs.iter().collect();
    let compared =
        if headline { headlines_against_first(&runs) } else { against_first(&runs, &arguments.metric) };
    let gate = arguments.fail_on.map(|percent| gate(&compared, arguments, percent)).transpose()?;
    let failed = gate.as_ref().is_some_and(|gate| gate.failed);
    output::set_status(u8::from(failed));
    if arguments.json {
        output::print_json("comparisons", compared.iter().map(comparisons::json).collect())?;
    } else {
        let options = Options { all: arguments.all };
        let print = |c| output::text(&(comparisons::terminal(c, options, &context.style) + "\n"));
        compared.iter().for_each(print);
    }
    for line in gate.iter().flat_map(|gate| &gate.lines) {
        output::remark!("{line}");
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// What --fail-on says.
struct Answer {
    failed: bool,
    lines: Vec<String>,
}

/// Judges, and writes what was judged as JUnit's XML where that is wanted.
fn gate(compared: &[Comparison], arguments: &Arguments, percent: f64) -> Result<Answer> {
    let metrics: Vec<Vec<&str>> = compared.iter().map(|c| judged(c, arguments)).collect::<Result<_>>()?;
    let gates: Vec<Gate> = compared
        .iter()
        .zip(&metrics)
        .map(|(comparison, metrics)| Gate { comparison, metrics, percent })
        .collect();
    if let Some(path) = &arguments.junit {
        file::write(path, |out| Ok(out.write_all(exchange::junit(&gates).as_bytes())?))?;
    }
    let mut answer = Answer { failed: false, lines: Vec::new() };
    for Gate { comparison, metrics, .. } in gates {
        let run = &comparison.other.run;
        for line in comparison.worse_by(percent, metrics) {
            answer.failed = true;
            answer.lines.push(format!("{run}: {} got worse by more than {percent}%", line.name));
        }
        let others = comparison.unjudged_worse_by(percent, metrics);
        let change = |line: &&Line| match line.change {
            Some(change) => format!("{} ({:+.1}%)", line.name, 100.0 * change),
            None => line.name.clone(),
        };
        if let Some(first) = others.first() {
            let named: Vec<String> = others.iter().take(NAMED).map(change).collect();
            let more = others.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            answer.lines.push(format!(
                "warning: {run}: {}{more} got worse by more than {percent}%, {}; use --metric {ALL_HEADLINE} or \
                 --metric {}",
                named.join(", "),
                output::UNJUDGED.0,
                metrics.iter().copied().chain([first.name.as_str()]).collect::<Vec<_>>().join(",")
            ));
        }
    }
    Ok(answer)
}

/// The metrics that decide --fail-on: those of --metric, else the experiment's deciding ones.
fn judged<'a>(comparison: &'a Comparison, arguments: &'a Arguments) -> Result<Vec<&'a str>> {
    let metrics: Vec<&str> = match arguments.metric.as_slice() {
        [all] if all == ALL_HEADLINE => comparison.lines.iter().map(|line| line.name.as_str()).collect(),
        [] => comparison.deciding.iter().map(String::as_str).collect(),
        named => named.iter().map(String::as_str).collect(),
    };
    if let Some(missing) = metrics.iter().find(|name| comparison.line(name).is_none()) {
        let (a, b) = (&comparison.baseline.run, &comparison.other.run);
        anyhow::bail!(
            "--fail-on: {missing} was not measured in both {a} and {b}\nhint: name another with --metric"
        );
    }
    if metrics.is_empty() {
        anyhow::bail!("--fail-on: a recording has no primary metric\nhint: name one with --metric");
    }
    Ok(metrics)
}
