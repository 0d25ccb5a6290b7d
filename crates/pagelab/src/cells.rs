//! Measures the cells of a matrix of switches and loads in guests, two at once.
//!
//! A guest counts instructions, so another one next to it changes no figure. Each guest has a
//! notebook of its own, which is removed.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context as _, Result};
use clap::Parser;
use pagelab_analysis::mechanisms::{DEFAULT_MORE, Load, Matrix, Outcome, Switch};
use pagelab_experiment::observation::Observations;
use pagelab_experiment::setting::Value;
use pagelab_experiment::{Experiment, Failure, FailureKind, Request, Run, Setting, TargetSpec, metrics};
use pagelab_reference::room;

use crate::context::Context;
use crate::interrupt::Interrupt;
use crate::output::HINT;
use crate::performance::{self, Planned};
use crate::progress::Work;

/// Maximum number of guests at once.
const MAX_GUESTS: usize = 2;
/// Failures in a row after which the rest is not measured.
const MAX_FAILURES: u32 = 5;

/// The command line of a load.
#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    setting: Setting,
    #[command(subcommand)]
    experiment: Experiment,
}

/// A load by its number, without a switch or under one by its number.
#[derive(Clone, Copy)]
struct Job {
    load: usize,
    switch: Option<usize>,
}

/// The cells to measure.
pub struct Cells {
    target: TargetSpec,
    loads: Vec<Load>,
    switches: Vec<Switch>,
    repeat: u32,
    requests: Vec<Request>,
    /// Memory that a guest may take, bytes.
    memory: u64,
    interrupt: Interrupt,
}

/// What the workers share.
struct Shared {
    jobs: Vec<Job>,
    next: AtomicUsize,
    ends: AtomicBool,
    /// Why the guest's kernel does not have a switch, once that is known.
    lacking: Vec<OnceLock<String>>,
}

/// The request of a load without a switch.
fn request(load: &Load) -> Result<Request> {
    let words = std::iter::once("pagelab").chain(load.line.split_whitespace());
    let line = Line::try_parse_from(words).with_context(|| format!("the load {}", load.name))?;
    Ok(Request::new(line.experiment, line.setting))
}

impl Cells {
    /// Plans each load without a switch on `target`.
    ///
    /// # Errors
    /// What the target does not support.
    pub fn new(target: TargetSpec, loads: Vec<Load>, switches: Vec<Switch>, repeat: u32) -> Result<Self> {
        let requests = loads.iter().map(request).collect::<Result<Vec<Request>>>()?;
        let mut memory = 1;
        for request in &requests {
            memory = memory.max(Planned::new(None, request, &target)?.plan().needs.memory);
        }
        let interrupt = Interrupt::listen().context("cannot install signal handlers")?;
        Ok(Self { target, loads, switches, repeat, requests, memory, interrupt })
    }

    /// Whether the user ended it.
    pub fn interrupted(&self) -> bool {
        self.interrupt.requested()
    }

    /// Measures the cells, load by load; an interrupt ends it with those that were measured.
    ///
    /// # Errors
    /// When a notebook cannot be written, and the reason if no load could be measured.
    pub fn measure(&self, context: &Context) -> Result<Matrix> {
        let folder = tempfile::Builder::new().prefix("pagelab-mechanisms-").tempdir();
        let folder = folder.context("cannot create a folder for the runs of the cells")?;
        let switches = || std::iter::once(None).chain((0..self.switches.len()).map(Some));
        let jobs = |load| switches().map(move |switch| Job { load, switch });
        let shared = Shared {
            jobs: (0..self.loads.len()).flat_map(jobs).collect(),
            next: AtomicUsize::new(0),
            ends: AtomicBool::new(false),
            lacking: self.switches.iter().map(|_| OnceLock::new()).collect(),
        };
        let mut defaults: Vec<Option<Run>> = self.loads.iter().map(|_| None).collect();
        let mut outcomes = vec![vec![Outcome::Missing; self.loads.len()]; self.switches.len()];
        let mut failed: Option<String> = None;
        let work = Work::new("Measuring cells", context.quiet);
        thread::scope(|scope| {
            let (send, receive) = mpsc::channel();
            for number in 0..self.guests() {
                let (send, shared, folder) = (send.clone(), &shared, folder.path());
                let run = move || self.work(number, shared, folder, context, &send);
                thread::Builder::new().spawn_scoped(scope, run).context("cannot start a thread")?;
            }
            drop(send);
            let (mut done, mut in_a_row) = (0, 0);
            for (job, outcome) in receive {
                done += 1;
                work.at(done as f64 / shared.jobs.len() as f64);
                let outcome: Outcome = outcome?;
                if let Outcome::Failed(why) = &outcome {
                    in_a_row += 1;
                    failed.get_or_insert_with(|| format!("{}: {why}", self.loads[job.load].name));
                } else {
                    in_a_row = 0;
                }
                if in_a_row >= MAX_FAILURES {
                    shared.ends.store(true, Relaxed);
                }
                match (job.switch, outcome) {
                    (Some(switch), outcome) => outcomes[switch][job.load] = outcome,
                    (None, Outcome::Measured(run)) => defaults[job.load] = Some(*run),
                    (None, _) => {}
                }
            }
            anyhow::Ok(())
        })?;
        match failed {
            Some(why) if defaults.iter().all(Option::is_none) => anyhow::bail!("{why}"),
            _ => Ok(Matrix::of(self.loads.clone(), self.switches.clone(), &defaults, &outcomes)?),
        }
    }

