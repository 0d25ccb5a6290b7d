//! The page maps that a guest sends, completed with what its stream says, which is made here.

use pagelab_experiment::experiments::Load;
use pagelab_experiment::{Experiment, Observation, Result};
use pagelab_live::experiments::paging::counted::Counted;

/// Completes the page maps of one experiment, if it has any.
pub struct PageMaps(Option<Counted>);

impl PageMaps {
    /// Those of `experiment`.
    ///
    /// # Errors
    /// When its stream cannot be made.
    pub fn of(experiment: &Experiment) -> Result<Self> {
        match experiment.declaration().load() {
            Load::References(paging, _) => Counted::new(paging).map(Some).map(Self),
            _ => Ok(Self(None)),
        }
    }

    /// Completes `observation`, if it is one.
    ///
    /// # Errors
    /// When the stream cannot be made.
    pub fn complete(&mut self, mut observation: Observation) -> Result<Observation> {
        if let (Observation::Pages(map), Some(counted)) = (&mut observation, &mut self.0) {
            counted.complete(map)?;
        }
        Ok(observation)
    }
}
