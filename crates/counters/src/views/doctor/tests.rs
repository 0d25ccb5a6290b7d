//! The doctor on machines made up for it.

use super::*;
use crate::Sample;
use crate::value::{Kind, Value};

/// A second in which `some` percent of the time was waited, `refaults` of 1000 reclaimed pages came
/// back, and the zone had `free` pages over a low watermark of 100; and with the samples of `more`, growing ones
/// as their growth.
fn moments_with(some: f64, refaults: f64, free: f64, more: &[Sample]) -> (Moment, Moment) {
    let at = |second: u64| {
        let grown = second as f64;
        let counter = |module, name, statistic, rate: f64| {
            Sample::new(module, 0, name, statistic, rate * grown, Kind::Counter)
        };
        let gauge =
            |module, name, statistic, value| Sample::new(module, 0, name, statistic, value, Kind::Gauge);
        let mut samples = vec![
            counter("pressure", "memory", "some_total", some * 1e7),
            counter("pressure", "memory", "full_total", 0.0),
            counter("vmstat", "vm", "workingset_refault_anon", 0.0),
            counter("vmstat", "vm", "workingset_refault_file", refaults),
            counter("vmstat", "vm", "pgsteal_anon", 0.0),
            counter("vmstat", "vm", "pgsteal_file", 1000.0),
            counter("vmstat", "vm", "pgscan_anon", 0.0),
            counter("vmstat", "vm", "pgscan_file", 2000.0),
            counter("vmstat", "vm", "pswpin", 0.0),
            gauge("zoneinfo", "Normal", "free", free),
            gauge("zoneinfo", "Normal", "min", 80.0),
            gauge("zoneinfo", "Normal", "low", 100.0),
            gauge("zoneinfo", "Normal", "managed", 1e6),
            gauge("meminfo", "mem", "MemTotal", 4e9),
            gauge("meminfo", "mem", "MemAvailable", 3e9),
            gauge("meminfo", "mem", "SwapTotal", 0.0),
            Sample::new("cgroup", 2, "/db", "current", 9e7, Kind::Gauge),
            Sample::new("cgroup", 2, "/db", "max", 1e8, Kind::Gauge),
            Sample::new("cgroup", 2, "/db", "max_events", 50.0 * grown, Kind::Counter),
            Sample::new("cgroup", 2, "/db", "workingset_refault_file", refaults * grown, Kind::Counter),
        ];
        for (pid, cgroup, rss) in [(7, "/db", 8e7), (8, "/db/sub", 1e7), (9, "/other", 2e9)] {
            samples.push(Sample::new("process", pid, "task", "rss", rss, Kind::Gauge));
            samples.push(Sample::new("process", pid, "task", "rss_anon", rss, Kind::Gauge));
            let text = Value::Text(cgroup.to_owned());
            samples.push(Sample {
                value: text,
                ..Sample::new("process", pid, "task", "cgroup", 0.0, Kind::Gauge)
            });
            samples.push(Sample::new("thread", pid, "task", "pid", pid as f64, Kind::Gauge));
        }
        samples.retain(|s| {
            !more.iter().any(|m| (m.module, &m.statistic) == (s.module, &s.statistic) && m.name == s.name)
        });
        samples.extend(more.iter().map(|given| match given.kind {
            Kind::Counter => {
                Sample { value: Value::F64(given.value.number().unwrap() * grown), ..given.clone() }
            }
            Kind::Gauge => given.clone(),
        }));
        if !more.iter().any(|m| m.statistic == "pgscan_kswapd") {
            samples.push(counter("vmstat", "vm", "pgscan_kswapd", 0.0));
        }
        let delays = prstat::Delays { swap_in: second * 300_000_000, ..prstat::Delays::default() };
        Moment {
            counters: Snapshot::new(second * 1_000_000_000, samples),
            delays: [(8, delays)].into(),
            ..Moment::default()
        }
    };
    (at(1), at(2))
}

fn report(some: f64, refaults: f64, free: f64) -> Report {
    report_with(some, refaults, free, &[])
}

fn report_with(some: f64, refaults: f64, free: f64, more: &[Sample]) -> Report {
    let (before, now) = moments_with(some, refaults, free, more);
    examine(&before, &now, &Snapshot::default(), 4096)
}

fn gauge(module: &'static str, instance: u64, name: &str, statistic: &'static str, value: f64) -> Sample {
    Sample::new(module, instance, name, statistic, value, Kind::Gauge)
}

