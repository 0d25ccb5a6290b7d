//! The target `host`: the running kernel, with the load in a process of its own inside a confinement.

use pagelab_experiment::observation::{Level, Note};
use pagelab_experiment::{Experiment, Observation, Recorder, Setting, Target, TargetError};

use crate::confine::Confinement;
use crate::worker::{self, Job, RunError};

/// The running kernel.
#[derive(Debug, Default)]
pub struct Host;

impl Host {
    /// The host.
    pub fn new() -> Self {
        Self
    }
}

impl Target for Host {
    fn perform(
        &mut self,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<(), TargetError> {
        let confinement = Confinement::set_up(experiment, setting)?;
        let performed = perform(&confinement, experiment, setting, recorder);
        for text in confinement.undo() {
            warn(text, recorder)?;
        }
        performed
    }
}

fn perform(
    confinement: &Confinement,
    experiment: &Experiment,
    setting: &Setting,
    recorder: &mut dyn Recorder,
) -> Result<(), TargetError> {
    for text in confinement.notes() {
        warn(text.clone(), recorder)?;
    }
    let job = Job::new(experiment.clone(), setting.clone(), confinement.place().clone());
    worker::run(&job, recorder).map_err(|error| match error {
        RunError::Died(death) => match confinement.out_of_memory() {
            Some(limit) if death.by_kill() => TargetError::OutOfMemory { limit },
            _ => death.error(),
        },
        RunError::Target(error) => error,
    })
}

fn warn(text: String, recorder: &mut dyn Recorder) -> Result<(), TargetError> {
    Ok(recorder.observe(Observation::Note(Note { level: Level::Warning, text }))?)
}
