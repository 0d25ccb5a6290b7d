//! What observations say: findings, comparisons, knees, scaling, regret. Everything here is data;
//! `report` puts it into words and pictures.

pub mod ages;
pub mod bisect;
pub mod change_points;
pub mod comparison;
pub mod costs;
pub mod curves;
pub mod evictions;
pub mod figure;
pub mod finding;
pub mod findings;
pub mod fuzz;
pub mod gate;
pub mod history;
pub mod knee;
pub mod ladder;
pub mod least_memory;
mod linear;
pub mod mechanisms;
pub mod portrait;
pub mod probe;
pub mod rank;
pub mod regret;
pub mod rows;
pub mod scaling;
pub mod signed_rank;
pub mod stats;
#[cfg(test)]
mod test_runs;
pub mod vmtest;

use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Experiment, MetricId, Run};

/// Whether a run's figures are the same every time, so that one repetition says all: as its target
/// declared.
pub fn is_deterministic(run: &Run) -> bool {
    run.header.deterministic
}

/// Whether a run's times are instructions: its machine counted them.
pub fn counts_instructions(run: &Run) -> bool {
    run.done().flat_map(|r| &r.observations.metrics).any(|metric| metric.unit == Unit::Instructions)
}

/// The metric that says most of an experiment: the one that `compare --fail-on` judges.
pub fn primary_metric(experiment: &Experiment) -> Option<MetricId> {
    experiment.declaration().primary()
}

/// Which metrics decide a comparison of runs of this experiment that measured `measured` on both
/// sides, the primary one first, and the primary one where it was not measured: then the first
/// other that was decides.
pub fn deciding_metrics(
    experiment: &Experiment,
    measured: impl Fn(MetricId) -> bool,
) -> (Vec<MetricId>, Option<MetricId>) {
    let declared = experiment.declaration();
    let Some(primary) = declared.primary() else { return (Vec::new(), None) };
    let also = declared.also_decide().iter().copied().filter(|metric| measured(*metric));
    if measured(primary) {
        return (std::iter::once(primary).chain(also).collect(), None);
    }
    let headline = declared.headline().iter().copied().filter(|metric| measured(*metric));
    (vec![also.chain(headline).next().unwrap_or(primary)], Some(primary))
}

/// The few metrics beside the primary one that a comparison is most likely made for.
pub fn headline_metrics(experiment: &Experiment) -> &'static [MetricId] {
    experiment.declaration().headline()
}

/// The runs by experiment, in the order first seen.
pub fn groups<'a>(runs: &[&'a Run]) -> Vec<Vec<&'a Run>> {
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| group[0].header.experiment == run.header.experiment) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}
