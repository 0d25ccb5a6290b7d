//! What `mapanon` maps: anonymous memory, shared memory (shmem), huge pages that are set aside
//! (hugetlb).

use std::process::Stdio;

use crate::common::kept::Recorded;
use crate::common::{Lab, eventually};
use pagelab_testing::{ALONE, KERNELS, LIMITS, Need, ROOT, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        shared_memory_is_charged_and_swapped: LIMITS;
        hugetlb_pages_are_set_aside_for_the_run_alone: ROOT, HUGETLB, ALONE;
        a_guest_has_each_backing: KERNELS;
    }
}

/// Huge pages can be set aside.
const HUGETLB: Need = Need {
    name: "hugetlb",
    on: &[],
    met: || match std::fs::exists(NUMBER) {
        Ok(true) => Ok(()),
        _ => Err("the kernel has no hugetlb pages (CONFIG_HUGETLBFS)".into()),
    },
};
const NUMBER: &str = "/proc/sys/vm/nr_hugepages";

/// Base pages of a huge one on x86-64.
const HUGE: u64 = 512;

/// A figure of the kernel's own, before the first reference and after the last.
fn counter(seen: &Recorded, source: &str, name: &str) -> (f64, f64) {
    let counters = seen.0["counters"].as_array().unwrap();
    let found = counters.iter().find(|counter| counter["source"] == source && counter["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {source}"));
    (found["before"].as_f64().unwrap(), found["after"].as_f64().unwrap())
}

/// 32 MiB under half of it: what is charged as shmem, by the cgroup's own statistics, is the
/// mapping.
fn shared_under_half(lab: &Lab, target: &str) {
    let line = "run mapanon --pages 8192 --references 20000 --pattern uniform --memory 16M --html none";
    for backing in ["anon", "shmem"] {
        lab.ok(&format!("{line} --backing {backing} --name {backing} {target}"));
    }
    let [anon, shmem] = ["anon", "shmem"].map(|name| lab.kept(name));
    let charged = |seen: &Recorded| counter(seen, "memory.stat", "shmem").1 / 4096.0;
    assert_eq!(charged(&anon), 0.0);
    let held = charged(&shmem);
    assert!((3000.0..=4096.0).contains(&held), "{held} pages of shmem of 4,096");
    for seen in [&anon, &shmem] {
        // Half of it is in memory, so half of the references miss, but for read-ahead.
        let major = seen.metric("faults.major").unwrap();
        assert!((1000.0..=10_500.0).contains(&major), "{major} major faults");
        let present = seen.metric("pages.present").unwrap();
        assert!((3000.0..=4096.0).contains(&present), "{present} pages in memory");
        assert!(seen.metric("swap.in").unwrap() >= major, "{major} faults");
    }
    lab.shows("compare anon shmem", &["--backing anon", "--backing shmem"]);
}

/// 32 MiB in huge pages: one fault each, all in memory, none of them in any limit.
fn huge(lab: &Lab, target: &str) -> Recorded {
    let line = "run mapanon --backing hugetlb --pages 8192 --references 20000 --pattern uniform";
    lab.ok(&format!("{line} --html none --name huge {target}"));
    let seen = lab.kept("huge");
    let faults = seen.metric("faults.populate").unwrap();
    assert!((16.0..32.0).contains(&faults), "{faults} faults of 16 huge pages");
    assert_eq!((seen.metric("faults.major"), seen.metric("pages.present")), (Some(0.0), Some(8192.0)));
    assert!(seen.column("windows", "pages.present").iter().all(Option::is_none), "they are not resident");
    lab.shows("show huge", &["--backing hugetlb", "memory=none"]);
    seen
}

fn shared_memory_is_charged_and_swapped() {
    let lab = Lab::new();
    shared_under_half(&lab, "");
    lab.nothing_is_left("after shared memory");
}

fn set_aside() -> u64 {
    std::fs::read_to_string(NUMBER).unwrap().trim().parse().unwrap()
}

fn hugetlb_pages_are_set_aside_for_the_run_alone() {
    let lab = Lab::new();
    let before = set_aside();
    let line = "run mapanon --backing hugetlb --html none";
    lab.shows(
        &format!("{line} --pages 513 --dry-run"),
        &[&format!("{NUMBER} = {} (now {before})", before + 2), "root: the kernel's settings"],
    );
    huge(&lab, "");
    assert_eq!(set_aside(), before);
    lab.nothing_is_left("after huge pages");
    // A killed pagelab leaves them set aside; the next start of any kind gives them back.
    let endless = format!("{line} --pages {} --references 4000000000 -q", 3 * HUGE);
    let mut child = lab.begin(&endless, Stdio::null());
    eventually("three are set aside", || set_aside() == before + 3);
    child.kill().unwrap();
    child.wait().unwrap();
    lab.ok("patterns");
    assert_eq!(set_aside(), before);
    lab.nothing_is_left("after kill -9");
}

/// Zram is where the guest's pages go.
fn a_guest_has_each_backing() {
    let lab = Lab::new();
    shared_under_half(&lab, "--on kernel:NEW,accel=tcg,swap=zram");
    let seen = huge(&lab, "--on kernel:NEW,accel=tcg");
    // The kernel's count of huge pages that it found memory for (mm/hugetlb.c).
    let found = counter(&seen, "vmstat", "htlb_buddy_alloc_success");
    assert!(found.0 >= 16.0 && found.1 == found.0, "{found:?}");
    // Of 1 GiB there is none in a machine of as much.
    let gigantic = "kernel:NEW,accel=tcg,cpu=max,append=default_hugepagesz=1G";
    lab.refuses(
        &format!("run mapanon --backing hugetlb --pages 1000 --references 1000 --html none --on {gigantic}"),
        3,
        &["nr_hugepages was set to 1 and holds 0", "use fewer pages"],
    );
}
