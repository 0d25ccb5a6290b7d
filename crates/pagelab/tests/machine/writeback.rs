//! References that write a file (`--writes`, `--touch write`): what becomes dirty and goes to the
//! disk, and who waits for it.

use crate::common::{Lab, metric};
use pagelab_testing::{KERNELS, LIMITS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        mixed_references_write_their_share;
        a_model_knows_which_references_write;
        a_written_file_goes_to_the_disk: LIMITS;
        a_guest_counts_what_becomes_dirty_and_what_is_written: KERNELS;
        a_guest_is_paused_for_dirty_pages: KERNELS;
    }
}

const PAGE: f64 = 4096.0;

/// The draws are those of the seed, and reads and writes are all that there is.
fn mixed_references_write_their_share() {
    let lab = Lab::new();
    let line = "run mapanon --pages 200 --references 10000 --touch word --memory none --html none --json";
    let mixed = lab.json(&format!("{line} --writes 5%"));
    let writes = metric(&mixed, "writes").unwrap();
    assert!((writes - 500.0).abs() < 5.0 * 21.8, "five standard deviations: {writes}");
    let (read, write) = (metric(&mixed, "access.read.mean"), metric(&mixed, "access.write.mean"));
    let mean = (read.unwrap() * (10_000.0 - writes) + write.unwrap() * writes) / 10_000.0;
    assert!((mean / metric(&mixed, "access.mean").unwrap() - 1.0).abs() < 1e-6, "both together are all");
    assert_eq!(metric(&lab.json(&format!("{line} --writes 5%")), "writes"), Some(writes), "the same again");
    assert_ne!(metric(&lab.json(&format!("{line} --writes 5% --seed 2")), "writes"), Some(writes));
    let none = lab.json(line);
    assert_eq!((metric(&none, "writes"), metric(&none, "access.write.mean")), (None, None));
}

/// A clean page is dropped, a dirty one is written: more writes, more of them.
fn a_model_knows_which_references_write() {
    let lab = Lab::new();
    let out = |writes: &str| {
        let line = "run mapanon --pages 2000 --references 20000 --pattern uniform --touch word --memory 4M";
        let line = format!("{line} --writes {writes} --on model:linux-lru --html none --json");
        metric(&lab.json(&line), "swap.out").unwrap()
    };
    let (none, few, all) = (out("0%"), out("5%"), out("100%"));
    assert!(none < few && few < all, "{none}, {few}, {all}");
}

fn a_written_file_goes_to_the_disk() {
    let lab = Lab::new();
    let line = "run mapfile --pages 4000 --references 20000 --pattern uniform --touch word --writes 50% \
                --syncs 4 --memory 64M --html none --json";
    let seen = lab.json(line);
    assert!(metric(&seen, "dirty.max").unwrap() > 100.0 * PAGE, "{seen}");
    assert!(metric(&seen, "pages.dirtied").unwrap() > 3000.0, "{seen}");
    assert!(metric(&seen, "pages.written").unwrap() > 3000.0, "{seen}");
    let (middle, max) = (metric(&seen, "fsync.p50").unwrap(), metric(&seen, "fsync.max").unwrap());
    assert!(0.0 < middle && middle <= max, "{middle}, {max}");
    let findings = seen["result"]["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["finding"] == "writeback"), "{findings:?}");
    lab.nothing_is_left("after writing");
}

/// Each of 1,000 pages is written many times and becomes dirty once; fsync brings each to the disk
/// once.
fn a_guest_counts_what_becomes_dirty_and_what_is_written() {
    let lab = Lab::new();
    let run = |syncs: u32| {
        let line = "run mapfile --pages 1000 --references 20000 --pattern uniform --touch write --memory 64M";
        let line = format!("{line} --syncs {syncs} --html none --json");
        // Nothing is written back for its age or its share meanwhile.
        let set = "set=/proc/sys/vm/dirty_writeback_centisecs=0";
        lab.json(&format!("{line} --on kernel:NEW,accel=icount,{set}"))
    };
    let once = run(1);
    let (dirtied, written) =
        (metric(&once, "pages.dirtied").unwrap(), metric(&once, "pages.written").unwrap());
    // The file system's own: the inode, a bitmap.
    assert!((1000.0..1016.0).contains(&dirtied), "{dirtied} pages became dirty");
    assert!((1000.0..1016.0).contains(&written), "{written} pages were written");
    // The kernel gathers a cgroup's counts by 64 pages on each processor.
    let most = metric(&once, "dirty.max").unwrap() / PAGE;
    assert!((936.0..=1016.0).contains(&most), "{most} pages were dirty");
    assert_eq!(metric(&once, "fsync.p50"), None, "waiting takes no instructions");
    assert_eq!(metric(&once, "dirty.pauses"), Some(0.0));
    let never = run(0);
    assert!(metric(&never, "pages.written").unwrap() < 16.0, "nobody asked for it: {never}");
}

/// No more than 1 MiB may be dirty, and 8 MiB are written: the pauses are whole ticks of 4 ms, and
/// all of them are in the time of the references, in which the thread slept as often.
fn a_guest_is_paused_for_dirty_pages() {
    let lab = Lab::new();
    let line = "run mapfile --pages 2000 --references 2000 --pattern linear --touch write --memory 64M";
    let set = "set=/proc/sys/vm/dirty_bytes=1048576";
    let seen = lab.json(&format!("{line} --html none --json --on kernel:NEW,accel=tcg,{set}"));
    let pauses = metric(&seen, "dirty.pauses").unwrap();
    let throttled = metric(&seen, "dirty.throttled").unwrap();
    assert!(pauses >= 1.0, "{seen}");
    let tick = 4e6;
    assert!(throttled >= pauses * tick, "{throttled} ns in {pauses} pauses");
    let elapsed = metric(&seen, "time.elapsed").unwrap();
    assert!(throttled <= elapsed + pauses * tick, "{throttled} ns of {elapsed}");
    assert!(metric(&seen, "switches.voluntary").unwrap() >= pauses, "{seen}");
    assert!(metric(&seen, "access.max").unwrap() >= throttled / pauses - tick, "{seen}");
}
