//! What the kernel does where memory is short, or is about to be: `oom`, `reclaim` and `fragment`.

mod common;

use std::process::ExitCode;

use common::kept::Kept;
use common::{Lab, joined};
use pagelab_testing::{CGROUP_1, KERNELS, LIMITS, run, tests};

fn main() -> ExitCode {
    run(tests! {
        what_cannot_be_had_is_refused;
        version_one_of_cgroups_has_no_reclaim: CGROUP_1;
        the_largest_process_is_killed: LIMITS;
        a_guest_kills_one_or_all: KERNELS;
        cold_pages_are_reclaimed_before_hot_ones: KERNELS;
        huge_pages_are_few_in_pieces_and_many_after_compaction: KERNELS;
    })
}

fn what_cannot_be_had_is_refused() {
    let lab = Lab::new();
    for (arguments, wanted) in [
        ("run oom --on model:linux-lru", "models references to one mapping"),
        ("run reclaim --on model:lru", "models references to one mapping"),
        ("run fragment --on model:linux-6-folio", "models"),
        ("run oom --memory none", "kills nobody without a memory limit"),
        ("run reclaim --memory none", "without a memory limit"),
        ("run fragment", "does not fill the memory of a machine that is in use"),
        ("run fragment --memory 64M --on kernel:/no/such", "/no/such"),
    ] {
        let error = joined(&lab.fails(arguments, 2));
        assert!(error.contains(wanted), "{arguments}: {error}");
    }
    assert!(!lab.path("pagelab.db").exists());
}

fn version_one_of_cgroups_has_no_reclaim() {
    let lab = Lab::new();
    let error = joined(&lab.fails("run reclaim", 2));
    assert!(error.contains("cgroup version 2") && error.contains("--on kernel:"), "{error}");
    assert!(!lab.path("pagelab.db").exists());
}

/// The observations of a run's first repetition.
const MIB: f64 = 1024.0 * 1024.0;

/// In 16 MiB one holds 1, one 8 MiB, and the growing one cannot have more than 7: the second is the largest. With half of the
/// limit in addition the first counts as 9 MiB.
fn killed_as_reckoned(seen: &Kept) {
    let who = seen.texts("kills", "who");
    assert_eq!(who[..2], ["holds 2048", "holds 256"]);
    assert_eq!(seen.metric("oom.predicted"), Some(1.0));
    let held = [seen.metric("oom.killed.equal").unwrap(), seen.metric("oom.killed.adjusted").unwrap()];
    // Besides what it was to hold, a forked process has the pages of the program that it wrote.
    assert!(held[0] >= 8.0 * MIB && held[0] < 16.0 * MIB, "{held:?}");
    assert!(held[1] >= MIB && held[1] < 8.0 * MIB, "{held:?}");
    let kills = seen.numbers("kills", "oom_kill");
    assert_eq!(kills[..2], [1.0, 1.0], "the cgroup's own count");
    assert!(seen.numbers("kills", "pause")[..2].iter().all(|&pause| pause >= 0.0));
}

fn the_largest_process_is_killed() {
    let lab = Lab::new();
    let text = joined(&lab.ok("run oom --held 256,2048 --grow 8192 --memory 16M --report none --name o"));
    assert!(text.contains("the process that holds 2048 was killed"), "{text}");
    killed_as_reckoned(&lab.kept("o"));
    // Where there is room for all nobody is.
    let text = joined(&lab.ok("run oom --held 256 --grow 512 --memory 64M --report none --name r"));
    assert!(text.contains("nobody was killed") && text.contains("raise --grow"), "{text}");
    assert_eq!(lab.kept("r").metric("oom.killed.equal"), None);
}

fn a_guest_kills_one_or_all() {
    let lab = Lab::new();
    let kernel = pagelab_testing::kernels()[1].display().to_string();
    let line = "run oom --held 256,2048 --grow 8192 --memory 16M --report none --name o";
    let text = joined(&lab.ok(&format!("{line} --on kernel:{kernel},accel=tcg")));
    assert!(text.contains("with memory.oom.group 3 processes were killed"), "{text}");
    let seen = lab.kept("o");
    killed_as_reckoned(&seen);
    assert_eq!(seen.texts("kills", "who")[2], "all 3");
    let stalls = seen.numbers("kills", "stall");
    assert!(stalls.iter().all(|&stall| stall >= 0.0) && stalls[0] == seen.metric("oom.stall.equal").unwrap());
    // The kernel kills the first and then all of the group, and counts the first again where it still has its memory then.
    let counted = seen.numbers("kills", "oom_kill")[2];
    assert!(counted == 3.0 || counted == 4.0, "the cgroup's own count: {counted}");
}

