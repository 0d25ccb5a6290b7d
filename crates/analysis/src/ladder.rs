//! The memory ladder: what one access costs at each level of the memory hierarchy that was measured, from
//! the first-level cache to the disk.

use pagelab_experiment::environment;
use pagelab_experiment::experiments::{Access, Backing, Fileread, Load};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::{Table, Unit};
use pagelab_experiment::tables::seqread;
use pagelab_experiment::{ColumnId, MetricId, Run};
use serde::Serialize;

use crate::finding::{Figure, Statistic};
use crate::stats::middle;

/// A level of the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "level", rename_all = "kebab-case")]
pub enum LevelKind {
    /// A load from a cache, by its level.
    Cache {
        /// 1, 2 or 3.
        number: u8,
    },
    /// A load that misses every TLB.
    TlbMiss,
    /// A load from memory.
    Dram,
    /// The first touch of a base page of anonymous memory.
    MinorFault,
    /// The first touch of a transparent huge page in memory beyond the caches.
    HugeFault,
    /// The same in memory that the caches hold.
    CachedHugeFault,
    /// A random read of a file from the page cache.
    CachedRead,
    /// A major fault on a page in swap of this kind.
    SwapFault {
        /// `file` or `zram`.
        swap: String,
    },
    /// A read around the page cache.
    DirectRead,
    /// A major fault on a page of a file.
    FileFault,
}

/// What an access costs at a level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// The level.
    #[serde(flatten)]
    pub kind: LevelKind,
    /// Bytes of the cache.
    pub size: Option<f64>,
    /// Bytes that one access moves: of a major fault the mean, with what is read ahead.
    pub moved: Option<f64>,
    /// The time.
    pub time: Figure,
    /// The run that measured it.
    pub run: String,
}

/// The levels that `runs` on one target measured in nanoseconds, the quickest first; none where fewer than
/// three were.
pub fn of_runs(runs: &[&Run]) -> Vec<Level> {
    let Some(first) = runs.first() else { return Vec::new() };
    let same = runs.iter().filter(|run| run.header.target == first.header.target);
    let mut levels: Vec<Level> = Vec::new();
    for level in same.flat_map(|run| of_run(run)) {
        if level.time.unit == Unit::Nanoseconds && !levels.iter().any(|known| known.kind == level.kind) {
            levels.push(level);
        }
    }
    levels.sort_by(|a, b| a.time.value.total_cmp(&b.time.value));
    if levels.len() < 3 { Vec::new() } else { levels }
}

fn entry<'a>(run: &'a Run, key: &str) -> Option<&'a str> {
    run.done().find_map(|r| r.observations.environment.get(key)).map(String::as_str)
}

fn number(run: &Run, key: &str) -> Option<f64> {
    entry(run, key)?.parse().ok()
}

fn of_run(run: &Run) -> Vec<Level> {
    let page = number(run, environment::PAGE_SIZE);
    let level = |kind, metric: MetricId, moved| {
        let time = Figure::of(run, metric)?;
        Some(Level { kind, size: None, moved, time, run: run.header.name.clone() })
    };
    let fault = match run.header.experiment.declaration().load() {
        Load::References(_, Backing::Anonymous) => {
            let swap = entry(run, environment::SWAP_KIND).unwrap_or("file").to_owned();
            let pages = middle(run, metrics::SWAP_IN).zip(middle(run, metrics::FAULTS_MAJOR));
            let moved = pages.zip(page).map(|((pages, faults), page)| pages / faults * page);
            level(LevelKind::SwapFault { swap }, metrics::ACCESS_MAJOR_P50, moved)
        }
        Load::References(_, Backing::File) => {
            level(LevelKind::FileFault, metrics::ACCESS_MAJOR_P50, read_by_a_fault(run))
        }
        _ => None,
    };
    let cached = run.header.experiment.parameters::<Fileread>().and_then(|fileread| {
        // Other reads have no level.
        let cached = fileread.is_plain() && !fileread.access.iter().all(|access| access.is_direct());
        let read = fileread.read_size().bytes(page.unwrap_or(1.0) as u64) as f64;
        cached.then(|| level(LevelKind::CachedRead, metrics::READ_CPU_SMALL, Some(read)))?
    });
    latencies(run).into_iter().chain(fault).chain(cached).chain(direct(run)).collect()
}

/// Bytes that a major fault read, read-ahead included, in the mean.
pub(crate) fn read_by_a_fault(run: &Run) -> Option<f64> {
    let faults = middle(run, metrics::FAULTS_MAJOR).filter(|&faults| faults > 0.0)?;
    Some(middle(run, metrics::IO_READ)? / faults)
}

/// The loads from each cache and from memory, and the first touches.
fn latencies(run: &Run) -> Vec<Level> {
    let cache = |number: u8| LevelKind::Cache { number };
    // A load of the chains moves a pointer; a huge page is what a page full of such entries maps.
    let (word, page) = (Some(8.0), number(run, environment::PAGE_SIZE));
    let huge = page.map(|page| page / 8.0 * page);
    let level = |(kind, metric, size, moved): (LevelKind, MetricId, Option<&str>, Option<f64>)| {
        let size = size.and_then(|key| number(run, key));
        Some(Level { kind, size, moved, time: Figure::of(run, metric)?, run: run.header.name.clone() })
    };
    [
        (cache(1), metrics::LATENCY_L1, Some(environment::CACHE_L1D), word),
        (cache(2), metrics::LATENCY_L2, Some(environment::CACHE_L2), word),
        (cache(3), metrics::LATENCY_L3, Some(environment::CACHE_L3), word),
        (LevelKind::Dram, metrics::LATENCY_DRAM, None, word),
        (LevelKind::TlbMiss, metrics::LATENCY_TLB_MISS, None, word),
        (LevelKind::MinorFault, metrics::LATENCY_MINOR_FAULT, None, page),
        (LevelKind::HugeFault, metrics::LATENCY_HUGE_FAULT_FRESH, None, huge),
        (LevelKind::CachedHugeFault, metrics::LATENCY_HUGE_FAULT, None, huge),
    ]
    .into_iter()
    .filter_map(level)
    .collect()
}

