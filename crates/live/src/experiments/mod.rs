//! Performs an experiment in the calling process: on the host that is the worker, in a guest init.

use pagelab_experiment::experiments::Backing;
use pagelab_experiment::{Experiment, Failure, Recorder, Setting};

use crate::place::Place;
use crate::{
    addressing, bandwidth, clocktest, command, faultscale, fileread, forkstorm, fragment, ksm, latency,
    neighbour, oom, paging, reclaim, tier, vmtest,
};

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
        Experiment::Latency(parameters) => latency::perform(parameters, place, recorder),
        Experiment::Unmap(parameters) => addressing::perform(parameters, addressing::UNMAP, place, recorder),
        Experiment::Mremap(parameters) => {
            addressing::perform(parameters, addressing::MREMAP, place, recorder)
        }
        Experiment::Populate(parameters) => {
            addressing::perform(parameters, addressing::POPULATE, place, recorder)
        }
        Experiment::Neighbour(parameters) => neighbour::perform(parameters, place, recorder),
        Experiment::Bandwidth(parameters) => bandwidth::perform(parameters, place, recorder),
        Experiment::Ksm(parameters) => ksm::perform(parameters, place, recorder),
        Experiment::Tier(parameters) => tier::perform(parameters, place, recorder),
        Experiment::Oom(parameters) => oom::perform(parameters, place, recorder),
        Experiment::Reclaim(parameters) => reclaim::perform(parameters, place, recorder),
        Experiment::Fragment(parameters) => fragment::perform(parameters, place, recorder),
        Experiment::Clock(parameters) => clocktest::perform(parameters, place, recorder),
        Experiment::Command(parameters) => command::perform(parameters, place, recorder),
        Experiment::Forkstorm(parameters) => forkstorm::perform(parameters, setting, place, recorder),
        Experiment::Faultscale(parameters) => faultscale::perform(parameters, place, recorder),
        Experiment::Fileread(parameters) => fileread::random::perform(parameters, place, recorder),
        Experiment::Seqread(parameters) => fileread::sequential::perform(parameters, place, recorder),
        Experiment::Record(_)
        | Experiment::Trace(_)
        | Experiment::Replay(_)
        | Experiment::Mrc(_)
        | Experiment::Wss(_) => Err(Failure::unsupported(
            "this has no load to perform",
            "use pagelab record, trace, replay, mrc or wss",
        )),
    }
}
