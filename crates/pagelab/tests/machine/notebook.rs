//! From a run to its listing, comparison, page, export and import, through the binary.

use crate::common::Lab;
use pagelab_testing::{LIMITS, STRACE, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        a_run_is_kept_shown_exported_and_imported: LIMITS;
        two_settings_are_interleaved_and_told_apart: LIMITS;
        the_kernel_and_models_perform_the_same_stream: LIMITS;
        models_are_compared_exactly;
        a_repetition_is_one_transaction: STRACE;
        nothing_is_synced_while_the_worker_measures: LIMITS, STRACE;
        a_studys_experiments_are_run_on_several_targets_as_often_as_one_likes;
        the_report_is_one_small_page_without_network: LIMITS;
        a_foreign_file_is_refused_and_not_touched;
        a_program_that_grew_has_a_change_point_and_fails_the_gate;
    }
}

const SMALL: &str = "run mapanon --pages 4096 --references 40000 --pattern uniform --memory 12M --html none";

fn a_run_is_kept_shown_exported_and_imported() {
    let lab = Lab::new();
    let result = lab.json(&format!("{SMALL} --name first --repeat 2 --json"));
    let run = &result["result"]["runs"][0];
    assert_eq!(run["name"], "first");
    let metrics = &run["repetitions"][0]["metrics"];
    let figure = |name: &str| metrics[name]["value"].as_f64().unwrap();
    assert!(figure("faults.major") > 100.0, "it paged for real");
    assert!(figure("access.major.p50") > 0.0 && figure("access.hit.p50") > 0.0);
    // 12 MiB hold 3,072 pages; the cgroup also pays for page tables.
    assert!((1500.0..3073.0).contains(&figure("pages.present")), "{}", figure("pages.present"));
    assert!(figure("time.elapsed") > 0.0 && figure("time.system") > 0.0);

    lab.shows("show first", &["access.major.p50"]);
    let listed = lab.json("list --json");
    assert_eq!(listed["runs"][0]["done"], 2);

    let exported: serde_json::Value = serde_json::from_str(&lab.ok("export first --format json")).unwrap();
    let run = &exported["runs"][0];
    let repetition = &run["repetitions"][0]["observations"];
    let windows = repetition["tables"].as_array().unwrap().iter().find(|t| t["name"] == "windows").unwrap();
    let rows = windows["columns"][0]["values"]["number"].as_array().unwrap().len();
    assert!(rows >= 200, "{rows} windows");
    let histogrammed: u64 = repetition["histograms"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|h| h["name"].as_str().unwrap().starts_with("access."))
        .flat_map(|h| h["buckets"].as_array().unwrap())
        .map(|b| b[1].as_u64().unwrap())
        .sum();
    assert_eq!(histogrammed, 40_000, "every reference is in exactly one histogram");

    assert!(lab.ok("export first --format csv").lines().count() > 100);
    lab.ok("export first --format parquet -o first.parquet");
    assert_eq!(&std::fs::read(lab.path("first.parquet")).unwrap()[..4], b"PAR1");

    lab.ok("--notebook other.db import pagelab.db");
    assert_eq!(lab.json("--notebook other.db list --json")["runs"][0]["name"], "first");
    lab.shows("--notebook other.db import pagelab.db", &["known already"]);
}

fn two_settings_are_interleaved_and_told_apart() {
    let lab = Lab::new();
    lab.ok(&format!("{SMALL} --repeat 8 --name side --on host,memory=8M --on host,memory=64M"));
    lab.shows("compare side-1 side-2", &["better", "%"]);
    // The larger memory as the baseline: the smaller one is a regression.
    let failed = lab.output("compare side-2 side-1 --fail-on 10");
    assert_eq!(failed.status.code(), Some(1));
    let failed = lab.output("compare side-2 side-1 --fail-on 10%");
    assert_eq!(failed.status.code(), Some(1), "with the sign as well");
    // Whoever reads the comparison may be gone before it is printed.
    for _ in 0..5 {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = lab.command("compare side-2 side-1 --fail-on 10 --all").stdout(writer).status().unwrap();
        assert_eq!(status.code(), Some(1), "with a closed pipe");
    }
    lab.ok("compare side-1 side-2 --fail-on 10");
    // Another metric decides where one is named; pages present only describe.
    lab.ok("compare side-2 side-1 --fail-on 10 --metric pages.present");
    lab.refuses("compare side-2 side-1 --fail-on 10 --metric pages.presnt", 2, &["pages.presnt"]);
    let json = lab.json("compare side-1 side-2 --json");
    assert_eq!(json["schema_version"], 1);

    // A B B A: the second repetition of the second side began before that of the first.
    let exported: serde_json::Value =
        serde_json::from_str(&lab.ok("export side-1 side-2 --format json")).unwrap();
    let started = |run: usize, repetition: usize| {
        exported["runs"][run]["repetitions"][repetition]["started"].as_str().unwrap().to_owned()
    };
    assert!(started(0, 0) < started(1, 0) && started(1, 1) < started(0, 1));
}

