//! `mapanon --evictions`: logs of a kernel and a model are complete and judged. `fuzz-reclaim`: a load
//! on which two targets differ is found.

use crate::common::{Lab, joined};
use pagelab_testing::{KERNELS, LIMITS, ROOT, Test, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        a_loop_on_a_model_evicts_the_oldest_page_and_says_so;
        the_log_of_this_kernel_is_complete: LIMITS;
        the_log_of_a_file_is_complete: ROOT, LIMITS;
        the_log_of_a_guest_is_complete_and_shows_who_freed_each_page: KERNELS;
        the_log_of_a_file_in_a_guest_is_complete: KERNELS;
        khugepaged_charges_no_memory_of_pagelab_to_the_limit: KERNELS;
        the_log_of_a_file_on_a_model_is_complete;
        evictions_are_refused_where_they_cannot_be_seen;
        a_load_on_which_two_models_differ_is_found_and_can_be_run_again;
        a_fuzzer_refuses_what_it_cannot_compare;
    }
}

/// A load of twice the memory.
const LOAD: &str = "run mapanon --pages 4096 --references 20000 --evictions --html none --json";

fn judgement(result: &Value) -> Value {
    let list = result["result"]["findings"].as_array().unwrap();
    let found = list.iter().find(|finding| finding["finding"] == "evictions");
    found.unwrap_or_else(|| panic!("no judgement in {list:?}"))["judgement"].clone()
}

/// Checks the sums of the log, and the sum of the faults beyond OPT by cause.
fn is_complete(judgement: &Value) {
    let of = |group: &str, name: &str| judgement[group][name].as_i64().unwrap();
    let complete = |name: &str| of("completeness", name);
    let back = complete("resident_first") + complete("returned");
    assert_eq!(back, complete("evictions") + complete("present_last"), "{judgement:#}");
    if judgement["file"] == true {
        // A fault that waits for a page under read-ahead is major too.
        assert!(complete("counted_faults") >= complete("fetched"), "{judgement:#}");
    } else {
        assert_eq!(complete("counted_faults"), complete("fetched"));
    }
    assert_eq!((complete("logged"), complete("contradictions")), (complete("evictions"), 0));
    let regret = |name: &str| of("regret", name);
    let more = ["young", "once", "old", "outside", "unused"].map(regret).iter().sum::<i64>();
    let parts = more - regret("saved") - regret("ahead");
    let number = |name: &str| judgement[name].as_i64().unwrap();
    assert_eq!(parts, number("faults") - number("opt"));
}

fn a_loop_on_a_model_evicts_the_oldest_page_and_says_so() {
    let lab = Lab::new();
    let result = lab.json(&format!("{LOAD} --pattern linear --memory 8M --on model:lru --name loop"));
    let found = judgement(&result);
    is_complete(&found);
    assert_eq!(found["evictions"], 20_000, "LRU misses every reference of a loop");
    assert_eq!((found["rank"].as_f64(), found["ranks"][9].as_u64()), (Some(100.0), Some(20_000)));
    assert_eq!((&found["similar"][0]["jaccard"], &found["similar"][0]["tau"]), (&1.0.into(), &1.0.into()));
    let shown = joined(&lab.ok("show loop"));
    assert!(shown.contains("20,000 evictions; OPT (offline optimum) would have kept"), "{shown}");
    assert!(shown.contains("Faults beyond OPT by cause"), "{shown}");
    let rows = lab.ok("export loop --format evictions");
    assert_eq!(rows.lines().count(), 20_001, "a heading and a row for each eviction");
    // The first reference faults on page 0, and evicts the oldest page, populated 2,048 references
    // ago.
    assert_eq!(rows.lines().nth(1), Some("loop,1,2048,-2047,0,2049,100.000,true,false,,true,false,,"));
    lab.ok("report loop -o loop.html");
    assert!(lab.text("loop.html").contains("Age of evicted pages and of pages in memory"));
}

fn the_log_of_this_kernel_is_complete() {
    let lab = Lab::new();
    let found = judgement(&lab.json(&format!("{LOAD} --pattern uniform --memory 8M")));
    is_complete(&found);
    let evictions = found["evictions"].as_f64().unwrap();
    assert!((3000.0..=20_000.0).contains(&evictions), "{evictions} evictions");
    lab.nothing_is_left("after evictions");
}

/// `mapfile` with the same load.
fn of_a_file(more: &str) -> String {
    LOAD.replace("mapanon", "mapfile") + " --pattern uniform --memory 8M" + more
}

fn the_log_of_a_file_is_complete() {
    let lab = Lab::new();
    // Read-ahead can bring the whole file at each fault.
    let line = "run mapfile --pages 1024 --references 2000 --pattern uniform --memory 3M";
    let found = judgement(&lab.json(&format!("{line} --evictions --html none --json")));
    is_complete(&found);
    assert_eq!(found["file"], true);
    assert!(found["evictions"].as_u64().unwrap() > 1000, "{found:#}");
    lab.nothing_is_left("after evictions of a file");
}

fn the_log_of_a_file_on_a_model_is_complete() {
    let found = judgement(&Lab::new().json(&of_a_file(" --on model:lru")));
    is_complete(&found);
    assert_eq!((&found["file"], &found["similar"][0]["model"]), (&false.into(), &"lru".into()));
}

/// The evictions by this task.
fn by(judgement: &Value, task: &str) -> u64 {
    let list = judgement["by"].as_array().unwrap();
    list.iter().find(|one| one["by"] == task).map_or(0, |one| one["evictions"].as_u64().unwrap())
}

