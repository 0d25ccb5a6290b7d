//! What pages hold (`--content`), and how far they compress in zram and in zswap.

mod common;

use std::path::Path;
use std::process::ExitCode;

use common::{Lab, metric};
use pagelab_testing::{KERNELS, LIMITS, Need, run, tests};
use serde_json::Value;

fn main() -> ExitCode {
    run(tests! {
        a_wrong_content_is_refused;
        what_pages_hold_decides_how_far_they_compress: LIMITS, ZRAM;
        zswap_says_what_it_keeps: LIMITS, ZSWAP;
        a_guests_pages_compress_as_the_hosts: KERNELS;
    })
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

const LINE: &str = "run mapanon --pages 4096 --references 8000 --pattern uniform --touch word --memory 8M \
                    --report none --json";
const PAGE: f64 = 4096.0;
/// Pages in the swap that are not the mapping's: the header, and the program's own, of which six were seen.
const OWN: f64 = 64.0;

fn a_wrong_content_is_refused() {
    let lab = Lab::new();
    let error = lab.fails("run mapanon --content zeros", 2);
    assert!(error.contains("compressible:SHARE (from 0 to 1), zero, random, file:PATH"), "{error}");
    let error = lab.fails("run mapanon --content file:/nowhere", 2);
    assert!(error.contains("cannot take the content file:/nowhere"), "{error}");
    let error = lab.fails("run mapanon --content zero --on model:lru", 2);
    assert!(error.contains("models which page is referenced, not what it holds"), "{error}");
}

/// The upper bounds are of what a page holds: of `compressible:SHARE` no compressor makes less than the rest of a page. Beside
/// the mapping's there are the header of the swap and what other programs put there.
/// `half` and `quarter` are what the machine's compressor makes of such pages at least.
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
    // Before Linux 6.12 zram has a note of each page of zeros; from then on they do not come to the device.
    let zero = run("zero");
    assert!(metric(&zero, "pages.present").unwrap() < 2500.0, "the others are in swap");
    assert!(metric(&zero, "zram.memory").unwrap() < 64.0 * PAGE, "{zero}");
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

fn a_guests_pages_compress_as_the_hosts() {
    let lab = Lab::new();
    let kernel = pagelab_testing::kernels()[1].display().to_string();
    // The library of LZ4 itself makes 1.967 and 3.814 of the same pages; Debian's 6.12 has LZ4.
    bounds(1.96, 3.8, |content| {
        lab.json(&format!("{LINE} --content {content} --on kernel:{kernel},accel=icount"))
    });
    let error = lab.fails(&format!("run mapanon --content file:/etc/passwd --on kernel:{kernel}"), 2);
    assert!(error.contains("has no files but its own"), "{error}");
}
