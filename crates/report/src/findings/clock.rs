//! Of the clock.

use pagelab_analysis::finding::Finding;

use super::shown;

pub(super) fn clock_agreement(finding: &Finding, trusted: bool) -> String {
    let mut parts = Vec::new();
    if !trusted {
        parts.push("time is suspect".to_owned());
    }
    if finding.figure("clock.step.worst").is_some() {
        parts.push(format!("clocks agree within {}", shown(finding, "clock.step.worst")));
    }
    if let Some(drift) = finding.figure("clock.drift.worst") {
        parts.push(format!("drift {:.1} ppm", drift.value * 1e6));
    }
    if finding.figure("clock.skew.bound").is_some() {
        parts.push(format!("TSC skew under {}", shown(finding, "clock.skew.bound")));
    }
    if finding.figure("clock.steal").is_some() {
        parts.push(format!("steal {}", shown(finding, "clock.steal")));
    }
    parts.join("; ")
}
