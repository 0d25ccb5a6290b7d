//! What measurements of running processes and of running cgroups have in common.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use pagelab_confine::{Confinement, Problem, SetUp, Turn};
use pagelab_experiment::build::{Figure, Sheet};
use pagelab_experiment::experiments::Need;
use pagelab_experiment::observation::{Level, Note};
use pagelab_experiment::{Experiment, Observation, Outcome, RunHeader, Setting, TargetSpec};
use pagelab_notebook::{Notebook, RunId};
use pagelab_reference::room;

use crate::context::Context;
use crate::failure::CommandError;
use crate::interrupt::Interrupt;
use crate::output::remark;

/// The heading of the options.
const RUNNING: &str = "Options for a running process or cgroup";

/// The options.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Running {
    /// The time limit of the measurement, in seconds
    #[arg(long = "for", help_heading = RUNNING, value_name = "SECONDS", default_value_t = 60, conflicts_with = "program", value_parser = clap::value_parser!(u32).range(12..=86_400))]
    pub seconds: u32,
    /// The share of the time for which the measurement may stall the tasks; of a process, for which
    /// it may walk the page tables
    #[arg(long, help_heading = RUNNING, value_name = "SHARE", default_value = "1%", conflicts_with = "program", value_parser = stall)]
    pub max_stall: f64,
    /// Measure again this many seconds after each measurement, and print the change
    #[arg(long, help_heading = RUNNING, value_name = "SECONDS", conflicts_with = "program", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub watch: Option<u32>,
}

/// The form of the result.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// The file for the page, if one is wanted.
    pub html: Option<&'a Path>,
    /// JSON instead of words.
    pub json: bool,
    /// The run's name in the notebook.
    pub name: Option<&'a str>,
}

/// The run in the notebook: a repetition for each measurement.
pub struct Record<'a> {
    notebook: Notebook,
    run: RunId,
    measurements: u32,
    context: &'a Context,
}

impl<'a> Record<'a> {
    /// Begins the run of measurements of `of`.
    ///
    /// # Errors
    /// When the notebook cannot be written.
    pub fn begin(of: String, running: Running, output: Output<'_>, context: &'a Context) -> Result<Self> {
        let mut notebook = Notebook::open(&context.notebook)?;
        let started = jiff::Timestamp::now().to_string();
        let run = notebook.begin_run(&RunHeader {
            name: output.name.unwrap_or_default().to_owned(),
            batch: started.clone(),
            experiment: Experiment::Need(Need { of, seconds: running.seconds }),
            target: TargetSpec::host(),
            setting: Setting::default(),
            conditions: Vec::new(),
            deterministic: false,
            started,
            pagelab: env!("CARGO_PKG_VERSION").to_owned(),
        })?;
        Ok(Self { notebook, run, measurements: 0, context })
    }

    /// Keeps a measurement: its figures, its table, and the answer in words.
    ///
    /// # Errors
    /// When the notebook cannot be written.
    pub fn keep(&mut self, figures: &[Figure], table: Sheet, answer: String) -> Result<()> {
        self.measurements += 1;
        let number = self.measurements;
        let started = jiff::Timestamp::now().to_string();
        let mut seen = vec![Observation::Environment(pagelab_live::harness::environment::machine())];
        seen.extend(figures.iter().map(|(metric, value)| Observation::Metric(metric.figure(*value))));
        seen.push(Observation::Table(table.table()));
        seen.push(Observation::Note(Note { level: Level::Info, text: answer }));
        let run = self.run;
        self.notebook.together(|changes| {
            let repetition = changes.begin_repetition(run, number, &started)?;
            changes.finish_repetition(repetition, &seen, &Outcome::Done)
        })?;
        if number == 1 && !self.context.quiet {
            let name = self.notebook.load(run)?.header.name;
            remark!("kept in {} as {name}", self.context.notebook.display());
        }
        Ok(())
    }
}

/// Runs `measure`, which changes `file` of the kernel, and restores the file however that ends.
///
/// # Errors
/// When the file cannot be restored, the user interrupts, or the measurement fails.
pub fn restoring<T>(
    file: PathBuf,
    interrupt: Interrupt,
    quiet: bool,
    measure: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let set_up = SetUp { saved: vec![file], ..SetUp::default() };
    let _turn = Turn::wait(&set_up, &mut patience(interrupt, quiet)).map_err(problem)?;
    let confinement = Confinement::set_up(&set_up, room::available()).map_err(problem)?;
    let found = measure();
    match confinement.undo().pop() {
        Some(left) => found.and(Err(anyhow!(left))),
        None => found,
    }
}

/// Says what another run is doing that this one waits for, once, and whether the user wants to end.
fn patience(interrupt: Interrupt, quiet: bool) -> impl FnMut(&str) -> bool {
    let mut said = quiet;
    move |other| {
        if !std::mem::replace(&mut said, true) {
            remark!("waiting for {other} to end");
        }
        interrupt.requested()
    }
}

fn problem(problem: Problem) -> anyhow::Error {
    match problem {
        Problem::Unavailable(what, remedy) | Problem::Refused(what, remedy) => {
            anyhow!("{what}\nhint: {remedy}")
        }
        Problem::Failed(what, error) => anyhow!("{what}: {error}"),
        Problem::Interrupted => CommandError::Stopped.into(),
    }
}

/// How often a wait looks whether the user wants to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

fn stall(text: &str) -> Result<f64, &'static str> {
    let share = text.strip_suffix('%').and_then(|percent| percent.parse::<f64>().ok());
    let share = share.map(|percent| percent / 100.0).filter(|share| (0.0001..=0.5).contains(share));
    share.ok_or("write a percentage from 0.01% to 50%")
}

/// Waits, unless the user wants to end.
///
/// # Errors
/// When the user does.
pub fn wait(until: Instant, interrupt: Interrupt) -> Result<()> {
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if interrupt.requested() {
            return Err(CommandError::Stopped.into());
        }
        std::thread::sleep(left.min(POLL_INTERVAL));
    }
    Ok(())
}
