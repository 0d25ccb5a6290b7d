//! Memory itself: its bandwidth, equal pages merged, tiers.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::common::{Lab, eventually, joined};
use pagelab_testing::{ALONE, KERNELS, Need, ROOT, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        four_loops_move_bytes: ALONE;
        ksm_settings_are_restored: ROOT, KSM, ALONE;
        the_working_set_of_a_dynamic_program_is_its_private_pages: ALONE;
        after_kill_9_ksmd_is_put_back_by_the_next_start: ROOT, KSM, ALONE;
        equal_pages_share_and_a_write_parts_them: KERNELS, ALONE;
        a_hot_set_moves_between_tiers: KERNELS, ALONE;
        nodes_of_one_tier_are_balanced_and_nothing_is_promoted: KERNELS, ALONE;
        a_kernel_that_does_not_read_the_tables_balances_alone: KERNELS, ALONE;
    }
}

/// Equal pages can be merged.
const KSM: Need = Need {
    name: "ksm",
    on: &[],
    met: || match fs::exists("/sys/kernel/mm/ksm/run") {
        Ok(true) => Ok(()),
        _ => Err("the kernel has no KSM (CONFIG_KSM)".into()),
    },
};

/// The arrays are checked by the experiment itself, element by element; how fast it is only has to
/// be possible.
fn four_loops_move_bytes() {
    let lab = Lab::new();
    lab.shows(
        "run bandwidth --sizes 256K,2M --threads 1,1000 --rounds 3 --html none --name b",
        &["median bandwidth, largest working set: copy"],
    );
    let kept = lab.kept("b");
    for name in
        ["bandwidth.copy", "bandwidth.scale", "bandwidth.add", "bandwidth.triad", "bandwidth.triad.cache"]
    {
        let rate = kept.metric(name).unwrap();
        assert!((1e7..1e13).contains(&rate), "{name}: {rate} bytes a second");
    }
    assert_eq!(kept.metric("bandwidth.triad.threads"), None, "there are not a thousand processors");
    assert!(kept.notes().contains("each needs a CPU of its own"), "{}", kept.notes());
    let triad = kept.column("bandwidth", "triad");
    assert_eq!(triad.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true, false]);
    assert_eq!(kept.column("bandwidth", "size")[3], Some(2.0 * 1024.0 * 1024.0));
    if std::thread::available_parallelism().unwrap().get() > 1 {
        lab.ok("run bandwidth --sizes 1M --threads 2 --rounds 2 --html none --name two");
        let kept = lab.kept("two");
        assert!(kept.metric("bandwidth.triad").unwrap() > 1e7);
    }
}

/// A program that touches 5 MiB of 10 MiB again and again.
const HOT: &str = r#"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    size_t hot = 5 << 20;
    char *memory = mmap(0, 2 * hot, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, 2 * hot, MADV_NOHUGEPAGE);
    memset(memory, 1, 2 * hot);
    write(1, "r", 1);
    for (;;) {
        for (size_t at = 0; at < hot; at += 4096)
            ((volatile char *)memory)[at]++;
        usleep(5000);
    }
}
"#;

/// Another program uses libc meanwhile, so that its pages are marked as referenced.
fn the_working_set_of_a_dynamic_program_is_its_private_pages() {
    let lab = Lab::new();
    let mut hot = Command::new(lab.compile("hot", HOT, &[])).stdout(Stdio::piped()).spawn().unwrap();
    hot.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let mut busy = Command::new("sh").args(["-c", "while :; do ls / > /dev/null; done"]).spawn().unwrap();
    let output = lab.command(&format!("wss {} --interval 1 --count 3 --json --no-keep", hot.id())).output();
    for child in [&mut hot, &mut busy] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    let lines: Vec<serde_json::Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{output}");
    for line in lines {
        let bytes = |name: &str| line[name].as_f64().unwrap();
        let private = bytes("private_referenced_bytes");
        assert!((private / f64::from(5 << 20) - 1.0).abs() < 0.03, "{line}");
        assert!(bytes("shared_referenced_bytes") > 100e3, "libc is shared: {line}");
        assert!((bytes("lower_bound_bytes")..=bytes("upper_bound_bytes")).contains(&private), "{line}");
    }
}

/// What ksmd is told, in every file that the experiment writes.
fn ksmd() -> Vec<String> {
    ["run", "advisor_mode", "sleep_millisecs", "pages_to_scan"]
        .iter()
        .map(|file| fs::read_to_string(format!("/sys/kernel/mm/ksm/{file}")).unwrap_or_default())
        .collect()
}

