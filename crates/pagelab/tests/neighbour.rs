//! What others beside a load cost it: `neighbour` (two cgroups under one limit, and what protection gives the victim back), and
//! `faultscale --beside` (faults beside calls that take mmap_lock for writing).

mod common;

use std::process::ExitCode;

use common::{Lab, joined};
use pagelab_testing::{KERNELS, Need, run, tests};
use serde_json::Value;

fn main() -> ExitCode {
    run(tests! {
        what_cannot_be_had_is_refused;
        version_one_of_cgroups_is_refused: VERSION_ONE;
        a_neighbour_costs_faults_and_protection_spares_them: KERNELS;
        faults_wait_for_another_mappings_lock_before_there_is_one_a_mapping: KERNELS;
    })
}

/// The memory controller is one of version 1.
const VERSION_ONE: Need = Need {
    name: "cgroup-1",
    on: &[],
    met: || match std::path::Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() {
        true => Ok(()),
        false => Err("the memory controller is not one of version 1".into()),
    },
};

fn what_cannot_be_had_is_refused() {
    let lab = Lab::new();
    let error = lab.fails("run neighbour --on model:linux-lru", 2);
    assert!(error.contains("models references to one mapping"), "{error}");
    let error = lab.fails("run neighbour --memory none", 2);
    assert!(joined(&error).contains("a memory limit"), "{error}");
}

fn version_one_of_cgroups_is_refused() {
    let lab = Lab::new();
    let error = joined(&lab.fails("run neighbour", 2));
    assert!(error.contains("cgroup version 2") && error.contains("--on kernel:"), "{error}");
    assert!(!lab.path("pagelab.db").exists());
}

/// A column of the table of situations.
fn column(export: &Value, name: &str) -> Vec<f64> {
    let tables = export["runs"][0]["repetitions"][0]["observations"]["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["name"] == "situations").expect("a table");
    let columns = table["columns"].as_array().unwrap();
    let column = columns.iter().find(|column| column["name"] == name).unwrap();
    column["values"]["number"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// The victim's 8 MiB fit into 16 MiB, and its neighbour's 16 MiB do not fit beside them.
fn a_neighbour_costs_faults_and_protection_spares_them() {
    let lab = Lab::new();
    let kernel = pagelab_testing::kernels()[1].display().to_string();
    let line = "run neighbour --pages 2048 --references 4000 --neighbour 4096 --memory 16M --report none";
    let seen = lab.ok(&format!("{line} --name n --on kernel:{kernel},accel=icount"));
    assert!(joined(&seen).contains("beside a neighbour"), "{seen}");
    let export = lab.json("export n --format json");
    let major = column(&export, "major");
    let [alone, beside, low, min] = major[..] else { panic!("{major:?}") };
    assert_eq!(alone, 0.0, "it fits");
    assert!(beside > 100.0, "{beside} major faults beside a neighbour");
    assert!(low < beside / 2.0 && min < beside / 2.0, "{low} and {min} of {beside}");
    // The thread's faults and its cgroup's are two counts of one thing, but for the readings themselves, whose buffers may be in
    // swap.
    for (ours, cgroups) in major.iter().zip(column(&export, "pgmajfault")) {
        assert!((ours - cgroups).abs() <= 16.0, "{major:?}: {cgroups}");
    }
    let (refaults, written) = (column(&export, "refaults"), column(&export, "written"));
    assert!(refaults[0] == 0.0 && refaults[1] > 0.0, "{refaults:?}");
    assert!(written[0] == 0.0 && written[1..].iter().all(|&pages| pages > 0.0), "{written:?}");
    let limit = 16.0 * 1024.0 * 1024.0;
    for (victim, neighbour) in column(&export, "victim").iter().zip(column(&export, "other")) {
        assert!(victim + neighbour <= limit, "{victim} and {neighbour}");
    }
}

/// Linux 6.1 takes mmap_lock for every fault; 6.12 has a lock for each mapping, and takes mmap_lock only for a mapping's first
/// fault (which gives it its anon_vma): once for each worker, of tens of thousands.
fn faults_wait_for_another_mappings_lock_before_there_is_one_a_mapping() {
    let lab = Lab::new();
    let line =
        "run faultscale --work refill --beside protect --workers 1 --seconds 0.4 --memory none --report none";
    let on = |kernel: &std::path::Path| format!("--on kernel:{},accel=tcg,cpus=2", kernel.display());
    let kernels = pagelab_testing::kernels();
    let (old, new) = (on(&kernels[0]), on(&kernels[1]));
    let seen = joined(&lab.ok(&format!("{line} --name b {old} {new}")));
    assert!(seen.contains("beside another thread's") && seen.contains("waits in a million"), "{seen}");
    let waits = |run: &str| {
        let export = lab.json(&format!("export {run} --format json"));
        let metrics = &export["runs"][0]["repetitions"][0]["observations"]["metrics"];
        let metrics = metrics.as_array().unwrap();
        let of = |name: &str| metrics.iter().find(|m| m["name"] == name).unwrap()["value"].as_f64().unwrap();
        // As many as there were, of those in a million.
        let faults = of("beside.throughput") * 0.4;
        (of("beside.waits") * faults / 1e6, of("beside.calls"))
    };
    let ((old, old_calls), (new, new_calls)) = (waits("b-1"), waits("b-2"));
    assert!(old_calls > 0.0 && new_calls > 0.0);
    assert!(old >= 3.0, "{old} waits in faults on 6.1");
    assert!(new < 2.0, "{new} waits in faults on 6.12, and {old} on 6.1");
}
