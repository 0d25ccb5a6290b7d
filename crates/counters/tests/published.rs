//! McDougall's listings of 2005 as readings of our views: what Solaris counted, put into the kernel's counters of
//! today, is computed and printed as he printed it, and judged as he judged it.

use std::collections::HashMap;

use pagelab_counters::views::doctor::{Level, Verdict};
use pagelab_counters::views::iostat::{self, Wait};
use pagelab_counters::views::prstat::{self, Delays, Traced};
use pagelab_counters::views::vmstat::{Layout, Row, heading};
use pagelab_counters::{Kind, Sample, Snapshot};

const VMSTAT: &str = include_str!("../../studies/published/mcdougall-vmstat.csv");
const PRSTAT: &str = include_str!("../../studies/published/mcdougall-prstat.csv");
const IOSTAT: &str = include_str!("../../studies/published/mcdougall-iostat.csv");
const PAGE: f64 = 4096.0;
const SECOND: u64 = 1_000_000_000;
/// `vmstat -p 3`.
const INTERVAL: f64 = 3.0;
/// minfree and lotsfree of his machine, in pages (`kstat -n system_pages`), as a zone's watermarks.
const MIN: f64 = 2000.0;
const LOW: f64 = 8002.0;

/// The rows of a listing by their columns' names.
fn rows(text: &'static str) -> Vec<HashMap<&'static str, &'static str>> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| names.iter().copied().zip(line.split(',')).collect()).collect()
}

/// A figure as it is printed: 1K is about a thousand.
fn number(text: &str) -> f64 {
    match text.strip_suffix('K') {
        Some(thousands) => 1000.0 * thousands.parse::<f64>().unwrap(),
        None => text.parse().unwrap(),
    }
}

/// The moment after so many intervals in which a line's rates held.
fn memory(line: &HashMap<&'static str, &'static str>, intervals: f64) -> Snapshot {
    let of = |column: &str| number(line[column]);
    let pages = |kb: f64| kb * 1024.0 / PAGE;
    let counters = [
        ("pgactivate", of("re")),
        ("pgfault", of("mf")),
        ("pgmajfault", 0.0),
        ("pgscan_anon", 0.0),
        ("pgscan_file", of("sr")),
        ("pgsteal_anon", pages(of("apf"))),
        ("pgsteal_file", pages(of("fpf"))),
        ("pswpin", pages(of("api"))),
        ("pswpout", pages(of("apo"))),
        // The device's sums have swap's among them.
        ("pgpgin", of("fpi") * 1024.0 + of("api") * 1024.0),
        ("pgpgout", of("fpo") * 1024.0 + of("apo") * 1024.0),
    ];
    let mut samples: Vec<Sample> = counters
        .map(|(name, rate)| Sample::new("vmstat", 0, "vm", name, rate * INTERVAL * intervals, Kind::Counter))
        .into();
    let gauges = [
        ("meminfo", "mem", "SwapFree", of("swap") * 1024.0),
        ("meminfo", "mem", "MemAvailable", of("free") * 1024.0),
        ("zoneinfo", "Normal", "free", pages(of("free"))),
        ("zoneinfo", "Normal", "min", MIN),
        ("zoneinfo", "Normal", "low", LOW),
        ("zoneinfo", "Normal", "managed", 512_136.0),
    ];
    samples.extend(gauges.map(|(m, n, s, value)| Sample::new(m, 0, n, s, value, Kind::Gauge)));
    Snapshot::new((INTERVAL * intervals) as u64 * SECOND, samples)
}

#[test]
fn the_listings_of_vmstat_are_computed_and_printed_again() {
    for line in rows(VMSTAT) {
        let row = Row::between(Some(&memory(&line, 1.0)), &memory(&line, 2.0), PAGE as u64, None);
        let printed = row.line(Layout::default());
        let names = heading(Layout::default());
        let names = names.lines().last().unwrap().split_whitespace();
        for (name, cell) in names.zip(printed.split_whitespace()) {
            // What was freed is the sum of its kinds; executables and the deficit have no counter here.
            let expected = match name {
                "fr" => number(line["apf"]) + number(line["fpf"]),
                "de" | "epi" | "epo" | "epf" => {
                    assert_eq!(cell, "-", "{name} of {printed}");
                    continue;
                }
                // Solaris calls it free.
                "avail" => number(line["free"]),
                name => number(line[name]),
            };
            assert!((number(cell) - expected).abs() <= 1.0, "{name} {expected}: {printed}");
        }
    }
}

#[test]
fn the_listings_of_vmstat_are_judged_healthy_and_short() {
    let judged = |system: &str| -> Vec<Level> {
        let lines = rows(VMSTAT).into_iter().filter(|line| line["system"] == system);
        let level = |line| {
            let (before, now) = (memory(&line, 1.0), memory(&line, 2.0));
            Verdict::of(&before, &now, &now.rates_since(&before)).level
        };
        lines.map(level).collect()
    };
    assert!(judged("healthy").iter().all(|level| *level == Level::Fine), "{:?}", judged("healthy"));
    // The listing has neither refaults nor waits; what tells is that the last line's memory is at minfree.
    assert_eq!(judged("short").last(), Some(&Level::Strained), "{:?}", judged("short"));
}

