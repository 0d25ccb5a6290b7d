//! The names under which things are observed, so that targets, analysis and report agree.

use crate::experiments::declared_metrics;
use crate::experiments::{
    addressing, bandwidth, clock, command, curve, faultscale, fileread, fragment, ksm, latency, need,
    neighbour, oom, paging, reclaim, restore, tier, tracing, vmtest,
};
use crate::metrics::{MetricId, SHARED, current};
use crate::tables::TableId;

/// Every metric.
pub fn metrics() -> impl Iterator<Item = MetricId> {
    let (first, last) = SHARED;
    [first].into_iter().chain(declared_metrics::ALL.iter().copied()).chain(last).flatten().copied()
}

impl MetricId {
    /// The metric of this present or former name, for names that come from users or files.
    pub fn find(name: &str) -> Option<Self> {
        let name = current(name);
        metrics().find(|metric| metric.name == name)
    }
}

/// Every table.
pub fn tables() -> impl Iterator<Item = TableId> {
    [
        crate::tables::harness::tables::ALL,
        paging::tables::ALL,
        vmtest::tables::ALL,
        clock::tables::ALL,
        command::tables::ALL,
        faultscale::tables::ALL,
        fileread::tables::ALL,
        latency::tables::ALL,
        addressing::tables::ALL,
        neighbour::tables::ALL,
        bandwidth::tables::ALL,
        ksm::tables::ALL,
        tier::tables::ALL,
        oom::tables::ALL,
        reclaim::tables::ALL,
        fragment::tables::ALL,
        curve::tables::ALL,
        need::tables::ALL,
        restore::tables::ALL,
        tracing::tables::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}
