//! Huge pages under `mapanon`: how far they cover the mapping, and faults as the kernel counts them.

use std::process::Stdio;

use crate::common::{Lab, eventually, metric};
use pagelab_testing::{ALONE, KERNELS, Need, ROOT, THP, Test, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        huge_pages_cover_the_mapping_and_take_one_fault_each: ROOT, THP, ALONE;
        huge_pages_are_split_to_be_swapped: ROOT, THP, ALONE;
        a_guest_says_how_far_huge_pages_cover_the_mapping: KERNELS;
        sizes_are_given_and_counted_and_put_back: ROOT, SIZES, ALONE;
        a_guest_gives_sizes: KERNELS;
    }
}

/// The kernel has transparent huge pages by size.
const SIZES: Need = Need {
    name: "thp-sizes",
    on: &[],
    met: || match std::path::Path::new(FOLDER).join("hugepages-64kB/enabled").exists() {
        true => Ok(()),
        false => Err("this kernel has no transparent huge pages by size (Linux 6.8)".into()),
    },
};
const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";

/// 64 MiB.
const PAGES: f64 = 16_384.0;
/// Base pages of a huge one.
const HUGE: f64 = 512.0;

/// The sentences about huge pages, and every figure that closes with every other.
fn covered(result: &Value) {
    let coverage = metric(result, "huge.coverage.before").unwrap();
    let bytes = metric(result, "huge.before").unwrap();
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
    let line = "run mapanon --pages 16384 --references 20000 --memory none --html none";
    for mode in ["always", "madvise"] {
        covered(&lab.json(&format!("{line} --thp {mode} --json")));
    }
    lab.shows(&format!("{line} --thp always"), &["huge pages cover", "thp_fault_alloc"]);
    // Base pages: one fault each, and not a word of huge ones.
    let base = lab.json(&format!("{line} --json"));
    let counted = metric(&base, "faults.populate").unwrap();
    assert!((PAGES..PAGES + 40.0).contains(&counted), "{counted}");
    assert_eq!(metric(&base, "huge.coverage.before"), None);
    assert!(!base.to_string().contains("huge-pages"), "{base}");
}

fn huge_pages_are_split_to_be_swapped() {
    let lab = Lab::new();
    let line = "run mapanon --pages 16384 --references 20000 --pattern uniform --memory 32M --html none";
    let result = lab.json(&format!("{line} --thp always --json"));
    let (first, last) = (metric(&result, "huge.coverage.before"), metric(&result, "huge.coverage.after"));
    let (first, last) = (first.unwrap(), last.unwrap());
    assert!(first <= 0.5 && last <= 0.5, "the limit is half of the mapping: {first}, {last}");
}

fn a_guest_says_how_far_huge_pages_cover_the_mapping() {
    let lab = Lab::new();
    let line = "run mapanon --pages 16384 --references 2000 --memory none --html none --thp always --json";
    covered(&lab.json(&format!("{line} --on kernel:NEW,accel=tcg,ram=512M")));
}

/// A cell of a table with named rows of the run's only repetition.
fn cell(export: &Value, table: &str, row: &str, column: &str) -> Option<f64> {
    let tables = export["runs"][0]["repetitions"][0]["observations"]["tables"].as_array().unwrap();
    let columns = tables.iter().find(|t| t["name"] == table)?["columns"].as_array().unwrap();
    let names = columns[0]["values"]["text"].as_array().unwrap();
    let at = names.iter().position(|name| name == row)?;
    columns.iter().find(|c| c["name"] == column).unwrap()["values"]["number"][at].as_f64()
}

/// What the faults, the page flags and the kernel's counters of the size say of 64 MiB in folios of
/// 64 KiB is one thing.
fn folios_of_64k(lab: &Lab, target: &str) {
    let line =
        "run mapanon --pages 16384 --references 2000 --memory none --html none --thp 64k:always --json";
    let seen = lab.json(&format!("{line} --name folios {target}"));
    let coverage = metric(&seen, "folio.coverage.before").unwrap();
    assert!((0.98..=1.0).contains(&coverage), "{coverage} of the mapping");
    assert_eq!(metric(&seen, "huge.coverage.before"), Some(0.0), "no entry maps one whole");
    let faults = coverage * PAGES / 16.0 + (1.0 - coverage) * PAGES;
    let counted = metric(&seen, "faults.populate").unwrap();
    assert!((faults..faults + 40.0).contains(&counted), "{counted} faults and not {faults}");
    let export = lab.json("export folios --format json");
    assert_eq!(cell(&export, "folios", "64k", "pages.first"), Some((coverage * PAGES).round()), "{export}");
    // The counter is the whole machine's, and on the host every program gets folios meanwhile.
    let given = cell(&export, "huge-pages", "64k/anon_fault_alloc", "populating").unwrap();
    assert!(given >= coverage * PAGES / 16.0, "{given}");
    assert!(target.is_empty() || given < coverage * PAGES / 16.0 + 40.0, "{given}");
    lab.shows("show folios", &["folios of any size above a page"]);
}

fn sizes_are_given_and_counted_and_put_back() {
    let lab = Lab::new();
    let held = || -> Vec<(std::path::PathBuf, String)> {
        let folders = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path().join("enabled"));
        let mut all: Vec<_> =
            folders.filter_map(|file| Some((file.clone(), std::fs::read_to_string(file).ok()?))).collect();
        all.sort();
        all
    };
    let before = held();
    assert!(before.len() > 5, "{before:?}");
    lab.refuses("run mapanon --thp 4g:always", 2, &["it has no huge pages of 4194304 KiB", "64k"]);
    folios_of_64k(&lab, "");
    assert_eq!(held(), before);
    // Two sizes, of which the smaller is for what is advised.
    let line =
        "run mapanon --pages 16384 --references 2000 --memory none --html none --thp 16k:madvise,2m:always";
    let seen = lab.json(&format!("{line} --json"));
    assert!(metric(&seen, "huge.coverage.before").unwrap() > 0.9, "{seen}");
    assert_eq!(held(), before);
    lab.nothing_is_left("after sizes");
    // A killed pagelab leaves them set; the next start of any kind puts them back.
    let endless = "run mapanon --pages 64 --references 4000000000 --memory none --html none -q";
    let mut child = lab.begin(&format!("{endless} --thp 64k:always,32k:madvise"), Stdio::null());
    eventually("the sizes are in force", || {
        let now = held();
        let is = |size: &str, mode: &str| {
            now.iter().any(|(file, text)| file.ends_with(format!("{size}/enabled")) && text.contains(mode))
        };
        is("hugepages-64kB", "[always]") && is("hugepages-32kB", "[madvise]")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(held(), before, "something is left for the next start");
    lab.ok("patterns");
    assert_eq!(held(), before);
    lab.nothing_is_left("after kill -9");
}

fn a_guest_gives_sizes() {
    let lab = Lab::new();
    folios_of_64k(&lab, "--on kernel:NEW,accel=tcg");
}
