//! Findings on memory itself: its bandwidth, equal pages, tiers.

use pagelab_experiment::Run;
use pagelab_experiment::experiments::tier::SITUATIONS;

use super::figures;
use crate::finding::{Evidence, Finding, What};

/// How many bytes a second memory gives.
pub fn bandwidth(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            "bandwidth.copy",
            "bandwidth.scale",
            "bandwidth.add",
            "bandwidth.triad",
            "bandwidth.triad.threads",
            "bandwidth.triad.cache",
        ],
    );
    let evidence = vec![Evidence::Metrics, Evidence::Table("bandwidth".into())];
    (!list.is_empty()).then(|| Finding::new(run, What::Bandwidth, list, evidence))
}

/// What merging equal pages takes and gives.
pub fn merging(run: &Run) -> Option<Finding> {
    let names = [
        "ksm.sharing",
        "ksm.shared",
        "ksm.time",
        "ksm.processor",
        "ksm.profit",
        "ksm.copy",
        "ksm.write",
        "ksm.unmerge",
    ];
    let list = figures(run, &names);
    let evidence =
        vec![Evidence::Metrics, Evidence::Table("merging".into()), Evidence::Table("unmerging".into())];
    (!list.is_empty()).then(|| Finding::new(run, What::Merging, list, evidence))
}

/// Where a hot set lies on a machine with tiers, and what it costs.
pub fn tiers(run: &Run) -> Option<Finding> {
    // What the experiment is about comes first: the reference with demotion and balancing.
    let mut names = Vec::new();
    for situation in SITUATIONS.into_iter().rev() {
        names.extend(["cost", "hot", "latency"].map(|figure| format!("tier.{figure}.{situation}")));
    }
    names.extend(["tier.promoted", "tier.demoted", "tier.hints"].map(str::to_owned));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let list = figures(run, &names);
    let evidence =
        vec![Evidence::Metrics, Evidence::Table("tiers".into()), Evidence::Table("tier.pages".into())];
    (!list.is_empty()).then(|| Finding::new(run, What::Tiers, list, evidence))
}
