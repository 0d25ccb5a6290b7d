//! What the kernel does where memory is short, or is about to be: kills, proactive reclaim, huge pages.

use pagelab_experiment::Run;
use pagelab_experiment::experiments::reclaim::By;
use pagelab_experiment::observation::Values;

use super::{figures, table};
use crate::finding::{Evidence, Finding, What};

/// Who was killed where a limit was reached, and how long all waited for it.
pub fn kills(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            "oom.stall.equal",
            "oom.killed.equal",
            "oom.stall.adjusted",
            "oom.killed.adjusted",
            "oom.stall.group",
            "oom.killed.group",
            "oom.predicted",
        ],
    );
    let kills = table(run, "kills")?;
    let who = |row: usize| match &kills.columns.get(1)?.values {
        Values::Text(names) => names.get(row).cloned(),
        Values::Number(_) => None,
    };
    let what = What::Kills { equal: who(0), adjusted: who(1) };
    Some(Finding::new(run, what, list, vec![Evidence::Metrics, Evidence::Table("kills".into())]))
}

/// What taking memory in advance freed, and what it cost.
pub fn reclaimed(run: &Run, by: By) -> Option<Finding> {
    let (what, first, tables): (_, _, &[&str]) = match by {
        By::MemoryReclaim => (What::Reclaimed, "reclaim.had", &["steps"]),
        By::Damon => (What::PagedOut, "reclaim.pages", &["steps", "scheme"]),
    };
    let list = figures(
        run,
        &[
            first,
            "reclaim.asked",
            "reclaim.freed",
            "reclaim.cold",
            "reclaim.mistakes",
            "reclaim.cost",
            "reclaim.reference",
            "reclaim.back.faults",
            "reclaim.back.cost",
            match by {
                By::MemoryReclaim => "reclaim.pages",
                By::Damon => "reclaim.kdamond",
            },
        ],
    );
    let tables = tables.iter().map(|name| Evidence::Table((*name).to_owned()));
    let evidence = [Evidence::Metrics].into_iter().chain(tables).collect();
    (!list.is_empty()).then(|| Finding::new(run, what, list, evidence))
}

/// How many huge pages could be had in each way, and what they cost.
pub fn huge_pages(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            "fragment.pieces",
            "fragment.whole",
            "fragment.direct",
            "fragment.collapse",
            "fragment.compacted",
            "fragment.blocks",
            "fragment.cost.whole",
            "fragment.cost.direct",
            "fragment.cost.collapse",
            "fragment.compacting",
        ],
    );
    let evidence = vec![Evidence::Metrics, Evidence::Table("ways".into())];
    (!list.is_empty()).then(|| Finding::new(run, What::HugePagesHad, list, evidence))
}
