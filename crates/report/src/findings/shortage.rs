//! Of memory that is short, or is about to be.

use pagelab_analysis::finding::Finding;

use super::{shown, with_spread};
use crate::text::count;
use pagelab_experiment::{MetricId, metrics};

pub(super) fn kills(finding: &Finding, equal: Option<&str>, adjusted: Option<&str>) -> String {
    let situation = |who: Option<&str>, killed: MetricId, stall: MetricId| match who {
        None | Some("nobody") => "no process was killed".to_owned(),
        Some(who) => {
            let held = shown(finding, killed);
            let mut text = format!("the process that {who} was killed ({held} held)");
            if finding.figure(stall).is_some() {
                text += &format!(", {} after the first time at the limit", with_spread(finding, stall));
            }
            text
        }
    };
    let equal = situation(equal, metrics::OOM_KILLED_EQUAL, metrics::OOM_STALL_EQUAL);
    let adjusted = situation(adjusted, metrics::OOM_KILLED_ADJUSTED, metrics::OOM_STALL_ADJUSTED);
    let mut parts = vec![
        format!("at the limit {equal}"),
        format!(
            "with a higher oom_score_adj for the first \
            {adjusted}"
        ),
    ];
    if finding.figure(metrics::OOM_KILLED_GROUP).is_some() {
        let (count, stall) =
            (shown(finding, metrics::OOM_KILLED_GROUP), with_spread(finding, metrics::OOM_STALL_GROUP));
        parts.push(format!("with memory.oom.group {count} processes were killed, the first after {stall}"));
    }
    parts
        .push(format!("the highest score predicted {} of the kills", shown(finding, metrics::OOM_PREDICTED)));
    parts.join("; ")
}

pub(super) fn reclaimed(finding: &Finding) -> String {
    format!(
        "of {} asked for {} were reclaimed, {} pages of the mapping, {} of them cold; {} major faults on \
        the hot part{}; {} of CPU time per page; referencing the cold part again took {} major faults of {}",
        shown(finding, metrics::RECLAIM_REQUESTED),
        with_spread(finding, metrics::RECLAIM_RECLAIMED),
        shown(finding, metrics::RECLAIM_PAGES),
        with_spread(finding, metrics::RECLAIM_COLD),
        with_spread(finding, metrics::RECLAIM_MISTAKES),
        read_ahead(finding).unwrap_or_default(),
        with_spread(finding, metrics::RECLAIM_COST),
        shown(finding, metrics::RECLAIM_REREAD_FAULTS),
        shown(finding, metrics::RECLAIM_REREAD_COST),
    )
}

/// How many hot pages came back without a major fault of their own.
fn read_ahead(finding: &Finding) -> Option<String> {
    let of = |metric| finding.figure(metric).map(|figure| figure.value);
    let hot = (of(metrics::RECLAIM_PAGES)? * (1.0 - of(metrics::RECLAIM_COLD)?)).round();
    let others = hot - of(metrics::RECLAIM_MISTAKES)?;
    (others >= 1.0).then(|| {
        let (hot, others) = (count(hot), count(others));
        format!(
            " ({hot} of its pages were paged out; {others} came back by read-ahead or from the swap cache)"
        )
    })
}

pub(super) fn paged_out(finding: &Finding) -> String {
    let mut text = format!(
        "of {} allowed to a DAMON scheme it paged out {} pages and freed {}",
        shown(finding, metrics::RECLAIM_REQUESTED),
        with_spread(finding, metrics::RECLAIM_PAGES),
        with_spread(finding, metrics::RECLAIM_FREED),
    );
    if finding.figure(metrics::RECLAIM_COLD).is_some() {
        text += &format!(", {} of the pages cold", with_spread(finding, metrics::RECLAIM_COLD));
    }
    text += &format!(
        "; {} major faults on the hot part; {} of kdamond's CPU time",
        with_spread(finding, metrics::RECLAIM_MISTAKES),
        with_spread(finding, metrics::RECLAIM_KDAMOND),
    );
    if finding.figure(metrics::RECLAIM_COST).is_some() {
        text += &format!(", {} per page", with_spread(finding, metrics::RECLAIM_COST));
    }
    text + &format!(
        "; a reference to the hot part took {}; referencing the cold part again took {} major faults",
        with_spread(finding, metrics::RECLAIM_HOT_COST),
        shown(finding, metrics::RECLAIM_REREAD_FAULTS),
    )
}

pub(super) fn huge_pages_had(finding: &Finding) -> String {
    format!(
        "huge pages allocated in fragmented memory: {} without compaction ({} free blocks), {} with direct \
        compaction ({} each), {} by \
         MADV_COLLAPSE ({} each), {} after compact_memory ({}); before memory was filled {} ({} each)",
        with_spread(finding, metrics::FRAGMENT_FRAGMENTED),
        shown(finding, metrics::FRAGMENT_BLOCKS),
        with_spread(finding, metrics::FRAGMENT_DIRECT),
        shown(finding, metrics::FRAGMENT_COST_DIRECT),
        with_spread(finding, metrics::FRAGMENT_COLLAPSE),
        shown(finding, metrics::FRAGMENT_COST_COLLAPSE),
        with_spread(finding, metrics::FRAGMENT_COMPACTED),
        shown(finding, metrics::FRAGMENT_COMPACTION_CPU),
        shown(finding, metrics::FRAGMENT_UNFRAGMENTED),
        shown(finding, metrics::FRAGMENT_COST_UNFRAGMENTED),
    )
}
