//! How each experiment is run on the running kernel.

pub mod addressing;
pub mod bandwidth;
pub mod clock;
pub mod command;
pub mod faultscale;
pub mod fileread;
pub mod forkstorm;
pub mod fragment;
pub mod ksm;
pub mod latency;
pub mod neighbour;
pub mod oom;
pub mod paging;
pub mod reclaim;
pub mod restore;
pub mod tier;
pub mod vmtest;

use std::path::Path;

use pagelab_experiment::experiments::Backing;
use pagelab_experiment::{Experiment, Failure, Recorder, Result, Setting};

use crate::harness::context::ExecutionContext;

/// The kernel settings that `experiment` itself writes while it is performed, those that this
/// kernel has.
pub fn changed_by(experiment: &Experiment) -> Vec<&'static Path> {
    let files = experiment.declaration().kernel_settings();
    files.iter().map(Path::new).filter(|path| path.exists()).collect()
}

/// Performs `experiment` once and gives everything it sees to `recorder`.
///
/// Of `setting` only the huge page mode (see [`paging`]) and what is to be counted and sampled are
/// looked at: the rest is set up by the maker of the `context`.
///
/// # Errors
/// See [`Failure`].
pub fn perform(
    experiment: &Experiment,
    setting: &Setting,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    match experiment {
        Experiment::Mapanon(paging) => paging::perform(paging, paging.backing, setting, context, recorder),
        Experiment::Mapfile(paging) => paging::perform(paging, Backing::File, setting, context, recorder),
        Experiment::Vmtest(parameters) => vmtest::perform(parameters, context, recorder),
        Experiment::Latency(parameters) => latency::perform(parameters, context, recorder),
        Experiment::Unmap(parameters) => {
            addressing::perform(parameters, addressing::UNMAP, context, recorder)
        }
        Experiment::Mremap(parameters) => {
            addressing::perform(parameters, addressing::MREMAP, context, recorder)
        }
        Experiment::Populate(parameters) => {
            addressing::perform(parameters, addressing::POPULATE, context, recorder)
        }
        Experiment::Neighbour(parameters) => neighbour::perform(parameters, setting, context, recorder),
        Experiment::Bandwidth(parameters) => bandwidth::perform(parameters, context, recorder),
        Experiment::Ksm(parameters) => ksm::perform(parameters, context, recorder),
        Experiment::Tier(parameters) => tier::perform(parameters, setting, context, recorder),
        Experiment::Oom(parameters) => oom::perform(parameters, setting, context, recorder),
        Experiment::Reclaim(parameters) => reclaim::perform(parameters, setting, context, recorder),
        Experiment::Fragment(parameters) => fragment::perform(parameters, setting, context, recorder),
        Experiment::Clock(parameters) => clock::perform(parameters, context, recorder),
        Experiment::Command(parameters) => command::perform(parameters, context, recorder),
        Experiment::Forkstorm(parameters) => forkstorm::perform(parameters, setting, context, recorder),
        Experiment::Faultscale(parameters) => faultscale::perform(parameters, context, recorder),
        Experiment::Fileread(parameters) => fileread::random::perform(parameters, context, recorder),
        Experiment::Seqread(parameters) => fileread::sequential::perform(parameters, context, recorder),
        Experiment::Restore(parameters) => restore::perform(parameters, context, recorder),
        Experiment::Record(_)
        | Experiment::Trace(_)
        | Experiment::Replay(_)
        | Experiment::Mrc(_)
        | Experiment::Wss(_)
        | Experiment::Need(_) => Err(Failure::unsupported(
            "this has no load to run",
            "use pagelab record, trace, replay, mrc, wss or need",
        )),
    }
}
