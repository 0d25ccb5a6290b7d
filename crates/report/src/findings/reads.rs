//! Of reads of memory and of files.

use pagelab_analysis::finding::{Figure, Finding};
use pagelab_analysis::vmtest::{Cause, Knee};

use super::{shown, with_spread};
use crate::comparisons::percent;
use crate::text::{bytes, value};
use pagelab_experiment::experiments::SEQREAD_MODES;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::tables::seqread;
use pagelab_experiment::{ColumnId, MetricId, metrics};

/// What is at a knee, in words.
pub(crate) fn cause(cause: &Cause) -> String {
    match cause {
        Cause::FirstTlb => "first-level TLB reach".into(),
        Cause::SecondTlb => "second-level TLB reach".into(),
        Cause::Pmegs => "reach of the pmegs".into(),
        Cause::Cache(level) => format!("L{level} cache"),
        Cause::Processes => "several processes".into(),
        Cause::Limit => "memory limit".into(),
    }
}

fn knee(knee: &Knee) -> String {
    let explained = match &knee.cause {
        Some((what, at)) => format!("{} of {}", cause(what), bytes(*at)),
        None => "unexplained".to_owned(),
    };
    let (low, high) = knee.interval;
    format!("{} ({} … {}; {explained})", bytes(knee.at), bytes(low), bytes(high))
}

pub(super) fn read_time(finding: &Finding, knees: Option<&[Knee]>) -> String {
    let n = finding.figures.first().map_or(0, |f| f.n);
    let fastest = if n > 1 { format!(", fastest of {n} repetitions") } else { String::new() };
    let mut text = format!(
        "mean read time {} at {} of active virtual memory, {} at {}{fastest}",
        shown(finding, "access.mean.first"),
        shown(finding, "size.first"),
        shown(finding, "access.mean.last"),
        shown(finding, "size.last"),
    );
    let Some(knees) = knees else { return text + "; too few sizes to look for knees (4 needed)" };
    let knees: Vec<String> = knees.iter().map(knee).collect();
    text += &match knees.as_slice() {
        [] => "; no knee found".to_owned(),
        [one] => format!("; knee at {one}"),
        several => format!("; knees at {}", several.join(", ")),
    };
    text
}

pub(super) fn file_reads(finding: &Finding) -> String {
    let mut text = format!(
        "mean CPU time of a read {} (file small in memory), {} (large in memory), {} (larger than \
        memory",
        shown(finding, metrics::READ_CPU_SMALL),
        shown(finding, metrics::READ_CPU_LARGE),
        shown(finding, metrics::READ_CPU_BEYOND),
    );
    if let Some(hits) = finding.figure("hits") {
        text += &format!(", cache hit ratio {:.0}%", hits.value * 100.0);
    }
    text + ")"
}

pub(super) fn sequential_reads(finding: &Finding) -> String {
    let of = |mode: &str| {
        let figure = |column: ColumnId| finding.figure(format!("{}.{mode}", column.name));
        let shown = |figure: &Figure| value(Some(figure.value), figure.unit);
        let (bandwidth, transfer) = (figure(seqread::BANDWIDTH)?, figure(seqread::TRANSFER)?);
        let mut text = format!("{} {mode} with {} transfers", shown(bandwidth), shown(transfer));
        if let Some(seen) = figure(seqread::DEVICE_TRANSFER) {
            text += &format!(" (device transfer {})", shown(seen));
        }
        Some(text)
    };
    let parts: Vec<String> = SEQREAD_MODES.into_iter().filter_map(of).collect();
    format!("best sequential bandwidth {}", parts.join(", "))
}

pub(super) fn first_answer(finding: &Finding) -> String {
    let time = |metric: MetricId| Some(finding.figure(metric)?.value);
    let without = time(metrics::RESTORE_ANSWER);
    let order = |(answer, vain, order): (MetricId, MetricId, &str)| {
        let with = time(answer)?;
        let change = without.map(|without| percent(with / without - 1.0));
        let vain = finding.figure(vain).map(|_| format!("{} in vain", shown(finding, vain)));
        let more: Vec<String> = change.into_iter().chain(vain).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        Some(format!("after {} with {order} prefetched{more}", with_spread(finding, answer)))
    };
    let orders = [
        (metrics::RESTORE_ANSWER_RECORDED, metrics::RESTORE_VAIN_RECORDED, "the recording"),
        (metrics::RESTORE_ANSWER_LRU, metrics::RESTORE_VAIN_LRU, "its most recent half"),
        (metrics::RESTORE_ANSWER_SEQUENTIAL, metrics::RESTORE_VAIN_SEQUENTIAL, "the file from its start"),
    ];
    let first = without
        .map(|_| format!("after {} without prefetching", with_spread(finding, metrics::RESTORE_ANSWER)));
    let parts: Vec<String> = first.into_iter().chain(orders.into_iter().filter_map(order)).collect();
    format!("first answer {}", parts.join("; "))
}

pub(super) fn latencies(finding: &Finding) -> String {
    let of = |(name, what): &(MetricId, &str)| {
        finding.figure(name).map(|_| format!("{what} {}", with_spread(finding, name)))
    };
    let parts: Vec<String> = [
        (metrics::LATENCY_DRAM, "DRAM"),
        (metrics::LATENCY_L1, "L1"),
        (metrics::LATENCY_L2, "L2"),
        (metrics::LATENCY_L3, "L3"),
        (metrics::LATENCY_TLB_MISS, "TLB miss"),
        (metrics::LATENCY_MINOR_FAULT, "minor fault"),
        (metrics::LATENCY_HUGE_FAULT_FRESH, "THP fault"),
        (metrics::LATENCY_HUGE_FAULT, "THP fault, cached page"),
    ]
    .iter()
    .filter_map(of)
    .collect();
    let counted = finding.figures.iter().all(|figure| figure.unit == Unit::Instructions);
    let first = if counted { "caches and memory do not show in instructions" } else { "mean load" };
    format!("{first}: {}", parts.join("; "))
}
