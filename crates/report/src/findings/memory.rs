//! Of memory itself: its bandwidth, equal pages, tiers, neighbours.

use pagelab_analysis::finding::Finding;

use super::{shown, with_spread};

pub(super) fn neighbour(finding: &Finding) -> String {
    let situation = |name: &str| {
        format!(
            "{} major faults and {} of processor time a reference",
            with_spread(finding, &format!("victim.faults.{name}")),
            with_spread(finding, &format!("victim.cost.{name}"))
        )
    };
    format!(
        "beside a neighbour the victim had {} (alone {}); with {} protected by memory.low {}; by memory.min {}",
        situation("beside"),
        situation("alone"),
        shown(finding, "victim.protected"),
        situation("low"),
        situation("min"),
    )
}

pub(super) fn bandwidth(finding: &Finding) -> String {
    let measured = |list: &[(&str, &str)]| {
        let measured = list.iter().filter(|(name, _)| finding.figure(name).is_some());
        let parts: Vec<String> =
            measured.map(|(name, what)| format!("{what} {}", with_spread(finding, name))).collect();
        parts.join("; ")
    };
    let from_memory = measured(&[
        ("bandwidth.copy", "copy"),
        ("bandwidth.scale", "scale"),
        ("bandwidth.add", "add"),
        ("bandwidth.triad", "triad"),
        ("bandwidth.triad.threads", "triad with the most threads"),
        ("bandwidth.triad.cache", "triad of the smallest working set"),
    ]);
    format!("median bandwidth, greatest working set: {from_memory}")
}

pub(super) fn merging(finding: &Finding) -> String {
    format!(
        "merging saved {} pages ({} serve the others) for {} of ksmd's processor time; a write to a merged page costs {}, to another {}; unmerging {} a page",
        with_spread(finding, "ksm.sharing"),
        shown(finding, "ksm.shared"),
        with_spread(finding, "ksm.processor"),
        with_spread(finding, "ksm.copy"),
        shown(finding, "ksm.write"),
        with_spread(finding, "ksm.unmerge"),
    )
}

pub(super) fn tiers(finding: &Finding) -> String {
    let situation = |name: &str| {
        format!(
            "{} a reference with {} of the hot set on the fast node",
            with_spread(finding, &format!("tier.cost.{name}")),
            with_spread(finding, &format!("tier.hot.{name}"))
        )
    };
    let mut text = format!("left to the kernel {}", situation("off"));
    if finding.figure("tier.cost.on").is_some() {
        // Where the kernel has both nodes in one tier there is nothing to demote or promote.
        let how = match finding.figure("tier.promoted") {
            Some(_) => "demotion and balancing",
            None => "balancing alone",
        };
        text += &format!("; with {how} {}", situation("on"));
    }
    if finding.figure("tier.promoted").is_some() {
        let (promoted, demoted) = (shown(finding, "tier.promoted"), shown(finding, "tier.demoted"));
        text += &format!(" ({promoted} promoted, {demoted} demoted)");
    }
    if finding.figure("tier.latency.on").is_some() {
        let (off, on) = (shown(finding, "tier.latency.off"), shown(finding, "tier.latency.on"));
        text += &format!("; modelled wait {off} → {on}");
    }
    text
}
