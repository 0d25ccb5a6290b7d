//! What `export` and `compare` write for other tools, read by those tools, against what the
//! notebook holds.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Lab;
use pagelab_testing::{READERS, Test, reader, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        benchstat_finds_the_same_medians: READERS;
        kcidb_takes_the_tests: READERS;
        perfetto_has_every_figure_over_time: READERS;
        a_gate_is_read_as_junit: READERS;
        dashboards_get_medians_with_their_direction;
        folded_stacks_add_up;
        unwritable_formats_give_the_reason;
    }
}

/// A lab with runs of all kinds in its notebook.
fn lab() -> Lab {
    let lab = Lab::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../notebook/tests/golden/v2.db");
    std::fs::copy(golden, lab.path("pagelab.db")).unwrap();
    lab
}

/// What Python prints as JSON of a file.
fn python(script: &str, file: &Path) -> Value {
    let output = Command::new(reader("python/bin/python")).args(["-c", script]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The repetitions of a run as `show --json` has them: a metric's values.
fn values(lab: &Lab, run: &str, metric: &str) -> Vec<f64> {
    let shown = lab.json(&format!("show {run} --json"));
    let repetitions = shown["result"]["runs"][0]["repetitions"].as_array().unwrap().clone();
    repetitions.iter().filter_map(|r| r["metrics"][metric]["value"].as_f64()).collect()
}

fn benchstat_finds_the_same_medians() {
    let lab = lab();
    let text = lab.ok("export model-1 model-2 --format benchfmt");
    let mut child = Command::new(reader("benchstat"))
        .args(["-col", "run", "-format", "csv", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (csv, warnings) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{warnings}");
    let line = |unit: &str| -> Vec<f64> {
        let table =
            csv.split("\n\n").find(|table| table.contains(unit)).unwrap_or_else(|| panic!("{unit}: {csv}"));
        let row = table.lines().find(|line| line.starts_with("Mapanon/")).unwrap();
        let cells: Vec<&str> = row.split(',').collect();
        [1, 3].iter().map(|&at| cells[at].parse().unwrap()).collect()
    };
    // Its seconds are our nanoseconds.
    for (unit, metric, scale) in
        [("access.mean-sec", "access.mean", 1e-9), ("faults.major", "faults.major", 1.0)]
    {
        let own = ["model-1", "model-2"].map(|run| values(&lab, run, metric)[0] * scale);
        let theirs = line(unit);
        for (own, theirs) in own.iter().zip(&theirs) {
            assert!((own / theirs - 1.0).abs() < 1e-6, "{unit}: {own} and {theirs}");
        }
    }
    // A model repeats itself, and the units say so: benchstat needs no more repetitions then.
    assert!(text.contains("Unit faults.major better=lower assume=exact\n"), "{text}");
    assert!(!csv.contains("need >= 4 samples"), "{csv}");
    // Of one run there is nothing to make columns of.
    assert!(!lab.ok("export paging --format benchfmt").lines().any(|line| line.starts_with("run:")));
}

fn kcidb_takes_the_tests() {
    let lab = lab();
    lab.ok("export paging model-1 failed torn refused-by-program --format kcidb --build maestro:6650a1b2 -o tests.json");
    let validated = python(
        "import json, sys\nfrom kcidb_io import schema\nprint(json.dumps(schema.LATEST.validate(json.load(open(sys.argv[1])))))",
        &lab.path("tests.json"),
    );
    let tests = validated["tests"].as_array().unwrap();
    let ids: std::collections::BTreeSet<&str> = tests.iter().map(|t| t["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), tests.len(), "an id is unique");
    let of = |path: &str| tests.iter().filter(|t| t["path"] == path).collect::<Vec<_>>();
    let whole = of("pagelab.mapanon");
    assert_eq!(whole.iter().map(|t| t["status"].as_str().unwrap()).collect::<Vec<_>>(), ["DONE", "DONE"]);
    assert!(whole[0]["environment"]["misc"]["kernel.release"].is_string(), "{}", whole[0]);
    assert_eq!(of("pagelab.vmtest")[0]["status"], "ERROR");
    assert_eq!(of("pagelab.record")[0]["status"], "MISS");
    assert_eq!(of("pagelab.command")[0]["status"], "ERROR");
    assert!(of("pagelab.command")[0]["log_excerpt"].is_string());
    let time = of("pagelab.mapanon.access_mean")[0];
    let mut own = values(&lab, "paging", "access.mean");
    own.sort_by(f64::total_cmp);
    let median = (own[0] + own[1]) / 2.0 / 1e9;
    assert!((time["number"]["value"].as_f64().unwrap() / median - 1.0).abs() < 1e-9, "{time}");
    assert_eq!((&time["number"]["unit"], &time["status"]), (&"s".into(), &"DONE".into()));
}

fn perfetto_has_every_figure_over_time() {
    let lab = lab();
    lab.ok("export paging recording --format perfetto -o trace");
    let tracks = python(
        r#"
import json, sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
trace = proto.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
names, parents, points = {}, {}, {}
for packet in trace.packet:
    if packet.HasField("track_descriptor"):
        d = packet.track_descriptor
        names[d.uuid], parents[d.uuid] = d.name, d.parent_uuid
    else:
        e = packet.track_event
        assert e.type == proto.TrackEvent.TYPE_COUNTER, e
        points.setdefault(e.track_uuid, []).append([packet.timestamp, e.double_counter_value])
print(json.dumps({names[parents[u]] + "/" + names[u]: p for u, p in points.items()}))
"#,
        &lab.path("trace"),
    );
    let csv = lab.ok("export paging recording --format csv");
    let mut times: BTreeMap<(String, String, String), f64> = BTreeMap::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        // run, repetition, outcome, kind, name, item, row, unit, value
        // Other kinds hold texts with lines and commas of their own.
        if cells.len() < 9
            || cells[3] != "table"
            || !["windows", "counters"].contains(&cells[4].as_str())
            || cells[8].is_empty()
        {
            continue;
        }
        match cells[5].as_str() {
            "time" => {
                let key = (cells[0].clone(), cells[1].clone(), cells[6].clone());
                times.insert(key, cells[8].parse().unwrap());
            }
            _ => rows.push(cells),
        }
    }
    let mut there: usize = 0;
    for cells in &rows {
        let of = if cells[0] == "paging" { format!(", repetition {}", cells[1]) } else { String::new() };
        let track = format!("{}{of}: {}/{}", cells[0], cells[4], cells[5]);
        let time = times[&(cells[0].clone(), cells[1].clone(), cells[6].clone())];
        let value: f64 = cells[8].parse().unwrap();
        let points = tracks[&track].as_array().unwrap_or_else(|| panic!("{track}: {tracks}"));
        let found =
            points.iter().any(|p| p[0].as_f64() == Some(time.floor()) && p[1].as_f64() == Some(value));
        assert!(found, "{track} at {time}: {value} among {points:?}");
        there += 1;
    }
    let all: usize =
        tracks.as_object().unwrap().values().map(|points| points.as_array().unwrap().len()).sum();
    assert!(there > 100 && there == all, "{there} of {all}");
}

fn a_gate_is_read_as_junit() {
    let lab = lab();
    let read = |name: &str| {
        python(
            r#"
import json, sys
from junitparser import JUnitXml
xml = JUnitXml.fromfile(sys.argv[1])
suites = [[s.name, s.tests, s.failures, s.skipped, [[c.name, [type(r).__name__ + ": " + r.message for r in c.result]] for c in s]] for s in xml]
print(json.dumps([[xml.tests, xml.failures], suites]))
"#,
            &lab.path(name),
        )
    };
    // OPT has fewer major faults than LRU: from OPT to LRU they got worse.
    lab.refuses(
        "compare model-2 model-1 --fail-on 1 --metric faults.major,access.mean --junit bad.xml",
        1,
        &["got worse"],
    );
    let bad = read("bad.xml");
    assert_eq!(bad[0], serde_json::json!([2, 2]));
    let failure = bad[1][0][4][0][1][0].as_str().unwrap();
    assert!(failure.starts_with("Failure: worse by ") && failure.contains(" more than 1%"), "{failure}");
    lab.ok("compare model-1 model-2 --fail-on 1 --junit good.xml");
    let good = read("good.xml");
    assert_eq!(good[0], serde_json::json!([1, 0]));
    assert_eq!(good[1][0][4], serde_json::json!([["access.mean", []]]));
    // Too few repetitions are no pass.
    lab.ok("compare paging conditions --fail-on 1 --metric access.mean --junit few.xml");
    let few = read("few.xml");
    let skipped = few[1][0][4][0][1][0].as_str().unwrap_or_else(|| panic!("{few}"));
    assert!(skipped.starts_with("Skipped: inconclusive: ") && few[1][0][3] == 1, "{few}");
    lab.refuses("compare model-1 model-2 --junit x.xml", 2, &["--fail-on"]);
}

fn dashboards_get_medians_with_their_direction() {
    let lab = lab();
    let bmf = lab.json("export model-1 model-1 paging --format bencher");
    let benchmarks = bmf.as_object().unwrap();
    assert_eq!(benchmarks.len(), 3, "the same run twice is two benchmarks: {bmf}");
    for measures in benchmarks.values() {
        for (slug, metric) in measures.as_object().unwrap() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(slug.len() <= 64 && slug.chars().all(plain), "{slug}");
            assert!(metric["value"].is_number() && metric.get("lower_value").is_none(), "{slug}: {metric}");
        }
    }
    let lru = benchmarks.iter().find(|(name, _)| name.contains("model:lru")).unwrap().1;
    assert_eq!(lru["faults-major"]["value"].as_f64(), Some(values(&lab, "model-1", "faults.major")[0]));
    let smaller = lab.json("export forks --format smaller-is-better");
    let bigger = lab.json("export forks --format bigger-is-better");
    let names = |list: &Value| -> Vec<String> {
        let entries = list.as_array().unwrap();
        entries.iter().map(|e| e["name"].as_str().unwrap().split(": ").next().unwrap().to_owned()).collect()
    };
    assert!(names(&bigger).contains(&"forks.rate".to_owned()), "{bigger}");
    assert!(names(&smaller).contains(&"fork.cost".to_owned()), "{smaller}");
    assert!(names(&smaller).iter().all(|name| !names(&bigger).contains(name)));
    assert!(smaller[0]["value"].is_number() && smaller[0]["unit"].is_string(), "{smaller}");
}

fn folded_stacks_add_up() {
    let lab = lab();
    let shown = lab.json("export forks --format json");
    let stored = shown["runs"][0]["repetitions"][0]["observations"]["logs"]
        .as_array()
        .and_then(|logs| logs.iter().find(|log| log[0] == "folded"))
        .and_then(|log| log[1].as_str())
        .unwrap_or_else(|| panic!("{shown}"))
        .to_owned();
    let sum = |text: &str| -> u64 {
        text.lines().map(|l| l.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    let text = lab.ok("export forks --format folded");
    assert_eq!(sum(&text), sum(&stored));
    let two = lab.ok("export forks model-1 --format folded");
    assert!(two.lines().all(|line| line.starts_with("forks;")) && sum(&two) == sum(&text), "{two}");
}

fn unwritable_formats_give_the_reason() {
    let lab = lab();
    let says = |arguments: &str, status: i32, words: &str| {
        lab.refuses(arguments, status, &[words]);
    };
    says("export model-1 --format folded", 3, "there are no stacks in model-1 hint: run with --profile 99");
    says("export model-1 --format evictions", 3, "there is no log of evictions in model-1");
    says("export failed --format perfetto -o x", 3, "nothing was seen over time in failed");
    // github-action-benchmark refuses an empty list.
    let hint = "no metric is better when bigger in model-1 hint: use --format smaller-is-better";
    says("export model-1 --format bigger-is-better", 3, hint);
    says("export model-1 --format bigger-is-better -o bigger.json", 3, hint);
    assert!(!lab.path("bigger.json").exists());
    let hint = "no metric is better when smaller in forks hint: use --format bigger-is-better";
    says("export forks --format smaller-is-better --metric forks.rate", 3, hint);
    lab.json("export model-1 forks --format bigger-is-better");
    says("export torn --format bencher", 3, "no metric was measured in torn");
    says("export model-1 --format kcidb", 2, "add --build ORIGIN:ID");
    says("export model-1 --format kcidb --build Maestro", 2, "write ORIGIN:ID");
    says("export model-1 --build maestro:1", 2, "--build is for --format kcidb");
    says("export model-1 --metric access.mean", 2, "--metric is for the formats of benchmarks");
    says("export model-1 --format bencher --metric no.such", 2, "no run measured it");
    assert!(!lab.path("x").exists(), "nothing half is left");
}