fn counter(module: &'static str, instance: u64, name: &str, statistic: &'static str, rate: f64) -> Sample {
    Sample::new(module, instance, name, statistic, rate, Kind::Counter)
}

#[test]
fn the_headline_names_whose_memory_is_short() {
    let short = report(30.0, 900.0, 1000.0).verdict;
    assert_eq!(
        (short.machine, short.level, short.limited[0].level),
        (Level::Fine, Level::Short, Level::Short)
    );
    assert_eq!(short.headline(), "cgroup /db is SHORT of memory; the machine is not (75% available)");
    assert_eq!(
        report(2.0, 90.0, 1000.0).verdict.headline(),
        "cgroup /db is strained for memory; the machine is not (75% available)"
    );
    assert_eq!(report(0.0, 0.0, 1000.0).verdict.headline(), "Memory is not short (75% available)");
    // The machine reclaims by itself.
    let kswapd = counter("vmstat", 0, "vm", "pgscan_kswapd", 1900.0);
    let machine = report_with(30.0, 900.0, 1000.0, &[kswapd]).verdict;
    assert_eq!(machine.machine, Level::Short);
    assert_eq!(machine.headline(), "the machine is SHORT of memory (75% available)");
    // A cgroup's kills are its own; the machine's are not.
    let kill = |name: &str| counter("vmstat", 0, name, "oom_kill", 1.0);
    let inside = [kill("vm"), counter("cgroup", 2, "/db", "oom_kill", 1.0)];
    let killed = report_with(0.0, 0.0, 1000.0, &inside).verdict;
    assert_eq!(
        (killed.machine, killed.limited[0].level, killed.limited[0].kills),
        (Level::Fine, Level::Short, 1.0)
    );
    assert_eq!(report_with(0.0, 0.0, 1000.0, &[kill("vm")]).verdict.machine, Level::Short);
}

#[test]
fn direct_reclaim_of_cgroups_is_counted_beside_the_global_one() {
    let verdict = report(30.0, 900.0, 1000.0).verdict;
    let value = |sign: &str| verdict.evidence.iter().find(|e| e.sign == sign).unwrap().value;
    assert_eq!(value("cgroup limits met"), Some(50.0));
    assert_eq!(value("direct reclaim stalls, global"), None, "this machine does not count them");
}

#[test]
fn every_short_cgroup_has_its_holders_and_its_advice() {
    let group = |statistic, value| gauge("cgroup", 2, "/cache", statistic, value);
    let grows = |statistic, rate| counter("cgroup", 2, "/cache", statistic, rate);
    let more = [
        group("current", 6e7),
        group("max", 6.4e7),
        group("file", 5e7),
        group("shmem", 1.5e7),
        group("file_mapped", 1e6),
        group("slab", 4e6),
        grows("max_events", 20.0),
        grows("workingset_refault_file", 2000.0),
    ];
    let report = report_with(30.0, 1200.0, 1000.0, &more);
    let verdict = &report.verdict;
    assert_eq!(
        verdict.headline(),
        "cgroups /cache and /db are SHORT of memory; the machine is not (75% available)"
    );
    let held = |n: usize| -> Vec<(&str, f64)> {
        verdict.limited[n].holding.iter().map(|h| (h.name.as_str(), h.total.unwrap())).collect()
    };
    assert_eq!(held(0), [("page cache", 3.4e7), ("shared memory", 1.5e7), ("slab", 4e6)]);
    assert_eq!(held(1).len(), 2);
    let advised = |what: &str| report.relief.iter().any(|advice| advice.contains(what));
    assert!(
        advised("memory.max of the cgroup /cache") && advised("memory.max of the cgroup /db"),
        "{:?}",
        report.relief
    );
    assert!(advised("ipcs") && advised("process 7"), "{:?}", report.relief);
}

#[test]
fn the_machines_holders_are_not_processes_alone() {
    let more = [
        gauge("meminfo", 0, "mem", "Cached", 3e9),
        gauge("meminfo", 0, "mem", "Mapped", 5e8),
        gauge("meminfo", 0, "mem", "Shmem", 1e8),
        gauge("meminfo", 0, "mem", "Slab", 3e8),
    ];
    let report = report_with(0.0, 0.0, 1000.0, &more);
    let names: Vec<&str> = report.holding.iter().map(|h| h.name.as_str()).collect();
    assert_eq!(names, ["page cache", "task", "slab", "shared memory", "task"]);
}

