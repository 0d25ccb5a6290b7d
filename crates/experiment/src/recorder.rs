//! Records the observations of a run.

use crate::failure::{Failure, RecorderError};
use crate::observation::{Observation, Observations};

/// Takes what a target sees.
pub trait Recorder {
    /// Keeps one observation.
    ///
    /// # Errors
    /// When it cannot be kept (a full disk); the target then ends the performance.
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError>;

    /// Says how far the performance is: `done` of `total` steps of the current phase.
    fn progress(&mut self, phase: &str, done: u64, total: u64);

    /// Whether the user wants to end. Targets ask at least ten times a second.
    fn interrupted(&self) -> bool;

    /// Ends where the user wants to.
    ///
    /// # Errors
    /// That the user does.
    fn check(&self) -> Result<(), Failure> {
        if self.interrupted() { Err(Failure::interrupted()) } else { Ok(()) }
    }
}

/// In memory, and with nobody who looks or ends it.
impl Recorder for Observations {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        self.add(observation);
        Ok(())
    }

    fn progress(&mut self, _: &str, _: u64, _: u64) {}

    fn interrupted(&self) -> bool {
        false
    }
}
