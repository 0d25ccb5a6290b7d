//! What pages hold (`--content`), and how far they compress in zram and in zswap.

use std::path::Path;
use std::process::Stdio;

use crate::common::{Lab, eventually, metric};
use pagelab_testing::{ALONE, CGROUP_1, KERNELS, LIMITS, Need, Test, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        what_pages_hold_decides_how_far_they_compress: LIMITS, ZRAM, ALONE;
        zswap_says_what_it_keeps: LIMITS, ZSWAP, ALONE;
        a_full_pool_is_written_back: LIMITS, CGROUP_1, ZSWAP_POOL, ALONE;
        after_kill_9_zswap_is_put_back_by_the_next_start: LIMITS, ZSWAP, ALONE;
        a_guests_pages_compress_as_the_hosts: KERNELS, ALONE;
    }
}

/// Compressed swap in memory can be made.
const ZRAM: Need = Need {
    name: "zram",
    on: &[],
    met: || match Path::new("/sys/class/zram-control/hot_add").exists() {
        true => Ok(()),
        false => Err("this kernel has no zram control (modprobe zram num_devices=0)".into()),
    },
};

/// The kernel has zswap, and says what it keeps.
const ZSWAP: Need = Need {
    name: "zswap",
    on: &[],
    met: || match std::fs::read_to_string("/proc/meminfo").is_ok_and(|text| text.contains("Zswapped:")) {
        true => Ok(()),
        false => Err("this kernel has no zswap, or is older than 5.19".into()),
    },
};

/// The kernel counts what zswap writes back, and the smallest limit of its pool, a percent of the
/// memory, is not too much to fill.
const ZSWAP_POOL: Need = Need {
    name: "zswap",
    on: &[&ZSWAP],
    met: || {
        if counted("zswpwb").is_none() {
            return Err("this kernel does not count what zswap writes back, which is since 6.8".into());
        }
        match percent_of_memory() {
            0..=MAX_FILLED => Ok(()),
            bytes => {
                Err(format!("a percent of the memory, {bytes} bytes, is more than a test fills zswap with"))
            }
        }
    },
};

/// Bytes that a test may fill zswap's pool with.
const MAX_FILLED: u64 = 512 << 20;
const PARAMETERS: [&str; 4] = ["enabled", "max_pool_percent", "accept_threshold_percent", "shrinker_enabled"];

/// What zswap is told.
fn parameters() -> Vec<String> {
    let read = |name: &&str| std::fs::read_to_string(format!("/sys/module/zswap/parameters/{name}"));
    PARAMETERS.iter().map(|name| read(name).unwrap_or_default()).collect()
}

/// A counter of the whole machine's.
fn counted(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

fn percent_of_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok());
    total.map_or(u64::MAX, |kib: u64| kib * 1024 / 100)
}

/// The option that sets a parameter of zswap's.
fn told(name: &str, value: &str) -> String {
    format!(" --set /sys/module/zswap/parameters/{name}={value}")
}

const LINE: &str = "run mapanon --pages 4096 --references 8000 --pattern uniform --touch word --memory 8M \
                    --html none --json";
const PAGE: f64 = 4096.0;
/// Pages in the swap that are not the mapping's: the header, and the program's own, of which six
/// were seen.
const OWN: f64 = 64.0;

