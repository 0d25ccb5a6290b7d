//! Of forks, and of workers at once.

use pagelab_analysis::finding::Finding;

use super::{shown, spread, with_spread};

pub(super) fn fork_rate(finding: &Finding, copies: u32, exec: bool, top_function: Option<&str>) -> String {
    let mut parts = vec![format!("fork rate {} by {copies} processes", with_spread(finding, "forks.rate"))];
    let end = if exec { "exec, start and exit" } else { "child's writes and exit" };
    for (name, what) in [("fork.cost", "fork"), ("exec.cost", end), ("exit.cost", end)] {
        if finding.figure(name).is_some() {
            parts.push(format!("{what} mean {}", shown(finding, name)));
        }
    }
    if finding.figure("each.faults").is_some() && finding.figure("each.pages").is_some() {
        let (faults, pages) = (shown(finding, "each.faults"), shown(finding, "each.pages"));
        parts.push(format!("{faults} faults and {pages} page allocations a fork"));
    }
    if let (Some(name), Some(share)) = (top_function, finding.figure("top-function")) {
        parts.push(format!("top kernel function: {name} ({:.0} %)", share.value * 100.0));
    }
    parts.join("; ")
}

pub(super) fn scaling(finding: &Finding, work: &str, workers: &str, lock: Option<&str>) -> String {
    let what = match work {
        "anon" | "refill" => "anonymous faults",
        "file" => "shared file pages mapped",
        "map" => "mappings",
        "fork" => "forks",
        "build" => "compilations",
        other => other,
    };
    let at = |place: &str| {
        let number = finding.figure(&format!("workers.{place}"))?.value;
        Some(format!("{} with {number}", shown(finding, &format!("throughput.{place}"))))
    };
    let number = finding.figure("workers.best").map_or(f64::NAN, |f| f.value);
    let best = with_spread(finding, "throughput.best");
    let mut parts = Vec::new();
    if finding.figure("beside.throughput").is_some() {
        let number = finding.figure("workers.last").map_or(f64::NAN, |f| f.value);
        parts.push(format!(
            "beside another thread's {} calls {} of {what} with {number} {workers} ({} alone), {} waits in a million, p99 {} ({} \
             alone)",
            shown(finding, "beside.calls"),
            with_spread(finding, "beside.throughput"),
            shown(finding, "throughput.last"),
            with_spread(finding, "beside.waits"),
            with_spread(finding, "beside.p99"),
            shown(finding, "operation.p99"),
        ));
    }
    parts.push(format!("best throughput {best} of {what} with {number} {workers}"));
    parts.extend([at("first"), at("last")].into_iter().flatten());
    if let Some(contention) = finding.figure("contention") {
        let spread = spread(contention).unwrap_or_default();
        let fitted = shown(finding, "contention");
        parts.push(format!("universal scalability law: contention {fitted} ({spread})"));
        parts.push(match finding.figure("workers.predicted") {
            None => "no best number predicted".to_owned(),
            Some(_) => format!("predicted best number {}", with_spread(finding, "workers.predicted")),
        });
    }
    if finding.figure("state.lock").is_some() {
        let mut text = format!("lock wait {} of the workers' time", shown(finding, "state.lock"));
        if let Some(lock) = lock {
            text += &format!(", longest for {lock}");
        }
        parts.push(text);
    }
    parts.join("; ")
}
