//! Huge pages under `mapanon`: how far they cover the mapping, and faults as the kernel counts them.

mod common;

use std::process::ExitCode;

use common::{Lab, joined};
use pagelab_testing::{KERNELS, ROOT, THP, run, tests};
use serde_json::Value;

fn main() -> ExitCode {
    run(tests! {
        huge_pages_cover_the_mapping_and_take_one_fault_each: ROOT, THP;
        huge_pages_are_split_to_be_swapped: ROOT, THP;
        a_guest_says_how_far_huge_pages_cover_the_mapping: KERNELS;
    })
}

/// 64 MiB.
const PAGES: f64 = 16_384.0;
/// Base pages of a huge one.
const HUGE: f64 = 512.0;

fn metric(result: &Value, name: &str) -> Option<f64> {
    result["result"]["runs"][0]["repetitions"][0]["metrics"][name]["value"].as_f64()
}

/// The sentences about huge pages, and every figure that closes with every other.
fn covered(result: &Value) {
    let coverage = metric(result, "huge.coverage.first").unwrap();
    let bytes = metric(result, "huge.first").unwrap();
    assert!((0.9..=1.0).contains(&coverage), "{coverage} of the mapping");
    assert!((bytes / (PAGES * 4096.0) - coverage).abs() < 1e-9, "{bytes} bytes");
    // One fault a huge page, one a base page beside them.
    let faults = coverage * PAGES / HUGE + (1.0 - coverage) * PAGES;
    let counted = metric(result, "faults.populate").unwrap();
    assert!((faults..faults + 40.0).contains(&counted), "{counted} faults and not {faults}");
    let findings = result["result"]["findings"].as_array().unwrap();
    let found = findings.iter().find(|f| f["finding"] == "huge-pages").expect("a finding");
    let alloc = found["figures"].as_array().unwrap().iter().find(|f| f["name"] == "thp_fault_alloc").unwrap();
    assert!(alloc["value"].as_f64().unwrap() >= coverage * PAGES / HUGE, "{alloc}");
}

fn huge_pages_cover_the_mapping_and_take_one_fault_each() {
    let lab = Lab::new();
    let line = "run mapanon --pages 16384 --references 20000 --memory none --report none";
    for mode in ["always", "madvise"] {
        covered(&lab.json(&format!("{line} --thp {mode} --json")));
    }
    let text = joined(&lab.ok(&format!("{line} --thp always")));
    assert!(text.contains("huge pages cover") && text.contains("thp_fault_alloc"), "{text}");
    // Base pages: one fault each, and not a word of huge ones.
    let base = lab.json(&format!("{line} --json"));
    let counted = metric(&base, "faults.populate").unwrap();
    assert!((PAGES..PAGES + 40.0).contains(&counted), "{counted}");
    assert_eq!(metric(&base, "huge.coverage.first"), None);
    assert!(!base.to_string().contains("huge-pages"), "{base}");
}

fn huge_pages_are_split_to_be_swapped() {
    let lab = Lab::new();
    let line = "run mapanon --pages 16384 --references 20000 --pattern uniform --memory 32M --report none";
    let result = lab.json(&format!("{line} --thp always --json"));
    let (first, last) = (metric(&result, "huge.coverage.first"), metric(&result, "huge.coverage.last"));
    let (first, last) = (first.unwrap(), last.unwrap());
    assert!(first <= 0.5 && last <= 0.5, "the limit is half of the mapping: {first}, {last}");
}

fn a_guest_says_how_far_huge_pages_cover_the_mapping() {
    let lab = Lab::new();
    let kernel = &pagelab_testing::kernels()[1];
    let line = "run mapanon --pages 16384 --references 2000 --memory none --report none --thp always --json";
    covered(&lab.json(&format!("{line} --on kernel:{},accel=tcg,ram=512M", kernel.display())));
}
