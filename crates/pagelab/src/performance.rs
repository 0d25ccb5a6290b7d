//! Performs plans: interleaves their repetitions, writes each observation to the notebook as it
//! comes, shows progress, and ends in order on an interrupt.

use std::path::Path;

use anyhow::{Context as _, Result};
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{
    Experiment, Failure, FailureKind, Observation, Outcome, Recorder, RecorderError, Run, RunHeader, Setting,
    Target, TargetSpec,
};
use pagelab_guest::Guest;
use pagelab_live::Host;
use pagelab_model::target::Model;
use pagelab_notebook::{Notebook, RepetitionId, RunId};

use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::recording::Background;

/// One run to be made.
pub struct Plan {
    name: Option<String>,
    experiment: Experiment,
    target: TargetSpec,
    setting: Setting,
    performer: Box<dyn Target>,
    clock: Option<String>,
}

impl Plan {
    /// Notes with every repetition what the machine's clock was found to be (`clock.verdict`).
    pub fn mark(&mut self, clock: &str) {
        self.clock = Some(clock.to_owned());
    }

    /// A run of `experiment` on `target`, whose own options come before those of `setting`.
    ///
    /// # Errors
    /// When an option is unknown or its value impossible.
    pub fn new(
        name: Option<String>,
        experiment: Experiment,
        target: &TargetSpec,
        setting: &Setting,
    ) -> Result<Self> {
        let (setting, own) = target.setting(setting).map_err(|e| usage(format!("--on {target}: {e}")))?;
        let wrong = |problem: String| usage(format!("--on {target}: {problem} (see: pagelab targets)"));
        let performer: Box<dyn Target> = match (&target.kind, own.first()) {
            (TargetKind::Host, None) => Box::new(Host::new()),
            (TargetKind::Host, Some((key, _))) => {
                return Err(wrong(format!("the host has no option '{key}'")));
            }
            (TargetKind::Model(name), _) => {
                Box::new(Model::new(name, &own).map_err(|e| wrong(e.to_string()))?)
            }
            (TargetKind::Kernel(path), _) => Box::new(Guest::new(Path::new(path), &own).map_err(wrong)?),
        };
        Ok(Self { name, experiment, target: target.clone(), setting, performer, clock: None })
    }
}

/// What was performed.
pub struct Performed {
    /// The runs as the notebook has them, in the order of the plans; without those that were never begun.
    pub runs: Vec<Run>,
    /// Why it ended early, if it did.
    pub failure: Option<anyhow::Error>,
}

/// Performs every plan `repeat` times, forwards and backwards in turn (A B B A …), so that a drift
/// of the machine touches all alike.
///
/// # Errors
/// When the notebook cannot be written. A repetition that fails is kept with its reason, ends its run,
/// and the first one is given back as `failure`.
pub fn perform(plans: &mut [Plan], repeat: u32, context: &Context) -> Result<Performed> {
    let interrupt = Interrupt::listen().context("the signal handlers cannot be installed")?;
    let mut notebook = Notebook::open(&context.notebook)?;
    let mut ids = Vec::new();
    let batch = jiff::Timestamp::now().to_string();
    for plan in plans.iter() {
        ids.push(notebook.begin_run(&RunHeader {
            name: plan.name.clone().unwrap_or_default(),
            batch: batch.clone(),
            experiment: plan.experiment.clone(),
            target: plan.target.clone(),
            setting: plan.setting.clone(),
            started: jiff::Timestamp::now().to_string(),
            pagelab: env!("CARGO_PKG_VERSION").to_owned(),
        })?);
    }
    let mut progress = Progress::new(u64::from(repeat) * plans.len() as u64, context.quiet);
    let mut failure = None;
    // A run that cannot be performed is given up; the others go on.
    let mut given_up = vec![false; plans.len()];
    'all: for number in 1..=repeat {
        let mut order: Vec<usize> = (0..plans.len()).collect();
        if number % 2 == 0 {
            order.reverse();
        }
        for index in order {
            if given_up[index] {
                progress.finish_one();
                continue;
            }
            progress.begin(&format!("{} on {}", plans[index].experiment.name(), plans[index].target));
            let result =
                repetition(&mut notebook, ids[index], number, &mut plans[index], &progress, &interrupt);
            progress.finish_one();
            if let Err(error) = result {
                let others = error.downcast_ref::<Failure>().is_some_and(|error| {
                    !matches!(error.kind, FailureKind::Interrupted | FailureKind::Recorder)
                });
                failure = failure.or(Some(error));
                if !others {
                    break 'all;
                }
                given_up[index] = true;
            }
        }
    }
    progress.clear();
    let mut runs = Vec::new();
    for id in ids {
        // What an interrupt kept from being performed at all leaves nothing.
        if !notebook.forget_empty(id)? {
            runs.push(notebook.load(id)?);
        }
    }
    Ok(Performed { runs, failure })
}

fn repetition(
    notebook: &mut Notebook,
    run: RunId,
    number: u32,
    plan: &mut Plan,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<()> {
    let id = notebook.begin_repetition(run, number, &jiff::Timestamp::now().to_string())?;
    let background = match plan.target.kind {
        TargetKind::Host => Background::start(),
        _ => None,
    };
    let mut recorder = NotebookRecorder { notebook, id, progress, interrupt };
    if let Some(clock) = &plan.clock {
        let marked = [("clock.verdict".to_owned(), clock.clone())].into();
        recorder.observe(Observation::Environment(marked)).map_err(Failure::from)?;
    }
    let result = plan.performer.perform(&plan.experiment, &plan.setting, &mut recorder);
    if let (Some(table), Ok(())) = (background.and_then(Background::finish), &result) {
        notebook.record(id, &Observation::Table(table))?;
    }
    let outcome = match &result {
        Ok(()) => Outcome::Done,
        Err(failure) if failure.is_interrupted() => Outcome::Interrupted,
        Err(failure) => Outcome::Failed(failure.clone()),
    };
    let finished = notebook.finish_repetition(id, &outcome);
    match result {
        Err(failure) if failure.is_interrupted() => return Err(CommandError::Interrupted.into()),
        Err(error) => {
            return Err(error).with_context(|| format!("{} on {}", plan.experiment.name(), plan.target));
        }
        Ok(()) => {}
    }
    finished?;
    Ok(())
}

/// Writes observations to the notebook and shows progress.
struct NotebookRecorder<'a> {
    notebook: &'a mut Notebook,
    id: RepetitionId,
    progress: &'a Progress,
    interrupt: &'a Interrupt,
}

impl Recorder for NotebookRecorder<'_> {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        self.notebook.record(self.id, &observation).map_err(RecorderError::new)
    }

    fn progress(&mut self, _phase: &str, done: u64, total: u64) {
        self.progress.advance(done, total);
    }

    fn interrupted(&self) -> bool {
        self.interrupt.requested()
    }
}
