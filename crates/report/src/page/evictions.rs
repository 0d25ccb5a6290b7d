//! The page-age graphs of judged evictions.

use pagelab_analysis::evictions;
use pagelab_analysis::figure::Plot;
use pagelab_analysis::finding::{Finding, What};

/// The plots of the findings on evictions.
pub fn plots(findings: &[Finding]) -> Vec<Plot> {
    let judged: Vec<_> = (findings.iter())
        .filter_map(|finding| match &finding.what {
            What::Evictions { judgement } if judgement.evictions > 0 => Some((&finding.run, judgement)),
            _ => None,
        })
        .collect();
    let of = |run: &str| if judged.len() > 1 { format!(": {run}") } else { String::new() };
    judged.iter().flat_map(|(run, judgement)| evictions::plots(judgement, &of(run))).collect()
}