/// The upper bounds are of what a page holds: of `compressible:SHARE` no compressor makes less than
/// the rest of a page. Beside the mapping's there are the header of the swap and what other
/// programs put there. `half` and `quarter` are what the machine's compressor makes of such pages
/// at least.
fn bounds(half: f64, quarter: f64, run: impl Fn(&str) -> Value) {
    for (content, least, most) in
        [("compressible:0.5", half, 2.0), ("compressible:0.75", quarter, 4.0), ("random", 0.98, 1.01)]
    {
        let seen = run(content);
        let stored = metric(&seen, "zram.stored").unwrap();
        assert!(stored >= 1000.0 * PAGE, "{content}: {stored} bytes of 16 MiB in 8");
        let compression = metric(&seen, "zram.compression").unwrap();
        assert!((least..=most).contains(&compression), "{content}: {compression}");
        let ratio = metric(&seen, "zram.ratio").unwrap();
        assert!(ratio <= compression && ratio > 0.7 * compression, "{content}: {ratio}, {compression}");
        assert_eq!(metric(&seen, "zram.same"), Some(0.0), "{content}");
        let incompressible = metric(&seen, "zram.incompressible").unwrap();
        let wanted = if content == "random" { stored / PAGE } else { 0.0 };
        assert!((incompressible - wanted).abs() <= OWN, "{content}: {incompressible} of {}", stored / PAGE);
    }
    // Before Linux 6.12 zram has a note of each page of zeros; from then on they do not come to the
    // device.
    let zero = run("zero");
    assert!(metric(&zero, "pages.present").unwrap() < 2500.0, "the others are in swap");
    let (stored, same) = (metric(&zero, "zram.stored").unwrap(), metric(&zero, "zram.same").unwrap());
    assert!(stored - same * PAGE <= OWN * PAGE, "{zero}");
    // Each of the others may be the only one of its size, in a group of up to eight pages of the
    // allocator's (zsmalloc).
    assert!(metric(&zero, "zram.memory").unwrap() <= 8.0 * (stored - same * PAGE), "{zero}");
}

fn what_pages_hold_decides_how_far_they_compress() {
    let lab = Lab::new();
    // What LZO of the kernel makes of them; it looks for what repeats in ever greater steps.
    bounds(1.7, 3.0, |content| lab.json(&format!("{LINE} --swap zram --content {content}")));
    let file = lab.path("content");
    std::fs::write(&file, "01234567".repeat(1024)).unwrap();
    let seen = lab.json(&format!("{LINE} --swap zram --content file:{}", file.display()));
    let (same, stored) = (metric(&seen, "zram.same").unwrap(), metric(&seen, "zram.stored").unwrap());
    assert!((same * PAGE - stored).abs() <= OWN * PAGE, "one word again and again: {same} of {stored}");
    lab.nothing_is_left("after zram");
}

fn zswap_says_what_it_keeps() {
    let lab = Lab::new();
    let enabled = "/sys/module/zswap/parameters/enabled";
    let before = std::fs::read_to_string(enabled).unwrap();
    let line = format!("{LINE} --swap file --set {enabled}");
    let on = lab.json(&format!("{line}=Y --content compressible:0.75"));
    let (stored, memory) = (metric(&on, "zswap.stored").unwrap(), metric(&on, "zswap.memory").unwrap());
    assert!(stored >= 1000.0 * PAGE, "{stored} bytes");
    assert!((2.5..=4.0).contains(&(stored / memory)), "{stored} in {memory}");
    assert!((metric(&on, "zswap.ratio").unwrap() - stored / memory).abs() < 1e-9);
    let off = lab.json(&format!("{line}=N"));
    assert_eq!(metric(&off, "zswap.stored"), None, "{off}");
    assert_eq!(std::fs::read_to_string(enabled).unwrap(), before, "as it was");
}