/// The moment when each thread has spent its shares of so many seconds.
fn threads(seconds: f64) -> prstat::Moment {
    let (mut samples, mut delays, mut traced) = (Vec::new(), HashMap::new(), HashMap::new());
    for line in rows(PRSTAT) {
        let ns = |column: &str| number(line[column]) / 100.0 * seconds * 1e9;
        let count = |column: &str| number(line[column]) * seconds;
        let tid: u64 = line["pid"].parse().unwrap();
        let mut add = |statistic: &str, value: f64, kind| {
            samples.push(Sample::new("thread", tid, line["process"], statistic, value, kind));
        };
        add("pid", tid as f64, Kind::Gauge);
        add("start", 0.0, Kind::Gauge);
        for (statistic, value) in [
            ("utime", ns("USR")),
            ("stime", ns("SYS")),
            ("run_delay", ns("LAT")),
            ("voluntary_switches", count("VCX")),
            ("involuntary_switches", count("ICX")),
        ] {
            add(statistic, value, Kind::Counter);
        }
        delays.insert(tid, Delays { swap_in: ns("DFL") as u64, ..Delays::default() });
        let calls = count("SCL").round() as u64;
        traced.insert(tid, Traced { calls, lock_wait: ns("LCK") as u64, ..Traced::default() });
    }
    let counters = Snapshot::new((seconds * 1e9) as u64, samples);
    prstat::Moment { counters, delays, traced: Some(traced), ..prstat::Moment::default() }
}

#[test]
fn the_rows_of_prstat_are_computed_again_and_the_longest_waits_come_first() {
    let found = prstat::rows(&threads(1.0), &threads(2.0), true);
    let printed = rows(PRSTAT);
    assert_eq!((found.len(), printed.len()), (13, 13));
    for line in &printed {
        let row = found.iter().find(|row| row.tid == Some(line["pid"].parse().unwrap())).unwrap();
        let mut shares = vec![("USR", row.usr), ("SYS", row.sys), ("LAT", row.lat)];
        shares.extend([("DFL", row.dfl.unwrap()), ("LCK", row.lck.unwrap())]);
        for (name, share) in shares {
            assert!((share - number(line[name])).abs() < 0.05, "{name} of {line:?}: {share}");
        }
        // The source's shares are rounded, so what is left of the whole is its sleep within 2%.
        assert!((row.slp - number(line["SLP"])).abs() <= 2.0, "{line:?}: {}", row.slp);
        assert_eq!((row.vcx, row.icx), (number(line["VCX"]), number(line["ICX"])));
        assert_eq!(row.scl, Some(number(line["SCL"])));
    }
    let waits: Vec<f64> = found.iter().map(|row| row.dfl.unwrap()).collect();
    assert!(waits.is_sorted_by(|a, b| a >= b) && waits[0] == 96.0, "{waits:?}");
}

#[test]
fn threads_that_wait_as_printed_are_a_shortage() {
    // Some task waits all the time that the longest does, all of them as long as the shortest.
    let waits: Vec<f64> = rows(PRSTAT).iter().map(|line| number(line["DFL"])).collect();
    let some = waits.iter().copied().fold(0.0, f64::max);
    let full = waits.iter().copied().fold(100.0, f64::min);
    let at = |seconds: f64| {
        let total = |name, percent: f64| {
            Sample::new("pressure", 0, "memory", name, percent * 1e7 * seconds, Kind::Counter)
        };
        Snapshot::new((seconds * 1e9) as u64, vec![total("some_total", some), total("full_total", full)])
    };
    let (before, now) = (at(1.0), at(2.0));
    let verdict = Verdict::of(&before, &now, &now.rates_since(&before));
    assert_eq!((verdict.level, verdict.machine), (Level::Short, Level::Short));
}

#[test]
fn the_rows_of_iostat_are_computed_again() {
    for line in rows(IOSTAT) {
        let of = |column: &str| number(line[column]);
        let device = line["device"];
        let at = |seconds: u64| {
            let grown = |statistic, rate: f64| {
                Sample::new("diskstats", 0, device, statistic, rate * seconds as f64, Kind::Counter)
            };
            let counters = vec![
                grown("reads", of("r/s")),
                grown("writes", of("w/s")),
                grown("read_size", of("kr/s") * 1024.0),
                grown("write_size", of("kw/s") * 1024.0),
                grown("busy_time", of("%b") * 1e7),
                grown("queue_time", (of("wait") + of("actv")) * 1e9),
            ];
            let waited = (of("wait") * 1e9) as u64 * seconds;
            let waits = [(device.to_owned(), Wait { waited, busy: (of("%w") * 1e7) as u64 * seconds })];
            iostat::Moment { counters: Snapshot::new(seconds * SECOND, counters), waits: Some(waits.into()) }
        };
        let row = iostat::rows(Some(&at(10)), &at(20)).remove(0);
        let near = |name: &str, value: f64, most: f64| {
            assert!((value - of(name)).abs() <= most, "{name} of {device}: {value}");
        };
        near("r/s", row.reads, 0.05);
        near("kr/s", row.read_size / 1024.0, 0.05);
        near("kw/s", row.write_size / 1024.0, 0.05);
        near("actv", row.actv, 0.05);
        near("%w", row.percent_wait.unwrap(), 0.5);
        near("%b", row.percent_busy, 0.5);
        // Little's law with one digit of the requests in flight: 44.6 ms of the disk. The floppy's 10.4 ms
        // do not follow from its own row (0.5 in flight at 1.3 a second are 385 ms).
        if device == "c0t0d0" {
            near("asvc_t_ms", row.asvc_t.unwrap() / 1e6, 0.1);
        }
    }
}
