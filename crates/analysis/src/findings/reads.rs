//! Findings on reads: of active virtual memory, of files at random, and in order.

use pagelab_experiment::experiments::SEQREAD_MODES;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::tables::seqread;
use pagelab_experiment::{ColumnId, Run};
use pagelab_experiment::{metrics, tables};

use super::{figures, table};
use crate::finding::{Evidence, Figure, Finding, Statistic, What};
use crate::rows::row_names;

/// The time of a read at the smallest and the greatest size, and the knees between them.
pub fn read_time(run: &Run) -> Option<Finding> {
    let curve = crate::vmtest::of_run(run)?;
    let n = run.done().count();
    let mut list = Vec::new();
    for (point, size, time) in [
        (curve.points.first()?, "size.first", "access.mean.first"),
        (curve.points.last()?, "size.last", "access.mean.last"),
    ] {
        list.push(Figure::derived(time, Unit::Nanoseconds, Statistic::Min, point.1, n));
        list.push(Figure::derived(size, Unit::Bytes, Statistic::Value, point.0, n));
    }
    let what = What::ReadTime { knees: curve.knees };
    Some(Finding::new(run, what, list, vec![Evidence::Table(tables::vmtest::TABLE)]))
}

/// Processor time of a random read: small and large in memory, and larger than memory.
pub fn file_reads(run: &Run) -> Option<Finding> {
    let mut list =
        figures(run, &[metrics::READ_CPU_SMALL, metrics::READ_CPU_LARGE, metrics::READ_CPU_BEYOND]);
    list.first().filter(|figure| metrics::READ_CPU_SMALL == *figure.name)?;
    if let Some(table) = table(run, tables::fileread::TABLE)
        && let Some(row) = row_names(table).iter().position(|case| case == "beyond nowait")
        && let Some(Some(hits)) =
            table.numbers(tables::fileread::HITS).and_then(|hits| hits.get(row).copied())
    {
        list.push(Figure::derived("hits", Unit::Share, Statistic::Ratio, hits, 1));
    }
    Some(Finding::new(
        run,
        What::FileReads,
        list,
        vec![Evidence::Metrics, Evidence::Table(tables::fileread::TABLE)],
    ))
}

/// The best bandwidth of each way to read, and the transfer size that reached it.
pub fn sequential_reads(run: &Run) -> Option<Finding> {
    let table = table(run, seqread::TABLE)?;
    let mut list = Vec::new();
    for mode in SEQREAD_MODES {
        let number = |column: ColumnId, row: usize| table.numbers(column)?.get(row).copied().flatten();
        let rows = (0..row_names(table).len()).filter(|&row| row_names(table)[row] == mode);
        let speeds = rows.filter_map(|row| Some((row, number(seqread::BANDWIDTH, row)?)));
        let Some((row, _)) = speeds.max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        for column in [seqread::BANDWIDTH, seqread::TRANSFER, seqread::DEVICE_TRANSFER] {
            let name = format!("{}.{mode}", column.name);
            let figure = |value| Some(Figure::derived(&name, column.unit?, Statistic::Value, value, 1));
            list.extend(number(column, row).and_then(figure));
        }
    }
    let evidence = vec![Evidence::Table(seqread::TABLE)];
    (!list.is_empty()).then(|| Finding::new(run, What::SequentialReads, list, evidence))
}

/// Time to the first answer of a restored process, without prefetching and by order.
pub fn first_answer(run: &Run) -> Option<Finding> {
    let all = [
        metrics::RESTORE_ANSWER,
        metrics::RESTORE_ANSWER_RECORDED,
        metrics::RESTORE_ANSWER_LRU,
        metrics::RESTORE_ANSWER_SEQUENTIAL,
        metrics::RESTORE_VAIN_RECORDED,
        metrics::RESTORE_VAIN_LRU,
        metrics::RESTORE_VAIN_SEQUENTIAL,
    ];
    let list = figures(run, &all);
    let evidence = vec![Evidence::Metrics, Evidence::Table(tables::restore::TABLE)];
    (!list.is_empty()).then(|| Finding::new(run, What::FirstAnswer, list, evidence))
}

/// What a load pays for another one under the same limit, and what protection spares it.
pub fn neighbour(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            metrics::VICTIM_FAULTS_NEIGHBOUR,
            metrics::VICTIM_COST_NEIGHBOUR,
            metrics::VICTIM_FAULTS_ALONE,
            metrics::VICTIM_COST_ALONE,
            metrics::VICTIM_FAULTS_LOW,
            metrics::VICTIM_COST_LOW,
            metrics::VICTIM_FAULTS_MIN,
            metrics::VICTIM_COST_MIN,
            metrics::VICTIM_REFAULTS_NEIGHBOUR,
            metrics::VICTIM_PROTECTED,
        ],
    );
    let evidence = vec![Evidence::Metrics, Evidence::Table(tables::situations::TABLE)];
    (!list.is_empty()).then(|| Finding::new(run, What::Neighbour, list, evidence))
}

/// What operations on a mapping cost for each page.
pub fn operations(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            metrics::UNMAP_MUNMAP,
            metrics::UNMAP_MUNMAP_SHARED,
            metrics::UNMAP_PROTECT,
            metrics::UNMAP_DONTNEED,
            metrics::MREMAP_MOVE,
            metrics::MREMAP_MOVE_SHARED,
            metrics::MREMAP_ALIGNED,
            metrics::POPULATE_TOUCH,
            metrics::POPULATE_MAP,
            metrics::POPULATE_ADVISE,
        ],
    );
    let evidence = vec![Evidence::Metrics, Evidence::Table(tables::operations_cost::TABLE)];
    (!list.is_empty()).then(|| Finding::new(run, What::Operations, list, evidence))
}

/// What a load costs from each cache and from memory, and what a TLB miss and a first touch do.
pub fn latencies(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            metrics::LATENCY_DRAM,
            metrics::LATENCY_L1,
            metrics::LATENCY_L2,
            metrics::LATENCY_L3,
            metrics::LATENCY_TLB_MISS,
            metrics::LATENCY_MINOR_FAULT,
            metrics::LATENCY_HUGE_FAULT_FRESH,
            metrics::LATENCY_HUGE_FAULT,
        ],
    );
    let evidence = vec![Evidence::Metrics, Evidence::Table(tables::latency::TABLE)];
    (!list.is_empty()).then(|| Finding::new(run, What::Latencies, list, evidence))
}