fn the_kernel_and_models_perform_the_same_stream() {
    let lab = Lab::new();
    let all = format!("{SMALL} --name x --on host --on model:linux-lru --on model:lru --on model:opt --json");
    let result = lab.json(&all);
    let faults = |run: usize| {
        result["result"]["runs"][run]["repetitions"][0]["metrics"]["faults.major"]["value"].as_f64().unwrap()
    };
    assert!(faults(0) > 100.0 && faults(1) > 100.0);
    assert!(faults(3) <= faults(2) && faults(3) <= faults(1), "OPT has the fewest");
    let verdict = result["result"]["verdict"].to_string();
    assert!(verdict.contains("OPT (offline optimum) would have had"), "{verdict}");
    // The costs that the host measured make the models' times this machine's.
    let costed = lab.json(&format!("{SMALL} --on model:lru --costs x-1 --json"));
    let cost = |result: &serde_json::Value, kind: &str| {
        result["result"]["runs"][0]["repetitions"][0]["metrics"][format!("access.{kind}.p50")]["value"]
            .as_f64()
            .unwrap()
    };
    let (measured, modelled) = (cost(&result, "major"), cost(&costed, "major"));
    assert!((modelled / measured - 1.0).abs() < 0.05, "{modelled} instead of {measured}");
}

fn models_are_compared_exactly() {
    let lab = Lab::new();
    lab.ok(&format!("{SMALL} --name x --on model:opt --on model:lru"));
    let text = lab.shows("compare x-1 x-2", &["slower than", "exact"]);
    for statistics in ["repeat", "interval", "p value", "inconclusive", "interleaved"] {
        assert!(!text.contains(statistics), "{statistics}: {text}");
    }
    let compared = &lab.json("compare x-1 x-2 --json")["comparisons"][0];
    assert_eq!((&compared["exact"], &compared["primary"]), (&true.into(), &"access.mean".into()));
    let findings = lab.json("show x-1 --json");
    let finding = &findings["result"]["findings"][0];
    assert_eq!(finding["finding"], "access-time");
    assert_eq!(finding["figures"][0]["name"], "access.mean");
}

/// The system calls of a run that wait for the disk, start programs or end them, one per line.
fn calls(lab: &Lab, arguments: &str) -> Vec<String> {
    lab.system_calls(arguments, "fsync,fdatasync,sync_file_range,msync,sync,syncfs,execve,exit_group")
}

fn syncs(calls: &[String]) -> usize {
    calls.iter().filter(|call| call.contains("sync") && call.contains('(')).count()
}

fn a_repetition_is_one_transaction() {
    let lab = Lab::new();
    let run = "run mapanon --pages 1024 --references 2000 --memory 2M --on model:lru --html none -q";
    // Makes the notebook.
    lab.ok(run);
    let once = syncs(&calls(&lab, run));
    let three = syncs(&calls(&lab, &format!("{run} --repeat 3")));
    assert!((2..=10).contains(&once), "{once} for one repetition");
    assert!(three - once <= 2 * 4, "{three} for three repetitions, {once} for one");
}

fn nothing_is_synced_while_the_worker_measures() {
    let lab = Lab::new();
    let run = "run mapanon --pages 4096 --references 40000 --pattern uniform --memory 12M --swap file \
               --html none -q";
    lab.ok(run);
    let calls = calls(&lab, run);
    // Where the kernel killed the first worker for want of memory, there is a second.
    let workers = calls.iter().filter(|call| call.contains("__worker")).count();
    let worker = calls.iter().rposition(|call| call.contains("__worker")).unwrap();
    let process = calls[worker].split_whitespace().next().unwrap();
    let ends = |call: &String| call.starts_with(process) && call.contains("exit_group(");
    let end = calls.iter().position(ends).expect("the worker ends");
    assert!(worker < end && syncs(&calls[..worker]) > 0 && syncs(&calls[end..]) > 0);
    assert_eq!(syncs(&calls[worker..end]), 0, "{:#?}", &calls[worker..end]);
    assert!(syncs(&calls) <= 8 + 2 * workers, "{calls:#?}");
}

