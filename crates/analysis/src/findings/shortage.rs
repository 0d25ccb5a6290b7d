//! What the kernel does where memory is short, or is about to be: kills, proactive reclaim, huge pages.

use pagelab_experiment::experiments::Reclaim;
use pagelab_experiment::experiments::reclaim::By;
use pagelab_experiment::{Run, TableId};
use pagelab_experiment::{metrics, tables};

use super::{figures, table};
use crate::finding::{Evidence, Finding, What};

/// Who was killed where a limit was reached, and how long all waited for it.
pub fn kills(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            metrics::OOM_STALL_EQUAL,
            metrics::OOM_KILLED_EQUAL,
            metrics::OOM_STALL_ADJUSTED,
            metrics::OOM_KILLED_ADJUSTED,
            metrics::OOM_STALL_GROUP,
            metrics::OOM_KILLED_GROUP,
            metrics::OOM_PREDICTED,
        ],
    );
    let kills = table(run, tables::kills::TABLE)?;
    let who = |row: usize| kills.texts(tables::kills::WHO)?.get(row).cloned();
    let what = What::Kills { equal: who(0), adjusted: who(1) };
    Some(Finding::new(run, what, list, vec![Evidence::Metrics, Evidence::Table(tables::kills::TABLE)]))
}

/// What taking memory in advance freed, and what it cost.
pub fn reclaimed(run: &Run) -> Option<Finding> {
    let by = run.header.experiment.parameters::<Reclaim>()?.by;
    let (what, first, evident): (_, _, &[TableId]) = match by {
        By::MemoryReclaim => (What::Reclaimed, metrics::RECLAIM_RECLAIMED, &[tables::steps::TABLE]),
        By::Damon => (What::PagedOut, metrics::RECLAIM_PAGES, &[tables::steps::TABLE, tables::scheme::TABLE]),
    };
    let list = figures(
        run,
        &[
            first,
            metrics::RECLAIM_REQUESTED,
            metrics::RECLAIM_FREED,
            metrics::RECLAIM_COLD,
            metrics::RECLAIM_MISTAKES,
            metrics::RECLAIM_COST,
            metrics::RECLAIM_HOT_COST,
            metrics::RECLAIM_REREAD_FAULTS,
            metrics::RECLAIM_REREAD_COST,
            match by {
                By::MemoryReclaim => metrics::RECLAIM_PAGES,
                By::Damon => metrics::RECLAIM_KDAMOND,
            },
        ],
    );
    let evidence = evident.iter().copied().map(Evidence::Table);
    let evidence = [Evidence::Metrics].into_iter().chain(evidence).collect();
    (!list.is_empty()).then(|| Finding::new(run, what, list, evidence))
}

/// How many huge pages could be had in each way, and what they cost.
pub fn huge_pages(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            metrics::FRAGMENT_FRAGMENTED,
            metrics::FRAGMENT_UNFRAGMENTED,
            metrics::FRAGMENT_DIRECT,
            metrics::FRAGMENT_COLLAPSE,
            metrics::FRAGMENT_COMPACTED,
            metrics::FRAGMENT_BLOCKS,
            metrics::FRAGMENT_COST_UNFRAGMENTED,
            metrics::FRAGMENT_COST_DIRECT,
            metrics::FRAGMENT_COST_COLLAPSE,
            metrics::FRAGMENT_COMPACTION_CPU,
        ],
    );
    let evidence = vec![Evidence::Metrics, Evidence::Table(tables::ways::TABLE)];
    (!list.is_empty()).then(|| Finding::new(run, What::HugePagesHad, list, evidence))
}