/// The smallest direct transfer: its size divided by its bandwidth.
fn direct(run: &Run) -> Option<Level> {
    let tables: Vec<&Table> = run.done().filter_map(|r| r.observations.table(seqread::TABLE)).collect();
    let names = crate::rows::row_names(tables.first()?);
    let row = names.iter().position(|mode| mode == Access::Direct.seqread_mode().0)?;
    let number = |table: &&Table, column: ColumnId| table.numbers(column)?.get(row).copied().flatten();
    let size = number(tables.first()?, seqread::TRANSFER)?;
    // A rate per instruction is no time.
    let timed = |table: &&&Table| {
        table.column(seqread::BANDWIDTH).is_some_and(|column| column.unit == Some(Unit::BytesPerSecond))
    };
    let rates = tables.iter().filter(timed).filter_map(|table| number(table, seqread::BANDWIDTH));
    let times: Vec<f64> = rates.map(|rate| size / rate * 1e9).collect();
    let time = Figure::over("read.direct", Unit::Nanoseconds, Statistic::Mean, &times)?;
    let (kind, run) = (LevelKind::DirectRead, run.header.name.clone());
    Some(Level { kind, size: None, moved: Some(size), time, run })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runs::run;
    use pagelab_experiment::Experiment;
    use pagelab_experiment::experiments::{Latency, Paging};

    fn measured() -> Run {
        let figures: &[(&str, &[f64])] = &[
            ("latency.l1", &[1.0]),
            ("latency.l2", &[4.0]),
            ("latency.dram", &[90.0, 80.0, 100.0]),
            ("latency.tlb-miss", &[20.0]),
            ("latency.minor-fault", &[500.0]),
            ("latency.huge-fault.fresh", &[9e4]),
        ];
        let mut run = run("l", Experiment::Latency(Latency::default()), "host", figures);
        for (key, bytes) in [("cache.l2", "1048576"), ("page.size", "4096")] {
            run.repetitions[0].observations.environment.insert(key.into(), bytes.into());
        }
        run
    }

    #[test]
    fn the_levels_of_all_experiments_are_one_ladder_the_quickest_first() {
        let figures: &[(&str, &[f64])] = &[("access.hit.p50", &[600.0]), ("access.major.p50", &[5e4])];
        let random = run("r", Experiment::Mapanon(Paging::default()), "host", figures);
        let measured = measured();
        let levels = of_runs(&[&random, &measured]);
        let times: Vec<f64> = levels.iter().map(|level| level.time.value).collect();
        assert_eq!(times, [1.0, 4.0, 20.0, 90.0, 500.0, 5e4, 9e4]);
        assert_eq!((&levels[1].kind, levels[1].size), (&LevelKind::Cache { number: 2 }, Some(1048576.0)));
        assert_eq!(levels[3].kind, LevelKind::Dram);
        assert_eq!(levels[3].time.interval.unwrap().high, Some(100.0));
        assert_eq!(levels[5].kind, LevelKind::SwapFault { swap: "file".into() });
        assert_eq!(levels[6].kind, LevelKind::HugeFault);
    }

    #[test]
    fn an_access_moves_a_word_a_page_or_what_its_fault_read() {
        let figures: &[(&str, &[f64])] =
            &[("access.major.p50", &[5e4]), ("swap.in", &[30.0]), ("faults.major", &[20.0])];
        let mut swap = run("s", Experiment::Mapanon(Paging::default()), "host", figures);
        swap.repetitions[0].observations.environment.insert("page.size".into(), "4096".into());
        let figures: &[(&str, &[f64])] =
            &[("access.major.p50", &[7e6]), ("io.read", &[8e6]), ("faults.major", &[2.0])];
        let file = run("f", Experiment::Mapfile(Paging::default()), "host", figures);
        let levels = of_runs(&[&measured(), &swap, &file]);
        let moved: Vec<f64> = levels.iter().filter_map(|level| level.moved).collect();
        assert_eq!(moved, [8.0, 8.0, 8.0, 8.0, 4096.0, 6144.0, 2_097_152.0, 4e6]);
        let last = levels.last().unwrap();
        assert_eq!((&last.kind, last.moved), (&LevelKind::FileFault, Some(4e6)));
    }

    #[test]
    fn fewer_than_three_levels_are_no_ladder_and_another_targets_are_not_in_it() {
        let mut measured = measured();
        let few = run("r", Experiment::Mapanon(Paging::default()), "host", &[("access.major.p50", &[5e4])]);
        assert_eq!(of_runs(&[&few]), []);
        measured.header.target = "model:tlb".parse().unwrap();
        assert_eq!(of_runs(&[&few, &measured]), []);
    }
}
