//! Of the clock.

use pagelab_analysis::finding::Finding;

use super::shown;
use pagelab_experiment::metrics;

pub(super) fn clock_agreement(finding: &Finding, trusted: bool) -> String {
    let mut parts = Vec::new();
    if !trusted {
        parts.push("time is suspect".to_owned());
    }
    if finding.figure(metrics::CLOCK_STEP_WORST).is_some() {
        parts.push(format!("clocks agree within {}", shown(finding, metrics::CLOCK_STEP_WORST)));
    }
    if let Some(drift) = finding.figure(metrics::CLOCK_DRIFT_WORST) {
        parts.push(format!("drift {:.1} ppm", drift.value * 1e6));
    }
    if finding.figure(metrics::CLOCK_SKEW_BOUND).is_some() {
        parts.push(format!("TSC skew under {}", shown(finding, metrics::CLOCK_SKEW_BOUND)));
    }
    if finding.figure(metrics::CLOCK_STEAL).is_some() {
        parts.push(format!("steal {}", shown(finding, metrics::CLOCK_STEAL)));
    }
    parts.join("; ")
}
