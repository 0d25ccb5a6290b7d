//! Of forks, and of workers at once.

use pagelab_analysis::finding::Finding;

use super::{shown, spread, with_spread};
use pagelab_experiment::{MetricId, metrics};

pub(super) fn fork_rate(finding: &Finding, copies: u32, exec: bool, top_function: Option<&str>) -> String {
    let mut parts =
        vec![format!("fork rate {} by {copies} processes", with_spread(finding, metrics::FORKS_RATE))];
    let end = if exec { "exec, start and exit" } else { "child's writes and exit" };
    for (name, what) in [(metrics::FORK_COST, "fork"), (metrics::EXEC_COST, end), (metrics::EXIT_COST, end)] {
        if finding.figure(name).is_some() {
            parts.push(format!("{what} mean {}", shown(finding, name)));
        }
    }
    if finding.figure("each.faults").is_some() && finding.figure("each.pages").is_some() {
        let (faults, pages) = (shown(finding, "each.faults"), shown(finding, "each.pages"));
        parts.push(format!("{faults} faults and {pages} page allocations per fork"));
    }
    if let (Some(name), Some(share)) = (top_function, finding.figure("top-function")) {
        parts.push(format!("top kernel function: {name} ({:.0}%)", share.value * 100.0));
    }
    parts.join("; ")
}

pub(super) fn scaling(finding: &Finding, work: &str, workers: &str, lock: Option<&str>) -> String {
    let what = match work {
        "anon" | "refill" => "anonymous faults",
        "file" => "shared file pages mapped",
        "map" => "mappings",
        "fork" => "forks",
        "build" => "builds",
        other => other,
    };
    let at = |throughput: MetricId, workers: &str| {
        let number = finding.figure(workers)?.value;
        Some(format!("{} with {number}", shown(finding, throughput)))
    };
    let number = finding.figure("workers.best").map_or(f64::NAN, |f| f.value);
    let best = with_spread(finding, metrics::THROUGHPUT_BEST);
    let mut parts = Vec::new();
    if finding.figure(metrics::BESIDE_THROUGHPUT).is_some() {
        let number = finding.figure("workers.last").map_or(f64::NAN, |f| f.value);
        parts.push(format!(
            "with another thread's {} calls {} of {what} by {number} {workers} ({} alone), {} waits per \
            million, p99 {} ({} \
             alone)",
            shown(finding, metrics::BESIDE_CALLS),
            with_spread(finding, metrics::BESIDE_THROUGHPUT),
            shown(finding, metrics::THROUGHPUT_LAST),
            with_spread(finding, metrics::BESIDE_WAITS),
            with_spread(finding, metrics::BESIDE_P99),
            shown(finding, metrics::OPERATION_P99),
        ));
    }
    parts.push(format!("best median throughput {best} of {what} with {number} {workers}"));
    parts.extend(
        [at(metrics::THROUGHPUT_FIRST, "workers.first"), at(metrics::THROUGHPUT_LAST, "workers.last")]
            .into_iter()
            .flatten(),
    );
    if let Some(contention) = finding.figure("contention") {
        let spread = spread(contention).unwrap_or_default();
        let fitted = shown(finding, "contention");
        parts.push(format!("universal scalability law: contention {fitted} ({spread})"));
        parts.push(match finding.figure("workers.predicted") {
            None => "no best number predicted".to_owned(),
            Some(_) => format!("predicted best number {}", with_spread(finding, "workers.predicted")),
        });
    }
    if finding.figure(metrics::STATE_LOCK).is_some() {
        let mut text = format!("lock wait {} of the workers' time", shown(finding, metrics::STATE_LOCK));
        if let Some(lock) = lock {
            text += &format!(", longest for {lock}");
        }
        parts.push(text);
    }
    parts.join("; ")
}