fn the_log_of_a_guest_is_complete_and_shows_who_freed_each_page() {
    let lab = Lab::new();
    for kernel in ["OLD", "NEW"] {
        let target = format!("--on kernel:{kernel},accel=tcg,swap=zram");
        let found = judgement(&lab.json(&format!("{LOAD} --pattern uniform --memory 8M {target}")));
        is_complete(&found);
        let number = |name: &str| found["completeness"][name].as_u64().unwrap();
        // The guest's only other user of memory is pagelab itself.
        let (freed, stolen) = (number("freed"), number("stolen_by_kswapd") + number("stolen_by_tasks"));
        assert!(freed <= stolen && stolen - freed <= stolen / 50, "{freed} of {stolen}: {found:#}");
        let evictions = found["evictions"].as_u64().unwrap();
        assert!(by(&found, "cgroup") * 10 >= evictions * 9, "{kernel}: {:#}", found["by"]);
    }
}

fn the_log_of_a_file_in_a_guest_is_complete() {
    let lab = Lab::new();
    for kernel in ["OLD", "NEW"] {
        let found = judgement(&lab.json(&of_a_file(&format!(" --on kernel:{kernel},accel=tcg"))));
        is_complete(&found);
        let evictions = found["evictions"].as_u64().unwrap();
        assert!(evictions > 1000 && by(&found, "cgroup") * 10 >= evictions * 9, "{kernel}: {found:#}");
    }
}

/// Without read-ahead the load takes longer than khugepaged sleeps. The log has several times 2 MiB,
/// mapped before the limit is in force.
fn khugepaged_charges_no_memory_of_pagelab_to_the_limit() {
    let lab = Lab::new();
    let load = "run mapfile --pages 4096 --references 20000 --pattern zipf:0.8 --memory 8M --evictions";
    let set = "--set /sys/block/vda/queue/read_ahead_kb=0 \
        --set /sys/kernel/mm/transparent_hugepage/enabled=always \
        --set /sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs=1500 \
        --set /sys/kernel/mm/transparent_hugepage/khugepaged/alloc_sleep_millisecs=1 \
        --set /sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan=100000";
    lab.ok(&format!("{load} {set} --html none --name k --on kernel:NEW,accel=icount"));
    let present = lab.kept("k").metric("pages.present").unwrap();
    assert!((1900.0..=2048.0).contains(&present), "{present} pages of 8 MiB");
    let run = lab.json("export k --format json");
    let counters = &run["runs"][0]["repetitions"][0]["observations"]["counters"];
    let list = counters.as_array().unwrap();
    let after = |name: &str| {
        let found = list.iter().find(|one| one["source"] == "memory.stat" && one["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))["after"].as_i64()
    };
    assert_eq!((after("anon_thp"), after("thp_collapse_alloc")), (Some(0), Some(0)));
}

fn evictions_are_refused_where_they_cannot_be_seen() {
    let lab = Lab::new();
    let line = "run mapanon --evictions --html none";
    lab.refuses(&format!("{line} --backing shmem"), 2, &["--evictions", "private anonymous memory"]);
    lab.refuses(&format!("{line} --writes 5%"), 2, &["--evictions", "--touch write"]);
    lab.refuses("run mapfile --evictions --sample 10 --html none", 2, &["--evictions", "--sample"]);
    lab.refuses(&format!("{line} --on model:ws:1000"), 2, &["evictions", "use another policy"]);
    lab.refuses(&format!("{line} --thp always"), 2, &["base pages only"]);
}

fn a_load_on_which_two_models_differ_is_found_and_can_be_run_again() {
    let lab = Lab::new();
    let targets = "--on model:clock --on model:mru";
    let line = format!("fuzz-reclaim {targets} --loads 20 --json");
    let found = lab.json(&line)["fuzz"].clone();
    // OPT has too few faults in some of them.
    assert!((5..=20).contains(&found["loads"].as_u64().unwrap()) && found["failed"] == 0, "{found}");
    let number = |name: &str| found[name].as_f64().unwrap();
    assert!(number("difference").abs() >= 0.9 * number("largest_difference").abs());
    assert!(number("difference").abs() > 0.5 && found["repeats_exactly"] == true, "{found}");
    assert_eq!(lab.json(&line)["fuzz"], found, "the same loads");
    // The load as it is printed has the same faults.
    let load = found["load"].as_str().unwrap();
    lab.ok(&format!("run {load} {targets} --html none"));
    let [first, second] = ["@2", "@1"].map(|run| faults(&lab, run));
    let [of_first, of_second, opt] =
        ["first", "second", "opt"].map(|name| found["figures"][name].as_f64().unwrap());
    assert_eq!((first / opt, second / opt), (of_first, of_second), "{found}");
    let shown = lab.ok(&format!("fuzz-reclaim {targets} --loads 3"));
    assert!(joined(&shown).contains("times OPT's faults, and model:mru"), "{shown}");
    assert!(shown.contains("\npagelab run mapanon --pages "), "{shown}");
}

/// The faults of a run, major and minor.
fn faults(lab: &Lab, run: &str) -> f64 {
    let shown = lab.json(&format!("show {run} --json"));
    let findings = shown["result"]["findings"].as_array().unwrap();
    let figures = || findings.iter().filter_map(|finding| finding["figures"].as_array()).flatten();
    let of = |name: &str| figures().find(|figure| figure["name"] == name).unwrap()["value"].as_f64().unwrap();
    of("faults.major") + of("faults.minor")
}

fn a_fuzzer_refuses_what_it_cannot_compare() {
    let lab = Lab::new();
    lab.refuses("fuzz-reclaim --on model:lru", 2, &["give two targets"]);
    lab.refuses("fuzz-reclaim --on model:lru --on model:no", 2, &["model:no"]);
    let line = "fuzz-reclaim --on model:lru --on model:fifo --loads 3 --instructions";
    lab.refuses(line, 3, &["a figure was missing"]);
    lab.nothing_is_left("after fuzzing");
}
