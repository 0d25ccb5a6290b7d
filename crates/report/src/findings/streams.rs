//! Of recordings, curves and working sets.

use pagelab_analysis::finding::Finding;

use super::shown;
use crate::text::bytes;

pub(super) fn recording(finding: &Finding) -> String {
    format!(
        "{} counters, {} samples over {}",
        shown(finding, "counters"),
        shown(finding, "samples"),
        shown(finding, "time.elapsed")
    )
}

pub(super) fn curve(finding: &Finding, stream: &str) -> String {
    format!(
        "miss ratio {} at {}, {} at {}; mean over the sizes {}; {stream}",
        shown(finding, "miss.ratio.first"),
        shown(finding, "size.min"),
        shown(finding, "miss.ratio.last"),
        shown(finding, "size.max"),
        shown(finding, "miss.ratio.mean"),
    )
}

pub(super) fn working_set(finding: &Finding, of: &str) -> String {
    let pages = |name: &str| {
        let bytes = finding.figure(&format!("{name}.bytes")).map(|f| format!(" ({})", bytes(f.value)));
        format!("{} pages{}", shown(finding, name), bytes.unwrap_or_default())
    };
    format!("working set of {of}: mean {}, peak {}", pages("working-set.mean"), pages("working-set.peak"))
}