    /// As many guests at once as there are processors for and as half of the memory holds.
    fn guests(&self) -> usize {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let memory = room::available().map_or(1, |available| available / 2 / self.memory);
        usize::try_from(memory).unwrap_or(usize::MAX).min(processors).clamp(1, MAX_GUESTS)
    }

    /// Measures one cell after the other until none is left.
    fn work(
        &self,
        number: usize,
        shared: &Shared,
        folder: &Path,
        context: &Context,
        send: &mpsc::Sender<(Job, Result<Outcome>)>,
    ) {
        let notebook = folder.join(format!("runs-{number}.db"));
        let context = Context { notebook, style: context.style, quiet: true };
        while !shared.ends.load(Relaxed) && !self.interrupted() {
            let Some(&job) = shared.jobs.get(shared.next.fetch_add(1, Relaxed)) else { break };
            let outcome = self.outcome(job, shared, &context);
            if outcome.is_err() {
                shared.ends.store(true, Relaxed);
            }
            if send.send((job, outcome)).is_err() {
                break;
            }
        }
    }

    fn outcome(&self, job: Job, shared: &Shared, context: &Context) -> Result<Outcome> {
        let lacking = job.switch.map(|switch| &shared.lacking[switch]);
        if let Some(why) = lacking.and_then(OnceLock::get) {
            return Ok(Outcome::Unsupported(why.clone()));
        }
        let mut planned = match self.planned(job) {
            Ok(planned) => [planned],
            Err(error) => return Ok(Outcome::Unsupported(reason(&error))),
        };
        let repeat = if job.switch.is_none() { self.repeat * DEFAULT_MORE } else { self.repeat };
        let mut done = performance::perform(&mut planned, repeat, context)?;
        Ok(match (done.failure, done.runs.pop()) {
            _ if self.interrupted() => Outcome::Missing,
            (None, Some(run)) => Outcome::Measured(Box::new(self.figures(job, run))),
            (Some(error), _) if is_unsupported(&error) => {
                let why = reason(&error);
                // The kernel said it, so it says it of every load.
                if let Some(lacking) = lacking {
                    let _ = lacking.set(why.clone());
                }
                Outcome::Unsupported(why)
            }
            (Some(error), _) => Outcome::Failed(reason(&error)),
            (None, None) => Outcome::Missing,
        })
    }

    fn planned(&self, job: Job) -> Result<Planned> {
        let mut request = self.requests[job.load].clone();
        let mut target = self.target.clone();
        for value in job.switch.iter().flat_map(|&switch| &self.switches[switch].values) {
            // A target's own conditions come before those of a request.
            if matches!(value, Value::Swap(_)) {
                target.options.retain(|(key, _)| key != value.key());
            }
            request.asked.put(value.clone());
        }
        Planned::new(None, &request, &target)
    }

    /// The run with the figures of the matrix alone: there are hundreds of runs.
    fn figures(&self, job: Job, mut run: Run) -> Run {
        let wanted = [self.loads[job.load].metric, metrics::FAULTS_MAJOR];
        for repetition in &mut run.repetitions {
            let mut figures = std::mem::take(&mut repetition.observations.metrics);
            figures.retain(|metric| wanted.iter().any(|wanted| *wanted == *metric.name));
            repetition.observations = Observations { metrics: figures, ..Observations::default() };
        }
        run
    }
}

fn is_unsupported(error: &anyhow::Error) -> bool {
    let failure = error.downcast_ref::<Failure>();
    failure.is_some_and(|failure| matches!(failure.kind, FailureKind::Unsupported { .. }))
}

/// Why, as a clause without the names of the target and of the condition, and without the remedy.
fn reason(error: &anyhow::Error) -> String {
    let text = match error.downcast_ref::<Failure>() {
        Some(failure) => failure.full(),
        None => format!("{error:#}"),
    };
    let text = text.split(HINT).next().unwrap_or_default();
    let why = text.split_once(": it ").map_or(text, |(_, why)| why);
    why.split("; ").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use pagelab_analysis::mechanisms::LOADS;
    use pagelab_experiment::experiments;

    use super::*;

    #[test]
    fn every_load_is_a_command_line_with_a_limit_in_pages() {
        for load in LOADS {
            let request = request(&load).unwrap();
            assert!(
                request.asked.limit().is_some_and(|limit| limit.to_string().ends_with('p')),
                "{}",
                load.name
            );
            let storm = request.experiment.parameters::<experiments::Forkstorm>();
            let operations = match (request.experiment.declaration().load(), storm) {
                (experiments::Load::References(paging, experiments::Backing::File), _) => paging.references,
                (_, Some(storm)) => u64::from(storm.forks) * u64::from(storm.copies),
                _ => 1,
            };
            assert_eq!(u64::from(load.per), operations, "{}", load.name);
        }
    }

    #[test]
    fn a_reason_is_a_clause() {
        let of = |text: &str| reason(&anyhow::anyhow!("{text}"));
        let refused =
            "kernel:x does not honour set=/sys/y: it has no /sys/y; leave it out (honoured by host)";
        assert_eq!(of(refused), "has no /sys/y");
        assert_eq!(of("no memory\nhint: buy some"), "no memory");
    }
}