fn ksm_settings_are_restored() {
    let (lab, before) = (Lab::new(), ksmd());
    lab.ok("run ksm --pages 1024 --contents 4 --scan 777 --sleep 3 --html none --name k");
    assert_eq!(ksmd(), before);
    let kept = lab.kept("k");
    // 512 equal pages of four contents, 128 each.
    assert_eq!((kept.metric("ksm.sharing"), kept.metric("ksm.shared")), (Some(508.0), Some(4.0)));
    assert!(kept.metric("ksm.time").unwrap() > 0.0);
    lab.shows("run ksm --dry-run", &["/sys/kernel/mm/ksm/pages_to_scan (now"]);
}

fn after_kill_9_ksmd_is_put_back_by_the_next_start() {
    let (lab, before) = (Lab::new(), ksmd());
    // Scanning one page a second, it is never done.
    let line = "run ksm --pages 4096 --scan 1 --sleep 1000 --html none -q";
    let mut child = lab.begin(line, Stdio::null());
    eventually("it begins", || ksmd()[0].trim() == "1" && ksmd()[2].trim() == "1000");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(ksmd(), before);
    lab.ok("patterns");
    assert_eq!(ksmd(), before);
}

/// Of 2,048 pages half are equal, 128 of each of eight contents: eight frames serve 1,024 pages.
/// The kernel counts the same for the process. Half of them are written, a fault each; the others
/// are parted by the advice.
fn equal_pages_share_and_a_write_parts_them() {
    let lab = Lab::new();
    let line = "run ksm --pages 2048 --equal 50% --contents 8 --sleep 1 --html none --name k";
    lab.shows(&format!("{line} --on kernel:NEW,accel=icount"), &["merging saved"]);
    let kept = lab.kept("k");
    assert_eq!((kept.metric("ksm.sharing"), kept.metric("ksm.shared")), (Some(1016.0), Some(8.0)));
    let process = kept.column("merging", "process");
    assert_eq!(process.last().unwrap().unwrap(), 1024.0, "{process:?}");
    // And for the machine, where nothing else is merged.
    let machine = ["sharing", "shared"].map(|name| kept.column("merging", name).pop().unwrap());
    assert_eq!(machine, [Some(1016.0), Some(8.0)]);
    // Each known page costs 64 bytes of bookkeeping at least (struct ksm_rmap_item, mm/ksm.c), of
    // some 2,048 pages.
    let profit = kept.metric("ksm.profit").unwrap();
    let saved = 1024.0 * 4096.0;
    assert!(profit < saved && profit > saved - 2.0 * 64.0 * 2100.0, "{profit} of {saved}");
    assert_eq!(kept.metric("ksm.time"), None, "sleeping takes no instructions");
    assert_eq!(kept.column("merging", "elapsed").last(), Some(&None));
    assert!(kept.metric("ksm.cpu").unwrap() > 1e6, "2,048 pages are read at least once");
    assert_eq!(kept.column("unmerging", "pages"), [Some(512.0), Some(512.0), Some(512.0)]);
    let faults = kept.column("unmerging", "faults");
    // The thread's count may have a page or two of its own code or stack in it.
    let counted = |of: Option<f64>| (512.0 * of.unwrap()).round() as u64;
    assert!((512..=514).contains(&counted(faults[0])), "a fault for each merged page: {faults:?}");
    assert!(counted(faults[1]) <= 2, "none for another: {faults:?}");
    let [copy, write] = ["ksm.copy", "ksm.write"].map(|name| kept.metric(name).unwrap());
    // A copy reads and writes 512 words.
    assert!(copy > 500.0 && write < 100.0, "{copy} and {write} instructions");
}

