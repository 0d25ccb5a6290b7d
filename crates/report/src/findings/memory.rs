//! Of memory itself: its bandwidth, equal pages, tiers, neighbours.

use pagelab_analysis::finding::Finding;

use super::{shown, with_spread};
use pagelab_experiment::experiments::{neighbour, tier};
use pagelab_experiment::{MetricId, metrics};

pub(super) fn neighbour(finding: &Finding) -> String {
    let situation = |[cost, faults, _]: [MetricId; 3]| {
        format!(
            "{} major faults and {} of CPU time per reference",
            with_spread(finding, faults),
            with_spread(finding, cost)
        )
    };
    let [alone, beside, low, min] = neighbour::METRICS.map(situation);
    format!(
        "with a neighbour the victim had {beside} (alone {alone}); with {} protected by memory.low {low}; \
        by memory.min {min}",
        shown(finding, metrics::VICTIM_PROTECTED),
    )
}

pub(super) fn bandwidth(finding: &Finding) -> String {
    let measured = |list: &[(MetricId, &str)]| {
        let measured = list.iter().filter(|(name, _)| finding.figure(name).is_some());
        let parts: Vec<String> =
            measured.map(|(name, what)| format!("{what} {}", with_spread(finding, name))).collect();
        parts.join("; ")
    };
    let from_memory = measured(&[
        (metrics::BANDWIDTH_COPY, "copy"),
        (metrics::BANDWIDTH_SCALE, "scale"),
        (metrics::BANDWIDTH_ADD, "add"),
        (metrics::BANDWIDTH_TRIAD, "triad"),
        (metrics::BANDWIDTH_TRIAD_THREADS, "triad with the most threads"),
        (metrics::BANDWIDTH_TRIAD_CACHE, "triad of the smallest working set"),
    ]);
    format!("median bandwidth, largest working set: {from_memory}")
}

pub(super) fn merging(finding: &Finding) -> String {
    format!(
        "merging saved {} pages ({} serve the others) for {} of ksmd's CPU time; a write to a merged page \
        costs {}, to another {}; unmerging {} per page",
        with_spread(finding, metrics::KSM_SHARING),
        shown(finding, metrics::KSM_SHARED),
        with_spread(finding, metrics::KSM_CPU),
        with_spread(finding, metrics::KSM_COPY),
        shown(finding, metrics::KSM_WRITE),
        with_spread(finding, metrics::KSM_UNMERGE),
    )
}

pub(super) fn tiers(finding: &Finding) -> String {
    let [.., off, on] = tier::METRICS.map(|[cost, hot, _]| {
        format!(
            "{} per reference with {} of the hot set on the fast node",
            with_spread(finding, cost),
            with_spread(finding, hot)
        )
    });
    let mut text = format!("left to the kernel {off}");
    if finding.figure(metrics::TIER_COST_ON).is_some() {
        // Where the kernel has both nodes in one tier there is nothing to demote or promote.
        let how = match finding.figure(metrics::TIER_PROMOTED) {
            Some(_) => "demotion and balancing",
            None => "balancing alone",
        };
        text += &format!("; with {how} {on}");
    }
    if finding.figure(metrics::TIER_PROMOTED).is_some() {
        let (promoted, demoted) =
            (shown(finding, metrics::TIER_PROMOTED), shown(finding, metrics::TIER_DEMOTED));
        text += &format!(" ({promoted} promoted, {demoted} demoted)");
    }
    if finding.figure(metrics::TIER_LATENCY_ON).is_some() {
        let (off, on) = (shown(finding, metrics::TIER_LATENCY_OFF), shown(finding, metrics::TIER_LATENCY_ON));
        text += &format!("; modelled wait {off} → {on}");
    }
    text
}
