//! The costs of a modelled machine, taken from a measured run.

use pagelab_experiment::{Run, metrics};
use pagelab_model::paging::Costs;

use crate::stats::median;

/// What `run` measured, as options of a model in ns: the medians of a hit, a minor and a major fault.
/// `None` when the run timed no references, so that nothing is known about its machine.
pub fn measured(run: &Run) -> Option<Vec<(&'static str, u64)>> {
    let time = |metric| median(&run.values(metric));
    let hit = Some(time(metrics::ACCESS_HIT_P50)?);
    let (minor, major) = (time(metrics::ACCESS_MINOR_P50), time(metrics::ACCESS_MAJOR_P50));
    let known = |name: &str| match name {
        "hit" => true,
        "minor" => minor.is_some(),
        "seek" => major.is_some(),
        _ => false,
    };
    let costs = Costs::TODAY.measured(hit, minor, major);
    Some(costs.named().into_iter().filter(|(name, _)| known(name)).collect())
}
