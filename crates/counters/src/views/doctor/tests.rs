//! The doctor on machines made up for it.

use super::*;
use crate::value::{Kind, Unit, Value};

fn sample(
    module: &'static str,
    instance: u64,
    name: &str,
    statistic: &'static str,
    value: f64,
    kind: Kind,
) -> Sample {
    let unit = Unit::Count;
    Sample {
        module,
        instance,
        name: name.into(),
        statistic: statistic.into(),
        class: "vm",
        value: Value::F64(value),
        unit,
        kind,
    }
}

/// A second in which `some` percent of the time was waited, `refaults` of 1000 reclaimed pages came
/// back, and the zone had `free` pages over a low watermark of 100.
fn moments(some: f64, refaults: f64, free: f64) -> (Moment, Moment) {
    let at = |second: u64| {
        let grown = second as f64;
        let counter = |module, name, statistic, rate: f64| {
            sample(module, 0, name, statistic, rate * grown, Kind::Counter)
        };
        let gauge = |module, name, statistic, value| sample(module, 0, name, statistic, value, Kind::Gauge);
        let mut samples = vec![
            counter("pressure", "memory", "some_total", some * 1e7),
            counter("pressure", "memory", "full_total", 0.0),
            counter("vmstat", "vm", "workingset_refault_anon", 0.0),
            counter("vmstat", "vm", "workingset_refault_file", refaults),
            counter("vmstat", "vm", "pgsteal_anon", 0.0),
            counter("vmstat", "vm", "pgsteal_file", 1000.0),
            counter("vmstat", "vm", "pswpin", 0.0),
            gauge("zoneinfo", "Normal", "free", free),
            gauge("zoneinfo", "Normal", "min", 80.0),
            gauge("zoneinfo", "Normal", "low", 100.0),
            gauge("zoneinfo", "Normal", "managed", 1e6),
            gauge("meminfo", "mem", "MemTotal", 4e9),
            gauge("meminfo", "mem", "MemAvailable", 3e9),
            gauge("meminfo", "mem", "SwapTotal", 0.0),
            sample("cgroup", 2, "/db", "current", 9e7, Kind::Gauge),
            sample("cgroup", 2, "/db", "max", 1e8, Kind::Gauge),
            sample("cgroup", 2, "/db", "max_events", 50.0 * grown, Kind::Counter),
            sample("cgroup", 2, "/db", "workingset_refault_file", refaults * grown, Kind::Counter),
        ];
        for (pid, cgroup, rss) in [(7, "/db", 8e7), (8, "/db/sub", 1e7), (9, "/other", 2e9)] {
            samples.push(sample("process", pid, "task", "rss", rss, Kind::Gauge));
            samples.push(sample("process", pid, "task", "rss_anon", rss, Kind::Gauge));
            let text = Value::Text(cgroup.to_owned());
            samples
                .push(Sample { value: text, ..sample("process", pid, "task", "cgroup", 0.0, Kind::Gauge) });
            samples.push(sample("thread", pid, "task", "pid", pid as f64, Kind::Gauge));
        }
        let delays = prstat::Delays { swap_in: second * 300_000_000, ..prstat::Delays::default() };
        Moment {
            counters: Snapshot::new(second * 1_000_000_000, samples),
            delays: [(8, delays)].into(),
            traced: None,
        }
    };
    (at(1), at(2))
}

fn report(some: f64, refaults: f64, free: f64) -> Report {
    let (before, now) = moments(some, refaults, free);
    examine(&before, &now, &Snapshot::default(), 4096)
}

#[test]
fn a_machine_without_signs_is_fine_whatever_it_reclaims() {
    let report = report(0.0, 50.0, 1000.0);
    assert_eq!(report.level, Level::Fine);
    assert!(report.relief.is_empty());
    assert_eq!(report.holding[0].pid, Some(9), "without a shortage the largest of the machine");
}

#[test]
fn thresholds_are_where_the_documents_say() {
    for (some, refaults, free, level) in [
        (0.9, 0.0, 1000.0, Level::Fine),
        (1.0, 0.0, 1000.0, Level::Strained),
        (10.0, 0.0, 1000.0, Level::Short),
        (0.0, 100.0, 1000.0, Level::Strained),
        (0.0, 500.0, 1000.0, Level::Short),
        (0.0, 99.0, 1000.0, Level::Fine),
        (0.0, 0.0, 99.0, Level::Strained),
        (0.0, 0.0, 79.0, Level::Short),
    ] {
        assert_eq!(report(some, refaults, free).level, level, "{some} % {refaults} refaults {free} free");
    }
}

#[test]
fn a_cgroups_shortage_is_laid_at_its_own_door() {
    let report = report(30.0, 900.0, 1000.0);
    assert_eq!((report.limited[0].path.as_str(), report.limited[0].met), ("/db", 50.0));
    let holders: Vec<_> = report.holding.iter().map(|h| h.pid).collect();
    assert_eq!(holders, [Some(7), Some(8)], "the larger process of another cgroup has no part in it");
    let waiting = &report.waiting[0];
    assert_eq!(
        (waiting.row.pid, waiting.row.dfl, waiting.cgroup.as_deref()),
        (8, Some(30.0), Some("/db/sub"))
    );
    assert!(report.relief[0].contains("memory.max of the cgroup /db"), "{:?}", report.relief);
    assert!(report.relief[1].contains("process 7"), "{:?}", report.relief);
    assert!(report.relief[2].contains("add swap"), "{:?}", report.relief);
}

#[test]
fn what_is_unfit_has_a_remedy() {
    let report = report(0.0, 0.0, 1000.0);
    assert!(report.fitness.iter().any(|c| c.what == "pressure information" && c.fit));
    assert!(report.fitness.iter().all(|c| c.fit == c.remedy.is_empty()));
}
