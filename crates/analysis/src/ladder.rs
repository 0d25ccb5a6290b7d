//! The memory ladder: what one access costs at each level of the memory hierarchy that was measured, from
//! the first-level cache to the disk.

use pagelab_experiment::observation::{Table, Unit};
use pagelab_experiment::{Experiment, Run};
use serde::Serialize;

use crate::finding::{Figure, Statistic};

/// The share of the memory limit up to which a read of the sweep is surely not paged.
const WITHIN: f64 = 0.75;

/// A level of the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "level", rename_all = "kebab-case")]
pub enum LevelKind {
    /// A read within a cache's reach, by its level.
    Cache {
        /// 1, 2 or 3.
        number: u8,
    },
    /// A read beyond the reach of the TLBs.
    TlbMiss,
    /// A reference to a page in memory, as the experiment touches it.
    Resident,
    /// The first touch of an anonymous page and giving it back.
    MinorFault,
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
    /// The size of what was read, bytes, where it belongs to the level: the memory of a sweep, the transfer.
    pub size: Option<f64>,
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

fn of_run(run: &Run) -> Vec<Level> {
    let level = |kind, metric: &str| {
        let time = Figure::of(run, metric)?;
        Some(Level { kind, size: None, time, run: run.header.name.clone() })
    };
    match &run.header.experiment {
        Experiment::Vmtest(_) => reads(run).unwrap_or_default(),
        Experiment::Mapanon(_) => {
            let swap = entry(run, "swap.kind").unwrap_or("file").to_owned();
            [
                level(LevelKind::Resident, "access.hit.p50"),
                level(LevelKind::MinorFault, "fault.anonymous"),
                level(LevelKind::SwapFault { swap }, "access.major.p50"),
            ]
            .into_iter()
            .flatten()
            .collect()
        }
        Experiment::Mapfile(_) => level(LevelKind::FileFault, "access.major.p50").into_iter().collect(),
        Experiment::Fileread(_) => level(LevelKind::CachedRead, "read.cpu.small").into_iter().collect(),
        Experiment::Seqread(_) => direct(run).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The reads of a sweep over memory: in each level's reach the greatest size.
fn reads(run: &Run) -> Option<Vec<Level>> {
    let tables: Vec<&Table> = run.done().filter_map(|r| r.observations.table("vmtest")).collect();
    let sizes = tables.first()?.numbers("size")?;
    let number = |key: &str| entry(run, key).and_then(|text| text.parse::<f64>().ok());
    let page = number("page.size")?;
    let reach = |entries: &str| number(entries).map(|entries| entries * page);
    let at = |row: usize, name: &str| -> Vec<f64> {
        tables.iter().filter_map(|t| *t.numbers(name)?.get(row)?).collect()
    };
    let within = |kind: LevelKind, above: f64, upto: f64| {
        let row = (0..sizes.len()).rev().find(|&row| {
            sizes[row].is_some_and(|size| size > above && size <= upto)
                && at(row, "faults.major").iter().all(|&faults| faults == 0.0)
        })?;
        let time = Figure::over("access.mean", Unit::Nanoseconds, Statistic::Mean, &at(row, "access.mean"))?;
        Some(Level { kind, size: sizes[row], time, run: run.header.name.clone() })
    };
    let cache = |number: u8| LevelKind::Cache { number };
    let (l1, l2) = (number("cache.l1d"), number("cache.l2"));
    let tlb = reach("tlb.l2");
    let limit = number("memory.limit").map_or(f64::INFINITY, |limit| limit * WITHIN);
    let mut levels = Vec::new();
    levels.extend(l1.and_then(|l1| within(cache(1), 0.0, l1)));
    levels.extend(l1.zip(l2).and_then(|(l1, l2)| within(cache(2), l1, l2)));
    if number("cache.l3").is_some() {
        levels.extend(l2.zip(tlb).and_then(|(l2, tlb)| within(cache(3), l2, tlb.min(limit))));
    }
    levels.extend(l2.zip(tlb).and_then(|(l2, tlb)| within(LevelKind::TlbMiss, l2.max(tlb), limit)));
    Some(levels)
}

/// The smallest direct transfer: its size divided by its bandwidth.
fn direct(run: &Run) -> Option<Level> {
    let tables: Vec<&Table> = run.done().filter_map(|r| r.observations.table("seqread")).collect();
    let names = crate::rows::row_names(tables.first()?);
    let row = names.iter().position(|mode| mode == "direct")?;
    let number = |table: &&Table, name: &str| table.numbers(name)?.get(row).copied().flatten();
    let size = number(tables.first()?, "transfer")?;
    let times: Vec<f64> =
        tables.iter().filter_map(|table| Some(size / number(table, "bandwidth")? * 1e9)).collect();
    let time = Figure::over("read.direct", Unit::Nanoseconds, Statistic::Mean, &times)?;
    Some(Level { kind: LevelKind::DirectRead, size: Some(size), time, run: run.header.name.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runs::run;
    use pagelab_experiment::experiments::{Paging, Vmtest};
    use pagelab_experiment::observation::{Column, Values};

    fn swept() -> Run {
        let sizes = [16e3, 32e3, 512e3, 1e6, 4e6, 32e6, 96e6];
        let times = [2.0, 2.5, 4.0, 5.0, 9.0, 20.0, 900.0];
        let faults = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 50.0];
        let column = |name: &str, values: &[f64]| Column {
            name: name.into(),
            unit: Some(Unit::Count),
            values: Values::Number(values.iter().map(|&v| Some(v)).collect()),
        };
        let columns =
            vec![column("size", &sizes), column("access.mean", &times), column("faults.major", &faults)];
        let mut run = run("v", Experiment::Vmtest(Vmtest::default()), "host", &[("speed.first", &[1.0])]);
        let seen = &mut run.repetitions[0].observations;
        seen.tables.push(Table { name: "vmtest".into(), columns });
        for (key, value) in [
            ("page.size", "4096"),
            ("cache.l1d", "32768"),
            ("cache.l2", "1048576"),
            ("cache.l3", "33554432"),
            ("tlb.l2", "1536"),
            ("memory.limit", "67108864"),
        ] {
            seen.environment.insert(key.into(), value.into());
        }
        run
    }

    #[test]
    fn each_level_is_the_greatest_size_within_its_reach() {
        let paging = Experiment::Mapanon(Paging::default());
        let random = run(
            "r",
            paging,
            "host",
            &[
                ("access.hit.p50", &[600.0]),
                ("fault.anonymous", &[2e3, 1e3, 3e3]),
                ("access.major.p50", &[5e4]),
            ],
        );
        let swept = swept();
        let levels = of_runs(&[&swept, &random]);
        let times: Vec<f64> = levels.iter().map(|level| level.time.value).collect();
        assert_eq!(times, [2.5, 5.0, 9.0, 20.0, 600.0, 2e3, 5e4], "the 96 MB faulted");
        assert_eq!(levels[3].kind, LevelKind::TlbMiss);
        assert_eq!(levels[6].kind, LevelKind::SwapFault { swap: "file".into() });
        assert_eq!(levels[5].time.interval.unwrap().high, Some(3e3));
    }

    #[test]
    fn what_was_not_measured_is_no_level() {
        let mut bare = swept();
        bare.repetitions[0].observations.environment.clear();
        assert_eq!(of_runs(&[&bare]), []);
    }
}