/// 8 MiB of the mapping are hot and 24 cold: a kernel that knew nothing would take a quarter from the hot part.
fn cold_pages_are_reclaimed_before_hot_ones() {
    let lab = Lab::new();
    let kernel = pagelab_testing::kernels()[1].display().to_string();
    let text =
        joined(&lab.ok(&format!("run reclaim --report none --name r --on kernel:{kernel},accel=icount")));
    assert!(text.contains("of 16 MiB asked for"), "{text}");
    let seen = lab.kept("r");
    let had = seen.metric("reclaim.had").unwrap();
    let out = seen.metric("reclaim.pages").unwrap() * 4096.0;
    assert_eq!(seen.metric("reclaim.asked"), Some(16.0 * MIB));
    // The kernel reclaims in batches, up to two megabytes at once in each of eight steps.
    assert!((16.0 * MIB..=32.0 * MIB).contains(&had), "{had} bytes");
    // Two counts of one thing, but for pages of the program itself.
    assert!((had - out).abs() < MIB, "{had} reclaimed, {out} gone");
    let cold = seen.metric("reclaim.cold").unwrap();
    assert!(cold > 0.75 && cold <= 1.0, "{cold} of them cold");
    assert!(seen.metric("reclaim.cost").unwrap() > 0.0);
    let away = |name: &str| seen.numbers("steps", name).iter().sum::<f64>();
    assert_eq!((away("out.cold") + away("out.hot")) * 4096.0, out);
    let (back, mistakes) =
        (seen.metric("reclaim.back.faults").unwrap(), seen.metric("reclaim.mistakes").unwrap());
    assert!(back > 0.0 && back <= away("out.cold"), "{back} faults");
    assert!(mistakes <= away("out.hot"), "{mistakes} faults");
}

fn huge_pages_are_few_in_pieces_and_many_after_compaction() {
    let lab = Lab::new();
    let kernel = pagelab_testing::kernels()[0].display().to_string();
    let line = "run fragment --report none --name f";
    let text = joined(&lab.ok(&format!("{line} --on kernel:{kernel},accel=tcg")));
    assert!(text.contains("huge pages had in fragmented memory"), "{text}");
    let seen = lab.kept("f");
    let had = seen.numbers("ways", "had");
    let [whole, pieces, direct, collapse, compacted] = had[..] else { panic!("{had:?}") };
    assert_eq!(whole, 192.0, "a gigabyte is free");
    let blocks = seen.numbers("ways", "blocks");
    // Filling leaves 32 MiB, sixteen huge pages; some are in lists of the processor, and in no block.
    assert!(pieces < 48.0 && blocks[1] < 48.0, "{pieces} huge pages of {} blocks", blocks[1]);
    // Fifteen of sixteen pages are free, and the one is movable.
    assert!(direct > 96.0 && collapse > 96.0 && compacted > 96.0, "{had:?}");
    // The kernel's own counts, which share nothing with the mapping's entry in smaps.
    let counters = seen.0["counters"].as_array().unwrap();
    let grown = |name: &str| {
        let found = counters.iter().find(|counter| counter["name"] == name);
        let counter = found.unwrap_or_else(|| panic!("no {name}"));
        counter["after"].as_f64().unwrap() - counter["before"].as_f64().unwrap()
    };
    assert_eq!(grown("thp_fault_alloc"), whole + pieces + direct + compacted, "{had:?}");
    assert!(grown("thp_collapse_alloc") >= collapse, "{had:?}");
    let (stall, success) = (seen.numbers("ways", "stall"), seen.numbers("ways", "success"));
    assert_eq!(stall[..2], [0.0, 0.0], "no compaction where there is to be none");
    assert!(stall[2] > 0.0 && success[2] > 0.0, "{stall:?} {success:?}");
}
