//! Of recordings, curves and working sets.

use pagelab_analysis::finding::Finding;

use super::shown;
use crate::text::bytes;
use pagelab_experiment::{MetricId, metrics};

pub(super) fn recording(finding: &Finding) -> String {
    format!(
        "{} counters, {} samples over {}",
        shown(finding, "counters"),
        shown(finding, "samples"),
        shown(finding, metrics::TIME_ELAPSED)
    )
}

pub(super) fn curve(finding: &Finding, stream: &str) -> String {
    format!(
        "miss ratio {} at {}, {} at {}; mean over the sizes {}; {stream}",
        shown(finding, "miss.ratio.first"),
        shown(finding, "size.min"),
        shown(finding, "miss.ratio.last"),
        shown(finding, "size.max"),
        shown(finding, metrics::MISS_RATIO_MEAN),
    )
}

pub(super) fn working_set(finding: &Finding, of: &str) -> String {
    let pages = |name: MetricId| {
        let bytes = finding.figure(format!("{name}.bytes")).map(|f| format!(" ({})", bytes(f.value)));
        format!("{} pages{}", shown(finding, name), bytes.unwrap_or_default())
    };
    format!(
        "working set of {of}: mean {}, peak {}",
        pages(metrics::WORKING_SET_MEAN),
        pages(metrics::WORKING_SET_PEAK)
    )
}
