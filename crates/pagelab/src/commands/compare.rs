//! `pagelab compare RUN RUN…`: every other run against the first, metric by metric.

use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::Run;
use pagelab_notebook::Notebook;

use crate::context::Context;
use crate::failure::usage;
use crate::{comparison, output};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab compare before after\n  pagelab compare @2 @1 --fail-on 5      # exit status 1 if anything got worse by more than 5 %\n",
    after_help = "For each metric: both medians, the change of the median with its 95 % bootstrap interval, the p value \
of a Mann-Whitney test corrected for the number of metrics (Holm), and a verdict. A repetition is one sample; runs \
of one command, interleaved with --on and --repeat, compare best."
)]
pub struct Arguments {
    /// The runs; the first is the baseline: names, ids, @1 for the newest
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    runs: Vec<String>,
    /// Exit with status 1 when a metric got worse by more than PERCENT, beyond doubt
    #[arg(long, value_name = "PERCENT")]
    fail_on: Option<f64>,
    /// Look at these metrics only
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    metric: Vec<String>,
    /// The metrics without a difference in the table as well
    #[arg(short, long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Compares and prints.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if let Some(percent) = arguments.fail_on.filter(|p| !p.is_finite() || *p < 0.0) {
        return Err(usage(format!("--fail-on {percent}: write a percentage from 0 up, such as 5")));
    }
    let notebook = Notebook::open_existing(&context.notebook)?;
    let mut runs = arguments
        .runs
        .iter()
        .map(|name| Ok(notebook.load(notebook.resolve(name)?)?))
        .collect::<Result<Vec<Run>>>()?;
    if !arguments.metric.is_empty() {
        for run in &mut runs {
            for repetition in &mut run.repetitions {
                repetition.observations.metrics.retain(|m| arguments.metric.contains(&m.name));
            }
        }
    }
    let runs: Vec<&Run> = runs.iter().collect();
    let comparisons = comparison::against_first(&runs);
    if arguments.json {
        output::print_json("comparisons", comparisons.iter().map(comparison::json).collect())?;
    } else {
        let options = comparison::Options { all: arguments.all, ..Default::default() };
        comparisons.iter().for_each(|c| comparison::print_one(c, &runs, &options, context));
    }
    let Some(percent) = arguments.fail_on else { return Ok(ExitCode::SUCCESS) };
    if comparisons.iter().any(|c| c.lines.is_empty()) {
        anyhow::bail!("nothing to judge: no metric was measured on both sides");
    }
    let mut failed = false;
    for comparison in &comparisons {
        for line in comparison.worse_by(percent) {
            failed = true;
            eprintln!("pagelab: {}: {} got worse by more than {percent} %", comparison.names.1, line.name);
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}