/// The slow node is in a tier of its own by what the machine's tables say. The mapping does not fit
/// into the fast one, and the hot set is at its end.
fn a_hot_set_moves_between_tiers() {
    let lab = Lab::new();
    let line = "run tier --hot 1024 --positions 1 --seconds 1 --html none --name t --functions";
    lab.shows(
        &format!("{line} --on kernel:NEW,numa=192M+512M@slow,accel=icount"),
        &["with demotion and balancing"],
    );
    let kept = lab.kept("t");
    let hot = |situation: &str| kept.metric(&format!("tier.hot.{situation}")).unwrap();
    assert_eq!(["fast", "slow", "interleaved", "off"].map(hot), [1.0, 0.0, 0.5, 0.0]);
    // The latencies of QEMU's table, which the option says are 100 and 300 ns.
    let latency = |situation: &str| kept.metric(&format!("tier.latency.{situation}")).unwrap();
    assert_eq!(["fast", "slow", "interleaved", "off"].map(latency), [100.0, 300.0, 200.0, 300.0]);
    assert!((latency("on") - (300.0 - 200.0 * hot("on"))).abs() < 1e-6);
    // Without demotion and promotion nothing moves; with them promotion brings the hot set to the
    // fast node.
    let [end, promoted, demoted] = ["end", "promoted", "demoted"].map(|name| kept.column("tiers", name));
    for situation in 0..4 {
        assert_eq!((promoted[situation], demoted[situation]), (Some(0.0), Some(0.0)), "{situation}");
    }
    assert!(end[4].unwrap() > 0.5, "{end:?}");
    assert_eq!([kept.metric("tier.promoted"), kept.metric("tier.demoted")], [promoted[4], demoted[4]]);
    assert!(
        promoted[4].unwrap() >= 1024.0 * end[4].unwrap(),
        "who is on the fast node was promoted: {promoted:?}"
    );
    assert!(demoted[4].unwrap() > 0.0, "{demoted:?}");
    let balanced = kept.cell("operations", "migration: page balanced or promoted", "count");
    assert!(balanced > 0.5 * promoted[4].unwrap(), "{balanced} calls once more, {promoted:?}");
    // What is demoted is reclaimed from its node, and the situations are all of the run.
    let stolen = |row: usize| {
        ["steal.kswapd", "steal.direct"]
            .map(|name| kept.column("scans", name)[row].unwrap())
            .iter()
            .sum::<f64>()
    };
    assert!(stolen(4) >= demoted[4].unwrap(), "{} reclaimed, {demoted:?}", stolen(4));
    for (name, counter) in [("scan.kswapd", "pgscan_kswapd"), ("steal.kswapd", "pgsteal_kswapd")] {
        let sum: f64 = kept.numbers("scans", name).iter().sum();
        assert_eq!((Some(sum), kept.metric(name)), (Some(kept.grown(counter)), Some(sum)), "{name}");
    }
    // Every page is somewhere, by two counts of the kernel's, but for those on their way: a batch
    // of 512 and what reclaim takes at once.
    let of = |name: &str| -> Vec<f64> {
        kept.column("tier.pages", name).into_iter().map(Option::unwrap).collect()
    };
    let [hot_fast, hot_slow, fast, slow] = ["hot.fast", "hot.slow", "fast", "slow"].map(of);
    let (promoted, demoted) = (of("promoted"), of("demoted"));
    let begin = fast.len() / 5 * 4;
    let whole = (0..fast.len()).map(|row| fast[row] + slow[row]).skip(begin).fold(0.0, f64::max);
    for row in begin..fast.len() {
        let (hot, all) = (hot_fast[row] + hot_slow[row], fast[row] + slow[row]);
        assert!((1024.0 - 544.0..=1024.0).contains(&hot), "{hot}");
        assert!(all >= whole - 544.0, "{all} of {whole}");
        // The mapping gains on the fast node no more than was promoted, and loses no more than was demoted.
        let gained = fast[row] - fast[begin];
        let (most, least) = (promoted[row] - promoted[begin], demoted[row] - demoted[begin]);
        assert!(
            gained <= most + 544.0 && gained >= -least - 544.0,
            "{gained}: {most} promoted, {least} demoted"
        );
    }
}

/// Two nodes alike: the hot set begins on the other one, and balancing brings it over.
fn nodes_of_one_tier_are_balanced_and_nothing_is_promoted() {
    let lab = Lab::new();
    let line = "run tier --pages 4096 --hot 512 --positions 1 --seconds 1 --html none --name t";
    lab.ok(&format!("{line} --on kernel:NEW,numa=2x192M,accel=icount"));
    let kept = lab.kept("t");
    assert_eq!((kept.metric("tier.promoted"), kept.metric("tier.latency.on")), (None, None));
    assert!(kept.notes().contains("in one tier"), "{}", kept.notes());
    assert_eq!(kept.metric("tier.hot.off"), Some(0.0), "without balancing it stays on the other node");
    assert!(kept.metric("tier.hot.on").unwrap() > 0.0, "with balancing it comes over");
}

/// Linux 6.1 has the latencies of the machine's tables and both nodes in one tier: there is a
/// modelled wait, and no promotion.
fn a_kernel_that_does_not_read_the_tables_balances_alone() {
    let lab = Lab::new();
    let line = "run tier --hot 512 --positions 1 --seconds 0.6 --html none --name t";
    let seen = joined(&lab.ok(&format!("{line} --on kernel:OLD,numa=192M+256M@slow,accel=icount")));
    assert!(seen.contains("; with balancing alone") && !seen.contains("demotion and balancing"), "{seen}");
    let kept = lab.kept("t");
    assert!(kept.notes().contains("in one tier"), "{}", kept.notes());
    assert_eq!([kept.metric("tier.promoted"), kept.metric("tier.demoted")], [None, None]);
    let hot = |situation: &str| kept.metric(&format!("tier.hot.{situation}")).unwrap();
    assert_eq!(["fast", "slow", "interleaved", "off"].map(hot), [1.0, 0.0, 0.5, 0.0]);
    let latency = |situation: &str| kept.metric(&format!("tier.latency.{situation}")).unwrap();
    assert_eq!(["fast", "slow", "off"].map(latency), [100.0, 300.0, 300.0]);
    assert!(hot("on") > 0.0, "balancing brings it over");
    assert!((latency("on") - (300.0 - 200.0 * hot("on"))).abs() < 1e-6);
}
