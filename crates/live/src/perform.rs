//! Performs an experiment in the calling process: on the host that is the worker, in a guest init.

use std::path::PathBuf;

use pagelab_experiment::build::note;
use pagelab_experiment::experiments::Backing;
use pagelab_experiment::{Experiment, Failure, Recorder, Setting};
use serde::{Deserialize, Serialize};

use crate::confine::cgroup;
use crate::environment::Entries;
use crate::{clocktest, command, faultscale, fileread, forkstorm, paging, vmtest};

/// Where in the system an experiment is performed. Everything absent: the whole machine, as in a
/// guest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Place {
    /// The file that `mapfile` writes and maps.
    pub scratch: Option<PathBuf>,
    /// The cgroup that bounds the load; joined with [`Place::join`] before the load begins.
    pub cgroup: Option<PathBuf>,
    /// The cgroup's `memory.stat`.
    pub memory_stat: Option<PathBuf>,
    /// The cgroup's `memory.pressure` (version 2 only).
    pub memory_pressure: Option<PathBuf>,
    /// What whoever made the place knows about it: environment entries that go before the
    /// machine's own, such as `memory.limit` and `swap.kind`.
    pub environment: Entries,
}

impl Place {
    /// Moves the calling process into the place's cgroup: what it allocates from now on is bounded,
    /// what it has already is not.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn join(&self) -> Result<(), Failure> {
        let Some(cgroup) = &self.cgroup else { return Ok(()) };
        cgroup::join(cgroup)
            .map_err(|e| Failure::system(format!("joining the cgroup {}", cgroup.display()), &e))
    }
}

/// Performs `experiment` once and gives everything it sees to `recorder`.
///
/// Of `setting` only the huge page mode (see [`paging`]) and what is to be counted and sampled are looked
/// at: the rest is set up by whoever made the `place`.
///
/// # Errors
/// See [`Failure`].
pub fn perform(
    experiment: &Experiment,
    setting: &Setting,
    place: &Place,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    match experiment {
        Experiment::Mapanon(paging) => paging::perform(paging, Backing::Anonymous, setting, place, recorder),
        Experiment::Mapfile(paging) => paging::perform(paging, Backing::File, setting, place, recorder),
        Experiment::Vmtest(parameters) => vmtest::perform(parameters, place, recorder),
        Experiment::Clock(parameters) => clocktest::perform(parameters, place, recorder),
        Experiment::Command(parameters) => command::perform(parameters, place, recorder),
        Experiment::Forkstorm(parameters) => forkstorm::perform(parameters, setting, place, recorder),
        Experiment::Faultscale(parameters) => faultscale::perform(parameters, place, recorder),
        Experiment::Fileread(parameters) => fileread::random::perform(parameters, place, recorder),
        Experiment::Seqread(parameters) => fileread::sequential::perform(parameters, place, recorder),
        Experiment::Record(_) => {
            Err(Failure::unsupported("a recording has no load to perform", "use 'pagelab record'"))
        }
    }
}
