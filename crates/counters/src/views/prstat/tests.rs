//! Rows of prstat from samples, and their invariants.

use super::*;
use crate::value::Kind;
use crate::views::Width;

fn task(module: &'static str, number: u64, values: &[(&'static str, u64)]) -> Vec<Sample> {
    let sample = |(statistic, value): &(&'static str, u64)| {
        Sample::new(module, number, "db", statistic, *value, Kind::Counter)
    };
    values.iter().map(sample).collect()
}

const MS: u64 = 1_000_000;

fn moment(seconds: u64, run: [u64; 2], swap_in: u64) -> Moment {
    let mut samples = task("process", 7, &[("threads", 2), ("major_faults", swap_in / MS), ("rss", 4096)]);
    for (tid, run) in [7, 8].into_iter().zip(run) {
        let values = [
            ("pid", 7),
            ("run_time", run),
            ("utime", run / 4),
            ("stime", run / 4 * 3),
            ("run_delay", run / 2),
        ];
        samples.extend(task("thread", tid, &values));
    }
    let delays = Delays { swap_in, thrashing: Some(swap_in / 2), reclaim: 10 * MS, ..Delays::default() };
    let counters = Snapshot::new(seconds * 1_000_000_000, samples);
    Moment { counters, delays: [(7, delays)].into(), ..Moment::default() }
}

#[test]
fn states_are_shares_of_the_threads_time() {
    let row = &rows(&moment(0, [0, 0], 0), &moment(1, [400 * MS, 0], 1000 * MS), false)[0];
    assert_eq!((row.usr, row.sys, row.lat), (5.0, 15.0, 10.0));
    assert_eq!(row.dfl, Some(50.0), "thrashing overlaps swap-in, and reclaim did not grow");
    assert_eq!((row.slp, row.threads, row.major_faults), (20.0, 2, 1000.0));
    assert!(
        row.microstates("root", Width::Whole).contains(" 50.0    - 20.0 10.0 "),
        "{}",
        row.microstates("root", Width::Whole)
    );
}

#[test]
fn traced_faults_of_threads_count_for_their_process() {
    let (mut before, mut now) = (moment(0, [0, 0], 0), moment(1, [200 * MS, 0], 0));
    let of = |calls, lock| Traced { calls, lock_wait: lock, ..Traced::default() };
    before.traced = Some([(7, of(1_000, 0)), (8, of(7, 100 * MS))].into());
    now.traced = Some([(7, of(2_001_000, 0)), (8, of(7, 1100 * MS)), (9, of(5, 5))].into());
    let row = &rows(&before, &now, false)[0];
    assert_eq!((row.scl, row.sig, row.lck, row.tfl), (Some(2e6), Some(0.0), Some(50.0), Some(0.0)));
    assert!((row.slp - 35.0).abs() < 1e-9, "waiting for locks is not asleep: {row:?}");
    assert!(
        row.microstates("root", Width::Whole).contains(" 2000K   0 db/2"),
        "{}",
        row.microstates("root", Width::Whole)
    );
    let threads = rows(&before, &now, true);
    assert_eq!(threads.iter().find(|t| t.tid == Some(8)).unwrap().lck, Some(100.0));
}

#[test]
fn a_process_accounted_as_a_whole_has_the_row_that_its_threads_give() {
    let (mut before, mut now) = (moment(0, [0, 100 * MS], 0), moment(1, [400 * MS, 100 * MS], 1000 * MS));
    let wanted = rows(&before, &now, false);
    for (moment, run) in [(&mut before, 100 * MS), (&mut now, 500 * MS)] {
        let mut samples = moment.counters.module("process").to_vec();
        samples.extend(task("process", 7, &[("utime", run / 4), ("stime", run / 4 * 3)]));
        moment.counters = Snapshot::new(moment.counters.at_ns, samples);
        let account = Account { run_time: run, run_delay: run / 2, ..Account::default() };
        moment.accounts = Some([(7, account)].into());
    }
    assert_eq!(rows(&before, &now, false), wanted);
    // A thread of it that ended is in its row; a process that ended is not.
    let exit = |task, process, cpu| Exit { task, process: Some(process), cpu, ..Exit::default() };
    now.exits = Some(vec![exit(9, 7, 50 * MS), exit(20, 20, 3 * MS), exit(21, 20, 4 * MS)]);
    assert_eq!(ended(&before, &now).unwrap().cpu, Some(7e6));
    now.exits = Some(vec![exit(8, 7, 50 * MS), exit(7, 7, 60 * MS)]);
    assert_eq!(ended(&before, &now).unwrap().cpu, Some(10e6), "less the 100 ms before");
}

#[test]
fn a_task_without_accounting_has_a_dash() {
    let (mut before, mut now) = (moment(0, [0, 0], 0), moment(1, [0, 100 * MS], 0));
    before.delays.clear();
    now.delays.clear();
    let row = &rows(&before, &now, true)[0];
    assert_eq!((row.tid, row.dfl), (Some(8), None));
    assert_eq!((row.usr, row.sys, row.slp), (2.5, 7.5, 85.0));
}

#[test]
fn a_task_of_unknown_delay_is_ordered_by_its_major_faults() {
    let row = |pid, dfl, major_faults| Row { pid, dfl, major_faults, ..Row::default() };
    let rows =
        [row(1, Some(0.0), 0.0), row(2, Some(0.3), 40.0), row(3, None, 5000.0), row(4, Some(60.0), 9.0)];
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by(|a, b| b.waits_longer(a));
    assert_eq!(sorted.iter().map(|row| row.pid).collect::<Vec<_>>(), [4, 3, 2, 1]);
}

