//! Findings on memory itself: its bandwidth, equal pages, tiers.

use pagelab_experiment::Run;
use pagelab_experiment::experiments::tier::METRICS;
use pagelab_experiment::{metrics, tables};

use super::figures;
use crate::finding::{Evidence, Finding, What};

/// How many bytes a second memory gives.
pub fn bandwidth(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            metrics::BANDWIDTH_COPY,
            metrics::BANDWIDTH_SCALE,
            metrics::BANDWIDTH_ADD,
            metrics::BANDWIDTH_TRIAD,
            metrics::BANDWIDTH_TRIAD_THREADS,
            metrics::BANDWIDTH_TRIAD_CACHE,
        ],
    );
    let evidence = vec![Evidence::Metrics, Evidence::Table(tables::bandwidth::TABLE)];
    (!list.is_empty()).then(|| Finding::new(run, What::Bandwidth, list, evidence))
}

/// What merging equal pages takes and gives.
pub fn merging(run: &Run) -> Option<Finding> {
    let names = [
        metrics::KSM_SHARING,
        metrics::KSM_SHARED,
        metrics::KSM_TIME,
        metrics::KSM_CPU,
        metrics::KSM_PROFIT,
        metrics::KSM_COPY,
        metrics::KSM_WRITE,
        metrics::KSM_UNMERGE,
    ];
    let list = figures(run, &names);
    let evidence = vec![
        Evidence::Metrics,
        Evidence::Table(tables::merging::TABLE),
        Evidence::Table(tables::unmerging::TABLE),
    ];
    (!list.is_empty()).then(|| Finding::new(run, What::Merging, list, evidence))
}

/// Where a hot set lies on a machine with tiers, and what it costs.
pub fn tiers(run: &Run) -> Option<Finding> {
    // What the experiment is about comes first: the reference with demotion and balancing.
    let mut names = Vec::new();
    for situation in METRICS.into_iter().rev() {
        names.extend(situation);
    }
    names.extend([metrics::TIER_PROMOTED, metrics::TIER_DEMOTED, metrics::TIER_HINT_FAULTS]);
    let list = figures(run, &names);
    let evidence = vec![
        Evidence::Metrics,
        Evidence::Table(tables::tiers::TABLE),
        Evidence::Table(tables::tier_pages::TABLE),
    ];
    (!list.is_empty()).then(|| Finding::new(run, What::Tiers, list, evidence))
}
