//! The views of the kernel's counters, on this machine and on a recorded one.

mod common;

use common::Lab;

/// A recorded machine.
fn recorded(machine: &str) -> String {
    format!("{}/../counters/tests/fixtures/{machine}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn stat_has_the_habits_of_kstat() {
    let lab = Lab::new();
    let one = lab.ok("stat -p vmstat:0:vm:pgfault");
    let (name, value) = one.trim_end().split_once('\t').unwrap();
    assert_eq!(name, "vmstat:0:vm:pgfault");
    assert!(value.parse::<u64>().unwrap() > 0);
    assert_eq!(lab.ok("stat -l vmstat:::pgfault"), "vmstat:0:vm:pgfault\n");
    assert_eq!(lab.ok("stat -q -m vmstat -s pgfault"), "");
    assert_eq!(lab.output("stat -q nothing").status.code(), Some(1));
    assert_eq!(lab.ok("stat -p -m vmstat -s pgm*fault -c vm").lines().count(), 1);
    assert_eq!(lab.output("stat -m vmstat -c disk").status.code(), Some(1));
    assert_eq!(lab.ok("stat -l vmstat:::/^pgm?a?j?fault$/ 0.05 2").lines().count(), 4);
    let human = lab.ok("stat meminfo:::MemTotal");
    assert!(human.contains("module: meminfo") && human.contains(" bytes"), "{human}");
    assert!(lab.ok("stat --modules").contains("/proc/PID/smaps_rollup"));
    for (wrong, says) in [
        ("stat a:b:c:d:e", "four parts"),
        ("stat vmstat -m vmstat", "exclude"),
        ("stat vmstat:::/(/", "regular expression"),
        ("stat vmstat 0", "from 0.01"),
        ("stat vmstat 1 0.5", "whole number"),
    ] {
        let error = lab.fails(wrong, 2);
        assert!(error.contains(says), "{wrong}: {error}");
    }
}

#[test]
fn stat_as_json_and_as_rates() {
    let lab = Lab::new();
    let json = lab.json("stat --json vmstat:::pgfault");
    let counter = &json["counters"][0];
    assert_eq!(counter["kind"], "counter");
    assert_eq!(counter["unit"], "count");
    assert!(counter["value"].as_u64().unwrap() > 0);
    let rate = lab.ok("stat -p --rate vmstat:::pgfault 0.2 2");
    assert_eq!(rate.lines().count(), 2, "{rate}");
    // Starting pagelab is not counted, reading is: rates stay small numbers, not the total.
    let faults: f64 = rate.lines().last().unwrap().split('\t').nth(1).unwrap().parse().unwrap();
    assert!(faults < counter["value"].as_f64().unwrap());
}

#[test]
fn views_of_a_recorded_machine_are_stable() {
    let lab = Lab::new();
    for machine in ["linux-6.18-cgroup1", "linux-6.12-cgroup2", "linux-4.19"] {
        let root = recorded(machine);
        insta::assert_snapshot!(format!("vmstat_{machine}"), lab.ok(&format!("vmstat --root {root}")));
        insta::assert_snapshot!(format!("iostat_{machine}"), lab.ok(&format!("iostat -xn --root {root}")));
    }
}

#[test]
fn vmstat_prints_a_line_an_interval() {
    let lab = Lab::new();
    let text = lab.ok("vmstat 0.1 3");
    assert_eq!(text.lines().count(), 5, "{text}");
    let json = lab.ok("vmstat --json 0.1 2");
    let rows: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((rows[0]["since_boot"].as_bool(), rows[1]["since_boot"].as_bool()), (Some(true), Some(false)));
    assert!(rows[1]["vmstat"]["free"].as_f64().unwrap() > 1e6);
    assert!(rows[1]["vmstat"]["epi"].is_null());
    assert!(lab.fails("vmstat x", 2).contains("number of seconds"));
}

#[test]
fn a_recorded_machine_can_be_looked_at() {
    let lab = Lab::new();
    assert!(lab.ok("fixture machine vmstat meminfo settings").contains("--root"));
    let name = "meminfo:0:mem:MemTotal";
    assert_eq!(lab.ok(&format!("stat -p {name}")), lab.ok(&format!("stat -p --root machine {name}")));
    assert_eq!(lab.output("stat -q --root machine diskstats").status.code(), Some(1));
    assert!(lab.fails("fixture machine", 3).contains("not empty"));
}
