//! `pagelab record`: chosen counters over time, kept in the notebook.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pagelab_counters::views::series::Series;
use pagelab_counters::{Selection, Tree};
use pagelab_experiment::experiments::Recording;
use pagelab_experiment::observation::Observation;
use pagelab_experiment::{Experiment, Outcome, RunHeader, Setting, TargetSpec};
use pagelab_notebook::{Notebook, RepetitionId};

use crate::bug;
use crate::context::Context;
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::output::say;
use crate::recording;
use crate::ticker::{Extra, Interval, Schedule, Ticker};

/// The most samples of one recording: what fits on a page.
const MAX_SAMPLES: u64 = 1_000_000;
/// What was seen goes into the notebook at least so often: a killed recording loses no more.
const KEEP: Duration = Duration::from_secs(1);

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab record --count 60\n  pagelab record vmstat pressure --interval 0.5 --name before\n  pagelab record --extra counters/ extra pressure\n  pagelab report @1 -o recording.html\n",
    after_help = "Ends after COUNT samples or with Ctrl-C. Samples are written to the notebook once \
per second, so a killed recording loses at most the last second; it is marked as torn. Growing counters \
are stored as rates, with their first and last values."
)]
pub struct Arguments {
    /// The counters to record, as in 'pagelab stat' [default: the signs of a shortage]
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Seconds between two samples
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(Interval))]
    interval: Interval,
    /// End after N samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SAMPLES))]
    count: Option<u64>,
    /// The run's name in the notebook
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    extra: Extra,
}

/// Records until the count is reached or the user ends it.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let selectors: Vec<String> = if arguments.selectors.is_empty() {
        let more = arguments.extra.any().then_some("extra");
        recording::DEFAULT.into_iter().chain(more).map(str::to_owned).collect()
    } else {
        arguments.selectors.clone()
    };
    let selection =
        Selection::parse(selectors.iter().map(String::as_str)).map_err(|e| usage(e.to_string()))?;
    let tree = arguments.extra.add(Tree::live())?;
    if let Some(selector) = recording::unmatched(&tree, &arguments.selectors) {
        return Err(usage(format!("no counter matches '{selector}'\nhint: 'pagelab stat -l' lists all")));
    }
    let first = tree.read(&selection);
    if first.samples().is_empty() {
        return Err(usage(
            "this machine has none of the default counters\nhint: name others ('pagelab stat -l' lists all)",
        ));
    }
    let interrupt = Interrupt::listen().context("cannot install signal handlers")?;
    let mut notebook = Notebook::open(&context.notebook)?;
    let started = jiff::Timestamp::now().to_string();
    let interval = u64::try_from(arguments.interval.0.as_nanos()).unwrap_or(u64::MAX);
    let run = notebook.begin_run(&RunHeader {
        name: arguments.name.clone().unwrap_or_default(),
        batch: started.clone(),
        experiment: Experiment::Record(Recording { selectors, interval }),
        target: TargetSpec::host(),
        setting: Setting::default(),
        conditions: Vec::new(),
        deterministic: false,
        started: started.clone(),
        pagelab: env!("CARGO_PKG_VERSION").to_owned(),
    })?;
    let repetition = notebook.begin_repetition(run, 1, &started)?;
    bug::under_way(format!("the recording {run} in {}", context.notebook.display()));
    notebook.record(repetition, &Observation::Environment(pagelab_live::harness::environment::machine()))?;

    let mut series = Series::default();
    let mut last = first.clone();
    series.add(first.clone());
    let count = arguments.count.unwrap_or(MAX_SAMPLES);
    let (mut samples, mut kept) = (0, Instant::now());
    let mut ticker =
        Ticker::new(Schedule { interval: Some(arguments.interval), count: Some(count) }, Some(interrupt));
    while ticker.wait() {
        last = tree.read(&selection);
        series.add(last.clone());
        samples += 1;
        if kept.elapsed() >= KEEP {
            kept = Instant::now();
            keep(&mut notebook, repetition, &mut series)?;
        }
        if !ticker.more() {
            break;
        }
    }
    keep(&mut notebook, repetition, &mut series)?;
    notebook.record(repetition, &Observation::Counters(recording::counters(&first, &last)))?;
    let outcome = if samples > 0 { Outcome::Done } else { Outcome::Interrupted };
    notebook.finish_repetition(repetition, &outcome)?;
    if !context.quiet {
        let name = notebook.load(run)?.header.name;
        say!(
            "{samples} samples in {} as '{name}': draw them with 'pagelab report {name} -o page.html'",
            context.notebook.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds what was seen since the last time to the recording's table.
fn keep(notebook: &mut Notebook, repetition: RepetitionId, series: &mut Series) -> Result<()> {
    if !series.is_empty() {
        let (times, columns) = series.take();
        notebook.extend_table(repetition, &recording::table(&times, columns))?;
    }
    Ok(())
}
