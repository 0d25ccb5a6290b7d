//! `mapanon --evictions`: logs of a kernel and a model are complete and judged. `fuzz-reclaim`: a load
//! on which two targets differ is found.

use crate::common::{Lab, joined};
use pagelab_testing::{KERNELS, LIMITS, Test, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        a_loop_on_a_model_evicts_the_oldest_page_and_says_so;
        the_log_of_this_kernel_is_complete: LIMITS;
        the_log_of_a_guest_is_complete: KERNELS;
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
    assert_eq!(complete("counted_faults"), complete("returned"));
    assert_eq!((complete("logged"), complete("contradictions")), (complete("evictions"), 0));
    let regret = |name: &str| of("regret", name);
    let parts = regret("young") + regret("once") + regret("old") + regret("outside") - regret("saved");
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
    assert_eq!(rows.lines().nth(1), Some("loop,1,2048,-2047,0,2049,100.000,true,false,,true"));
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

fn the_log_of_a_guest_is_complete() {
    let lab = Lab::new();
    let target = "--on kernel:NEW,accel=tcg,swap=zram";
    is_complete(&judgement(&lab.json(&format!("{LOAD} --pattern uniform --memory 8M {target}"))));
}

fn evictions_are_refused_where_they_cannot_be_seen() {
    let lab = Lab::new();
    let line = "run mapanon --evictions --html none";
    lab.refuses(&format!("{line} --backing shmem"), 2, &["--evictions", "private anonymous memory"]);
    lab.refuses(&format!("{line} --writes 5%"), 2, &["--evictions", "--touch write"]);
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
    let [first, second] = ["@2", "@1"].map(|run| major_faults(&lab, run));
    let [of_first, of_second, opt] =
        ["first", "second", "opt"].map(|name| found["figures"][name].as_f64().unwrap());
    assert_eq!((first / opt, second / opt), (of_first, of_second), "{found}");
    let shown = lab.ok(&format!("fuzz-reclaim {targets} --loads 3"));
    assert!(joined(&shown).contains("times OPT's major faults, and model:mru"), "{shown}");
    assert!(shown.contains("\npagelab run mapanon --pages "), "{shown}");
}

/// The major faults of a run.
fn major_faults(lab: &Lab, run: &str) -> f64 {
    let shown = lab.json(&format!("show {run} --json"));
    let findings = shown["result"]["findings"].as_array().unwrap();
    let mut figures = findings.iter().filter_map(|finding| finding["figures"].as_array()).flatten();
    figures.find(|figure| figure["name"] == "faults.major").unwrap()["value"].as_f64().unwrap()
}

fn a_fuzzer_refuses_what_it_cannot_compare() {
    let lab = Lab::new();
    lab.refuses("fuzz-reclaim --on model:lru", 2, &["give two targets"]);
    lab.refuses("fuzz-reclaim --on model:lru --on model:no", 2, &["model:no"]);
    let line = "fuzz-reclaim --on model:lru --on model:fifo --loads 3 --instructions";
    lab.refuses(line, 3, &["a figure was missing"]);
    lab.nothing_is_left("after fuzzing");
}
