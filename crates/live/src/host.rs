//! The target `host`: the running kernel, with the load confined in a process of its own.

use pagelab_experiment::{Experiment, Recorder, Setting, Target, TargetError};

use crate::perform::Place;
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
        let job = Job::new(experiment.clone(), setting.clone(), Place::default());
        worker::run(&job, recorder).map_err(|error| match error {
            RunError::Died(death) => death.error(),
            RunError::Target(error) => error,
        })
    }
}
