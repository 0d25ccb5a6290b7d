//! Metrics that were renamed, so that older notebooks, scripts and command lines keep working.

/// The former and the present name of each.
const RENAMED: &[(&str, &str)] = &[
    ("time.processor", "time.cpu"),
    ("looks.cpu", "polls.cpu"),
    ("clock.true", "clock.agreement"),
    ("ksm.processor", "ksm.cpu"),
    ("reclaim.asked", "reclaim.requested"),
    ("reclaim.had", "reclaim.reclaimed"),
    ("reclaim.reference", "reclaim.hot.cost"),
    ("reclaim.back.faults", "reclaim.reread.faults"),
    ("reclaim.back.cost", "reclaim.reread.cost"),
    ("fragment.whole", "fragment.unfragmented"),
    ("fragment.pieces", "fragment.fragmented"),
    ("fragment.cost.whole", "fragment.cost.unfragmented"),
    ("fragment.compacting", "fragment.compaction.cpu"),
    ("victim.cost.beside", "victim.cost.neighbour"),
    ("victim.faults.beside", "victim.faults.neighbour"),
    ("victim.refaults.beside", "victim.refaults.neighbour"),
    ("tier.hints", "tier.hint-faults"),
    ("pager.seen", "pager.visible"),
    ("huge.first", "huge.before"),
    ("huge.last", "huge.after"),
    ("huge.coverage.first", "huge.coverage.before"),
    ("huge.coverage.last", "huge.coverage.after"),
    ("folio.coverage.first", "folio.coverage.before"),
    ("folio.coverage.last", "folio.coverage.after"),
];

/// The present name of the metric that is or was called `name`; a name that was never renamed is
/// its own.
pub fn current(name: &str) -> &str {
    RENAMED.iter().find(|(former, _)| *former == name).map_or(name, |(_, present)| present)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MetricId;

    #[test]
    fn a_former_name_leads_to_a_declared_metric_and_is_none_itself() {
        for (former, present) in RENAMED {
            assert!(MetricId::find(present).is_some_and(|metric| metric.name == *present), "{present}");
            assert_eq!(MetricId::find(former).map(|metric| metric.name), Some(*present));
        }
    }
}