fn a_studys_experiments_are_run_on_several_targets_as_often_as_one_likes() {
    let lab = Lab::new();
    let study = "run --study gorman-2002 --on model:lru --on model:opt -q --html study.html";
    let text = lab.ok(study);
    for part in ["in-order-fits", "shuffled-fits", "in-order-twice", "shuffled-twice"] {
        assert!(text.contains(&format!("gorman-2002-{part}-2")), "{text}");
    }
    // Eight runs: each has its sentence, none its table.
    assert!(text.lines().count() < 60 && !text.contains("access.p50"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let page = std::fs::read_to_string(lab.path("study.html")).unwrap();
    for part in ["in-order-fits", "shuffled-twice"] {
        let compared = format!("gorman-2002-{part}-2 (model:opt) against gorman-2002-{part}-1 (model:lru)");
        assert!(page.contains(&compared), "no table: {compared}");
    }
    // A second time beside the first, and under another limit.
    lab.ok(&format!("{study} --memory 1000p"));
    let again = lab.json("show gorman-2002-2-shuffled-fits-1 --json");
    assert_eq!(again["result"]["runs"][0]["setting"]["memory"], "1000p");
    let misses = |run: &str| {
        let shown = lab.json(&format!("show {run} --json"));
        let metrics = &shown["result"]["runs"][0]["repetitions"][0]["metrics"];
        metrics["faults.major"]["value"].as_f64().unwrap()
    };
    let (fits, twice) = ("gorman-2002-shuffled-fits-1", "gorman-2002-2-shuffled-fits-1");
    assert!(misses(twice) > misses(fits) + 1000.0);
}

fn the_report_is_one_small_page_without_network() {
    let lab = Lab::new();
    lab.ok(&format!("{SMALL} --name <script>alert(1)</script>"));
    lab.ok("report @1 -o page.html");
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.len() < 400_000, "{} bytes", page.len());
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"));
}

fn a_foreign_file_is_refused_and_not_touched() {
    let lab = Lab::new();
    for (name, bytes) in [("text.db", b"not a notebook".to_vec()), ("zero.db", vec![0; 4096])] {
        std::fs::write(lab.path(name), &bytes).unwrap();
        for command in ["list", "show @1", "run mapanon --pages 16 --references 16 --memory none --html none"]
        {
            lab.refuses(&format!("--notebook {name} {command}"), 3, &[name]);
        }
        assert_eq!(std::fs::read(lab.path(name)).unwrap(), bytes);
    }
    lab.refuses("list", 3, &["pagelab run"]);
}

fn a_program_that_grew_has_a_change_point_and_fails_the_gate() {
    let lab = Lab::new();
    let write = |megabytes: u32| {
        let load = format!("head -c {megabytes}000000 /dev/zero | tail -c {megabytes}000000 >/dev/null\n");
        std::fs::write(lab.path("load.sh"), load).unwrap();
    };
    write(4);
    for run in 0..12 {
        if run == 6 {
            write(8);
        }
        lab.ok(&format!("run command --memory none --html none -q --revision r{run} -- sh load.sh"));
    }
    let by = "history command --metric faults.minor,memory.peak --by revision";
    lab.shows(by, &["faults.minor got worse by", "between r5 and r6", "12 points"]);
    let json = lab.json(&format!("{by} --json"));
    let series = &json["series"][0];
    assert_eq!(series["name"], "command -- sh load.sh on host, memory=none");
    let [change] = series["metrics"][0]["changes"].as_array().unwrap().as_slice() else { panic!("{series}") };
    // 4 MB more are 977 pages; a tail of 4 MB of 4 holds some more.
    let grown = change["after"].as_f64().unwrap() - change["before"].as_f64().unwrap();
    assert!((700.0..2000.0).contains(&grown), "{grown}");
    assert_eq!((change["from"].as_str(), change["worse"].as_bool()), (Some("r5"), Some(true)));
    lab.fails(&format!("{by} --fail-on-new-change"), 1);
    lab.ok(&format!("{by} --fail-on-new-change --since 2100-01-01"));
    lab.shows(&format!("{by} --since 2100-01-01"), &["No new change of faults.minor"]);
    lab.ok(&format!("{by} --html history.html -q"));
    assert!(lab.text("history.html").contains("r6: "), "the plot marks the change");
    // Without a metric, time decides: what a loaded machine says of it is not known beforehand.
    lab.shows("history", &["time.elapsed"]);
    lab.refuses("history nothing", 3, &["no run of nothing"]);
    lab.refuses("history command --metric faults.minr", 2, &["faults.minr: no run measured it"]);
    lab.refuses("history --since yesterday", 2, &["must be a date"]);
}