/// Pages that do not compress fill the pool six times. Beyond its limit each page that goes to swap
/// wakes a worker of the kernel. It looks at some pages of the pool, and writes back those that it
/// meets for the second time. How many depends on when the worker runs: with twice the pool, some
/// on a quiet machine, and none in five runs on another.
fn a_full_pool_is_written_back() {
    const TRIES: usize = 5;
    let (lab, before) = (Lab::new(), parameters());
    let pages = (6 * percent_of_memory() + (64 << 20)) / PAGE as u64;
    let line = format!(
        "run mapanon --pages {pages} --references 2000 --pattern uniform --touch write --memory 32M --swap file \
         --content random --html none --json{}{}{}",
        told("enabled", "Y"),
        told("max_pool_percent", "1"),
        told("accept_threshold_percent", "85")
    );
    let counters = ["zswpwb", "zswpout", "pswpout"];
    let mut runs = (0..TRIES).map(|_| {
        let begun = counters.map(|name| counted(name).unwrap());
        let seen = lab.json(&line);
        let grown: [u64; 3] = std::array::from_fn(|n| counted(counters[n]).unwrap() - begun[n]);
        assert_eq!(parameters(), before, "as they were");
        let of = |name: &str| metric(&seen, name).unwrap();
        let [written_back, out, back, rejected] =
            ["zswap.writeback", "zswap.out", "zswap.in", "zswap.rejected"].map(of);
        // The kernel's own counts around the whole run have the mapping's in them; what was written
        // back went to the device.
        assert!(
            written_back <= grown[0] as f64 && out <= grown[1] as f64,
            "{written_back}, {out}: {grown:?}"
        );
        assert!(written_back + rejected <= grown[2] as f64, "{written_back} and {rejected}: {grown:?}");
        assert!(of("swap.out") <= written_back + rejected, "the references' are of it: {seen}");
        // What is there by another count is what went in and did not come out: a page that is read
        // back is there no more. Who swaps beside it may let go of some.
        let (held, left) = (of("zswap.stored") / PAGE, out - back - written_back);
        assert!((held - left).abs() <= 0.02 * out, "{held} held, {left} left of {out}");
        (written_back, seen)
    });
    let found = runs.find(|(written_back, _)| *written_back > 0.0);
    let (_, seen) = found.expect("what does not fit into the pool has some of it written back");
    drop(runs);
    let of = |name: &str| metric(&seen, name).unwrap();
    // Writing back makes room between looks, so that a little more than the limit may be there for
    // a while.
    assert!(of("zswap.memory") <= percent_of_memory() as f64 * 1.02, "{seen}");
    assert!(lab.kept("@1").notes().contains("the zswap figures are those of the whole machine"), "{seen}");
    lab.shows("show @1", &["pages back to swap"]);
    let kept = &lab.kept("@1").0["environment"];
    for (name, value) in [
        ("enabled", "Y"),
        ("max-pool-percent", "1"),
        ("accept-threshold-percent", "85"),
        ("shrinker-enabled", before[3].trim()),
    ] {
        assert_eq!(kept[&format!("zswap.{name}")], value, "{kept}");
    }
    lab.nothing_is_left("after a full pool");
}

fn after_kill_9_zswap_is_put_back_by_the_next_start() {
    let (lab, before) = (Lab::new(), parameters());
    let percent = if before[1].trim() == "7" { "8" } else { "7" };
    let line = format!(
        "run mapanon --pages 64 --references 4000000000 --touch word --memory none --html none -q{}{}",
        told("max_pool_percent", percent),
        told("accept_threshold_percent", "77")
    );
    let mut child = lab.begin(&line, Stdio::null());
    eventually("it begins", || parameters()[1].trim() == percent && parameters()[2].trim() == "77");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.ok("patterns");
    assert_eq!(parameters(), before);
}

fn a_guests_pages_compress_as_the_hosts() {
    let lab = Lab::new();
    // The library of LZ4 itself makes 1.967 and 3.814 of the same pages; Debian's 6.12 has LZ4.
    bounds(1.96, 3.8, |content| {
        lab.json(&format!("{LINE} --content {content} --on kernel:NEW,accel=icount"))
    });
    // It has no zswap, and nothing is claimed of it: of the pages that do not compress.
    let seen = lab.json("show @2 --json");
    assert!(metric(&seen, "swap.out").unwrap() > 0.0, "{seen}");
    for name in ["stored", "memory", "ratio", "in", "out", "writeback", "rejected"] {
        assert_eq!(metric(&seen, &format!("zswap.{name}")), None, "{name}");
    }
}
