//! The target `host`: the running kernel, with the load in a process of its own.
//!
//! What bounds the load comes from a confinement. There is none yet, so a setting that asks for one
//! is refused, and so is a load that could press the machine itself.

use pagelab_experiment::{Experiment, Recorder, Setting, Target, TargetError};

use crate::environment::memory_available;
use crate::perform::Place;
use crate::region::page_size;
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
        if *setting != Setting::default() {
            return Err(TargetError::Unsupported {
                what: format!("the host cannot be set up as '{setting}'"),
                remedy: "run without settings".into(),
            });
        }
        guard(experiment, memory_available())?;
        let job = Job::new(experiment.clone(), setting.clone(), Place::default());
        worker::run(&job, recorder).map_err(|error| match error {
            RunError::Died(death) => death.error(),
            RunError::Target(error) => error,
        })
    }
}

/// Refuses a load of more than half of the memory available: nothing bounds it.
fn guard(experiment: &Experiment, available: Option<u64>) -> Result<(), TargetError> {
    let (Experiment::Mapanon(paging) | Experiment::Mapfile(paging)) = experiment;
    let wanted = paging.pages.saturating_mul(page_size() as u64);
    let refused = |what| TargetError::Refused { what, remedy: "use fewer pages".into() };
    match available {
        None => Err(refused("the memory available is unknown (no MemAvailable in /proc/meminfo)".into())),
        Some(available) if wanted > available / 2 => Err(refused(format!(
            "a load of {wanted} bytes is more than half of the {available} bytes available, and nothing bounds it"
        ))),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::experiments::Paging;

    #[test]
    fn half_of_the_memory_is_the_most() {
        let experiment = Experiment::Mapanon(Paging { pages: 10, ..Paging::default() });
        let bytes = 10 * page_size() as u64;
        assert!(guard(&experiment, Some(2 * bytes)).is_ok());
        for available in [Some(2 * bytes - 2), None] {
            assert!(matches!(guard(&experiment, available), Err(TargetError::Refused { .. })));
        }
        let most = Experiment::Mapanon(Paging { pages: u64::MAX, ..Paging::default() });
        assert!(guard(&most, Some(u64::MAX - 1)).is_err());
    }
}