#[test]
fn swapoff_is_not_advised_while_memory_is_short() {
    let swap = [gauge("meminfo", 0, "mem", "SwapTotal", 1e9), gauge("meminfo", 0, "mem", "SwapFree", 1e8)];
    let remedy = |some: f64| {
        let report = report_with(some, 900.0, 1000.0, &swap);
        report.fitness.into_iter().find(|check| check.what == "swap of the machine").unwrap().remedy
    };
    assert!(
        report_with(0.0, 0.0, 1000.0, &swap).fitness.iter().any(|check| check.remedy.contains("swapoff"))
    );
    assert!(!remedy(30.0).contains("swapoff") && !remedy(30.0).is_empty(), "{}", remedy(30.0));
}

#[test]
fn without_evidence_the_answer_is_unknown_with_the_reason() {
    let empty = Moment { counters: Snapshot::new(1_000_000_000, Vec::new()), ..Moment::default() };
    let report = examine(&Moment::default(), &empty, &Snapshot::default(), 4096);
    assert_eq!((report.verdict.level, report.verdict.machine), (Level::Unknown, Level::Unknown));
    let why = "neither /proc/pressure/memory nor /proc/vmstat can be read";
    assert_eq!(report.verdict.headline(), format!("Whether memory is short is unknown: {why}"));
    assert!(report.relief.is_empty(), "{:?}", report.relief);
    assert!(report.verdict.evidence.iter().all(|e| e.value != Some(0.0) && e.level != Level::Short));
    // One that is missing takes nothing from the others.
    let (mut before, mut now) = moments_with(30.0, 900.0, 1000.0, &[]);
    for moment in [&mut before, &mut now] {
        let kept = moment.counters.samples().iter().filter(|s| s.module != "vmstat").cloned().collect();
        moment.counters = Snapshot::new(moment.counters.at_ns, kept);
    }
    let mut verdict = examine(&before, &now, &Snapshot::default(), 4096).verdict;
    assert_eq!(verdict.level, Level::Short);
    verdict.doubt("whatever");
    assert_eq!(verdict.level, Level::Short, "a shortage that was seen is no doubt");
}

#[test]
fn earlier_events_and_growing_processes_are_reported() {
    let more = [
        gauge("vmstat", 0, "vm", "oom_kill", 3.0),
        gauge("cgroup", 2, "/db", "oom_kill", 2.0),
        gauge("pressure", 0, "memory", "some_avg300", 4.5),
        gauge("system", 0, "clock", "uptime", 500e9),
        counter("process", 7, "task", "rss", 9e7),
        counter("stat", 0, "all", "forks", 400.0),
    ];
    let report = report_with(0.0, 0.0, 1000.0, &more);
    assert_eq!(report.verdict.machine, Level::Fine, "it is over");
    let machine = Recent { kills: 3.0, pressure: Some(4.5), within: Some(500.0), ..Recent::default() };
    assert_eq!(report.recent[0], machine);
    assert_eq!((report.recent[1].cgroup.as_deref(), report.recent[1].kills), (Some("/db"), 2.0));
    assert!(report.growing.iter().any(|g| g.pid == 7 && g.rate == 9e7), "{:?}", report.growing);
    assert_eq!(report.forks.as_ref().map(|f| f.rate), Some(400.0));
}

#[test]
fn a_machine_without_signs_is_fine_whatever_it_reclaims() {
    let report = report(0.0, 50.0, 1000.0);
    assert_eq!(report.verdict.level, Level::Fine);
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
        assert_eq!(
            report(some, refaults, free).verdict.level,
            level,
            "{some}% {refaults} refaults {free} free"
        );
    }
}

#[test]
fn a_cgroups_shortage_is_laid_at_its_own_door() {
    let report = report(30.0, 900.0, 1000.0);
    assert_eq!((report.verdict.limited[0].path.as_str(), report.verdict.limited[0].met), ("/db", 50.0));
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
fn unfit_conditions_have_a_remedy() {
    let report = report(0.0, 0.0, 1000.0);
    assert!(report.fitness.iter().any(|c| c.what == "pressure information" && c.fit));
    assert!(report.fitness.iter().all(|c| c.fit == c.remedy.is_empty()));
}
