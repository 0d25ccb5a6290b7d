//! Of memory that is short, or is about to be.

use pagelab_analysis::finding::Finding;

use super::{shown, with_spread};

pub(super) fn kills(finding: &Finding, equal: Option<&str>, adjusted: Option<&str>) -> String {
    let situation = |who: Option<&str>, name: &str| match who {
        None | Some("nobody") => "nobody was killed".to_owned(),
        Some(who) => {
            let held = shown(finding, &format!("oom.killed.{name}"));
            let mut text = format!("the process that {who} was killed ({held} held)");
            let stall = format!("oom.stall.{name}");
            if finding.figure(&stall).is_some() {
                text += &format!(", {} after the first time at the limit", with_spread(finding, &stall));
            }
            text
        }
    };
    let mut parts = vec![
        format!("at the limit {}", situation(equal, "equal")),
        format!("with more oom_score_adj for the first {}", situation(adjusted, "adjusted")),
    ];
    if finding.figure("oom.killed.group").is_some() {
        let (count, stall) = (shown(finding, "oom.killed.group"), with_spread(finding, "oom.stall.group"));
        parts.push(format!("with memory.oom.group {count} processes were killed, the first after {stall}"));
    }
    parts.push(format!("the highest score predicted {} of the kills", shown(finding, "oom.predicted")));
    parts.join("; ")
}

pub(super) fn reclaimed(finding: &Finding) -> String {
    format!(
        "of {} asked for {} were reclaimed, {} pages of the mapping, {} of them cold; {} major faults on the hot part; {} of \
         processor time a page; referencing the cold part again took {} major faults of {}",
        shown(finding, "reclaim.asked"),
        with_spread(finding, "reclaim.had"),
        shown(finding, "reclaim.pages"),
        with_spread(finding, "reclaim.cold"),
        with_spread(finding, "reclaim.mistakes"),
        with_spread(finding, "reclaim.cost"),
        shown(finding, "reclaim.back.faults"),
        shown(finding, "reclaim.back.cost"),
    )
}

pub(super) fn paged_out(finding: &Finding) -> String {
    let mut text = format!(
        "of {} allowed to a DAMON scheme it paged out {} pages and freed {}",
        shown(finding, "reclaim.asked"),
        with_spread(finding, "reclaim.pages"),
        with_spread(finding, "reclaim.freed"),
    );
    if finding.figure("reclaim.cold").is_some() {
        text += &format!(", {} of the pages cold", with_spread(finding, "reclaim.cold"));
    }
    text += &format!(
        "; {} major faults on the hot part; {} of kdamond's processor time",
        with_spread(finding, "reclaim.mistakes"),
        with_spread(finding, "reclaim.kdamond"),
    );
    if finding.figure("reclaim.cost").is_some() {
        text += &format!(", {} a page", with_spread(finding, "reclaim.cost"));
    }
    text + &format!(
        "; a reference to the hot part took {}; referencing the cold part again took {} major faults",
        with_spread(finding, "reclaim.reference"),
        shown(finding, "reclaim.back.faults"),
    )
}

pub(super) fn huge_pages_had(finding: &Finding) -> String {
    format!(
        "huge pages had in fragmented memory: {} without compaction ({} free blocks), {} with direct compaction ({} each), {} by \
         MADV_COLLAPSE ({} each), {} after compact_memory ({}); before memory was filled {} ({} each)",
        with_spread(finding, "fragment.pieces"),
        shown(finding, "fragment.blocks"),
        with_spread(finding, "fragment.direct"),
        shown(finding, "fragment.cost.direct"),
        with_spread(finding, "fragment.collapse"),
        shown(finding, "fragment.cost.collapse"),
        with_spread(finding, "fragment.compacted"),
        shown(finding, "fragment.compacting"),
        shown(finding, "fragment.whole"),
        shown(finding, "fragment.cost.whole"),
    )
}