#[test]
fn a_task_born_within_the_interval_is_judged_by_its_time_since_birth() {
    let uptime = |seconds: f64| Sample {
        name: "clock".into(),
        ..task("system", 0, &[("uptime", (seconds * 1e9) as u64)])[0].clone()
    };
    let mut samples = task("process", 9, &[("threads", 1), ("start", 100_750 * MS), ("major_faults", 5)]);
    let runs = [("pid", 9), ("start", 100_750 * MS), ("run_time", 250 * MS), ("utime", 10 * MS)];
    samples.extend(task("thread", 9, &runs));
    samples.push(uptime(101.0));
    let now = Moment { counters: Snapshot::new(1_000_000_000, samples), ..Moment::default() };
    let before = Moment { counters: Snapshot::new(0, vec![uptime(100.0)]), ..Moment::default() };
    for by_thread in [false, true] {
        let row = &rows(&before, &now, by_thread)[0];
        assert_eq!((row.usr, row.slp, row.seconds), (100.0, 0.0, 0.25), "{row:?}");
    }
    assert_eq!(rows(&before, &now, false)[0].major_faults, 20.0, "a second");
}

#[test]
fn what_ended_within_the_interval_is_summed_up() {
    let (before, mut now) = (moment(0, [100 * MS, 0], 0), moment(1, [100 * MS, 0], 0));
    let exit = |task, command: &str, cpu| Exit { task, command: command.into(), cpu, ..Exit::default() };
    assert_eq!(ended(&before, &now), None, "nobody counts forks here");
    now.exits = Some(vec![exit(7, "db", 150 * MS), exit(20, "sh", 3 * MS), exit(21, "sh", 4 * MS)]);
    let found = ended(&before, &now).unwrap();
    assert_eq!((found.tasks, found.cpu), (3, Some(57e6)), "less what was known of it before");
    assert_eq!(found.line(), "ended within the interval: 3 tasks, 0.06 s on a CPU (sh 2, db 1)");
    now.exits = Some(Vec::new());
    assert_eq!(ended(&before, &now), None);
    // The parents' counts of their children have what the exits' accounts missed, less what was
    // known before.
    let parent = |seconds: u64, children: u64, dead: bool| {
        let counters = moment(seconds, [0, 0], 0).counters;
        let mut samples = counters.samples().to_vec();
        samples.extend(task("process", 7, &[("cutime", children * MS), ("cstime", children * MS)]));
        if dead {
            let times = [("utime", 20 * MS), ("stime", 0), ("cutime", 5 * MS), ("cstime", 5 * MS)];
            samples.extend(task("process", 9, &times));
        }
        Moment { counters: Snapshot::new(counters.at_ns, samples), ..Moment::default() }
    };
    let after = Moment { exits: Some(vec![exit(9, "sh", 21 * MS)]), ..parent(1, 100, false) };
    assert_eq!(ended(&parent(0, 10, true), &after).unwrap().cpu, Some(150e6), "2 * 90 ms less 30");
    assert_eq!(ended(&parent(0, 100, true), &after).unwrap().cpu, Some(21e6), "not waited for yet");
    now.exits = Some(vec![exit(7, "db", 0)]);
    let text = ended(&moment(0, [100 * MS, 0], 0), &now).unwrap().line();
    assert!(text.contains(", 0.00 s on a CPU"), "{text}");
    // Without the kernel's word: five were forked, and one is there more.
    let forks = |n| Sample { name: "all".into(), ..task("stat", 0, &[("forks", n)])[0].clone() };
    let with = |samples: &[Sample], more: &[Sample]| {
        let counters = Snapshot::new(0, [samples, more].concat());
        Moment { counters, ..Moment::default() }
    };
    let before = with(&task("thread", 1, &[("start", 1)]), &[forks(10)]);
    let after = [task("thread", 2, &[("start", 2)]), task("thread", 3, &[("start", 3)])].concat();
    let found = ended(&before, &with(&after, &[forks(15)])).unwrap();
    assert_eq!((found.tasks, found.cpu), (4, None));
    assert_eq!(found.line(), "ended within the interval: 4 tasks (db 1, …)");
}

#[test]
fn lines_fit_eighty_columns() {
    let row = Row {
        pid: 4_194_304,
        command: "a-command-of-16".into(),
        threads: 1234,
        vcx: 123_456.0,
        icx: 9_999_999.0,
        scl: Some(1e9),
        sig: Some(1234.0),
        slp: 100.0,
        rss: Some(3e12),
        minor_faults: 1_234_567.0,
        ..Row::default()
    };
    let narrow = Width::of(Some(80), 100);
    for line in [row.microstates("a-long-user", narrow), row.summary("a-long-user", narrow)] {
        assert!(line.chars().count() <= 80 && line.ends_with("…/1234"), "{line}");
    }
    let heading = microstate_heading(false, narrow);
    assert!(heading.len() <= 80 && summary_heading(false).len() <= 80, "{heading}");
    let usr = |line: &str| line.find("0.0").or(line.find("USR")).unwrap();
    assert_eq!(usr(&heading), usr(&row.microstates("root", narrow)), "{heading}");
}

#[test]
fn sizes_are_short() {
    let sizes = [Some(4096.0), Some(1.5e6), Some(25e6), Some(3e9), None].map(size);
    assert_eq!(sizes, ["4K", "1.4M", "24M", "2.8G", "-"]);
}
