//! The costs of a modelled machine, taken from a measured run.

use anyhow::{Result, bail};
use pagelab_analysis::stats::median;
use pagelab_experiment::Run;
use pagelab_model::paging::Costs;

/// What `run` measured, as options of a model in ns: the medians of a hit, a minor and a major fault.
///
/// # Errors
/// When the run measured no hit, so that nothing is known about its machine.
pub fn measured(run: &Run) -> Result<Vec<(&'static str, u64)>> {
    let time = |kind: &str| median(&run.values(&format!("access.{kind}.p50")));
    let hit = time("hit");
    if hit.is_none() {
        bail!(
            "--costs {}: that run timed no references; name a run of mapanon or mapfile on the host",
            run.header.name
        );
    }
    let (minor, major) = (time("minor"), time("major"));
    let known = |name: &str| match name {
        "hit" => true,
        "minor" => minor.is_some(),
        "seek" => major.is_some(),
        _ => false,
    };
    let costs = Costs::TODAY.measured(hit, minor, major);
    Ok(costs.named().into_iter().filter(|(name, _)| known(name)).collect())
}
