//! What others beside a load cost it: `neighbour` (two cgroups under one limit, and what protection
//! gives the victim back), and `faultscale --beside` (faults beside calls that take mmap_lock for
//! writing).

use crate::common::Lab;
use pagelab_testing::{CGROUP_1, KERNELS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        version_one_of_cgroups_is_refused: CGROUP_1;
        a_neighbour_costs_faults_and_protection_spares_them: KERNELS;
        a_neighbour_that_reads_a_file_takes_memory_too: KERNELS;
        faults_wait_for_another_mappings_lock_before_there_is_one_a_mapping: KERNELS;
    }
}

fn version_one_of_cgroups_is_refused() {
    let lab = Lab::new();
    lab.refuses("run neighbour", 2, &["cgroup version 2", "--on kernel:"]);
    assert!(!lab.path("pagelab.db").exists());
}

/// The victim's 8 MiB fit into 16 MiB, and its neighbour's 16 MiB do not fit beside them.
fn a_neighbour_costs_faults_and_protection_spares_them() {
    let lab = Lab::new();
    let line =
        "run neighbour --pages 2048 --references 4000 --neighbour 4096 --memory 16M --html none --functions";
    lab.shows(&format!("{line} --name n --on kernel:NEW,accel=icount"), &["with a neighbour"]);
    let kept = lab.kept("n");
    let column = |name: &str| kept.numbers("situations", name);
    let major = column("major");
    let [alone, beside, low, min] = major[..] else { panic!("{major:?}") };
    assert_eq!(alone, 0.0, "it fits");
    assert!(beside > 100.0, "{beside} major faults with a neighbour");
    assert_eq!((low, min), (0.0, 0.0), "the protection covers all that the victim had alone");
    // The thread's faults and its cgroup's are two counts of one thing, but for the readings
    // themselves, whose buffers may be in swap.
    for (ours, cgroups) in major.iter().zip(column("pgmajfault")) {
        assert!((ours - cgroups).abs() <= 16.0, "{major:?}: {cgroups}");
    }
    // Both loads' reclaim, of which alone there is none.
    let (scanned, stolen) = (kept.numbers("scans", "scan.direct"), kept.numbers("scans", "steal.direct"));
    assert_eq!(kept.texts("scans", "phase"), ["alone", "beside", "low", "min"]);
    assert!(scanned[0] == 0.0 && scanned[1] >= stolen[1] && stolen[1] > 1000.0, "{scanned:?} {stolen:?}");
    assert!(stolen.iter().sum::<f64>() <= kept.metric("steal.direct").unwrap(), "{stolen:?}");
    assert!(kept.cell("operations", "reclaim: for a limit", "count") > 100.0, "in a load of its own");
    let (refaults, written) = (column("refaults"), column("written"));
    assert!(refaults[0] == 0.0 && refaults[1] > 0.0, "{refaults:?}");
    // Protected, the victim never waits, and may keep the only CPU until its references are over.
    assert!(written[0] == 0.0 && written[1] > 0.0, "{written:?}");
    let limit = 16.0 * 1024.0 * 1024.0;
    for (victim, neighbour) in column("victim").iter().zip(column("other")) {
        assert!(victim + neighbour <= limit, "{victim} and {neighbour}");
    }
}

/// The file does not fit next to the victim, and the kernel keeps part of it in the neighbour's
/// cgroup.
fn a_neighbour_that_reads_a_file_takes_memory_too() {
    let lab = Lab::new();
    let line = "run neighbour --pages 1024 --references 4000 --neighbour 4096 --task read-file --memory 5M";
    lab.ok(&format!("{line} --html none --name f --on kernel:NEW,accel=icount"));
    let kept = lab.kept("f");
    let column = |name: &str| kept.numbers("situations", name);
    let (other, read) = (column("other"), column("written"));
    assert_eq!(read[0], 0.0, "alone");
    assert!(read[1] > 0.0 && other[1] > 256.0 * 1024.0, "{read:?} {other:?}");
    // CPU time is known although the guest has disks.
    assert!(kept.metric("victim.cost.neighbour").unwrap() > 0.0);
}

/// Linux 6.1 takes mmap_lock for every fault; 6.12 has a lock for each mapping, and takes mmap_lock
/// only for a mapping's first fault (which gives it its anon_vma): once for each worker, of tens of
/// thousands.
fn faults_wait_for_another_mappings_lock_before_there_is_one_a_mapping() {
    let lab = Lab::new();
    let line =
        "run faultscale --work refill --beside protect --workers 1 --seconds 0.4 --memory none --html none";
    let on = "--on kernel:OLD,accel=tcg,cpus=2 --on kernel:NEW,accel=tcg,cpus=2";
    lab.shows(&format!("{line} --name b {on}"), &["with another thread's", "waits per million"]);
    let waits = |run: &str| {
        let kept = lab.kept(run);
        let of = |name: &str| kept.metric(name).unwrap();
        // As many as there were, of those in a million.
        let faults = of("beside.throughput") * 0.4;
        (of("beside.waits") * faults / 1e6, of("beside.calls"))
    };
    let ((old, old_calls), (new, new_calls)) = (waits("b-1"), waits("b-2"));
    assert!(old_calls > 0.0 && new_calls > 0.0);
    assert!(old >= 3.0, "{old} waits in faults on 6.1");
    assert!(new < 2.0, "{new} waits in faults on 6.12, and {old} on 6.1");
}
