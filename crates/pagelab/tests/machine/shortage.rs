//! What the kernel does where memory is short, or is about to be: `oom`, `reclaim` and `fragment`.

use crate::common::Lab;
use crate::common::kept::Recorded;
use pagelab_testing::{CGROUP_1, KERNELS, LIMITS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        version_one_of_cgroups_has_no_reclaim: CGROUP_1;
        the_largest_process_is_killed: LIMITS;
        a_guest_kills_one_or_all: KERNELS;
        cold_pages_are_reclaimed_before_hot_ones: KERNELS;
        damon_is_refused_where_it_cannot_be_had_alone: KERNELS;
        a_scheme_pages_cold_pages_out_and_counts_them: KERNELS;
        a_scheme_that_counts_alone_pages_nothing_out: KERNELS;
        damon_settings_are_undone_and_foreign_ones_left_alone: KERNELS;
        huge_pages_are_few_in_pieces_and_many_after_compaction: KERNELS;
        scanned_and_reclaimed_pages_are_those_that_the_kernel_counts: KERNELS;
    }
}

fn version_one_of_cgroups_has_no_reclaim() {
    let lab = Lab::new();
    lab.refuses("run reclaim", 2, &["cgroup version 2", "--on kernel:"]);
    assert!(!lab.path("pagelab.db").exists());
}

/// The observations of a run's first repetition.
const MIB: f64 = 1024.0 * 1024.0;

/// In 16 MiB one holds 1, one 8 MiB, and the growing one cannot have more than 7: the second is the
/// largest. With half of the limit in addition the first counts as 9 MiB.
fn killed_as_reckoned(seen: &Recorded) {
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
    lab.shows(
        "run oom --held 256,2048 --grow 8192 --memory 16M --html none --name o",
        &["the process that holds 2048 was killed"],
    );
    let seen = lab.kept("o");
    killed_as_reckoned(&seen);
    // The machine's counters omit reclaim for a cgroup's limit.
    if std::fs::exists("/sys/fs/cgroup/memory/memory.stat").unwrap() {
        for name in ["scan.kswapd", "scan.direct", "steal.kswapd", "steal.direct"] {
            assert_eq!(seen.metric(name), None, "{name}");
            assert!(seen.column("scans", name).iter().all(Option::is_none), "{name}");
        }
        assert!(seen.notes().contains("only cgroup version 2 counts them"), "{}", seen.notes());
    }
    // Where there is room for all nobody is.
    lab.shows(
        "run oom --held 256 --grow 512 --memory 64M --html none --name r",
        &["no process was killed", "raise --grow"],
    );
    assert_eq!(lab.kept("r").metric("oom.killed.equal"), None);
}

fn a_guest_kills_one_or_all() {
    let lab = Lab::new();
    let line = "run oom --held 256,2048 --grow 8192 --memory 16M --html none --name o";
    lab.shows(
        &format!("{line} --functions --on kernel:NEW,accel=tcg"),
        &["with memory.oom.group 3 processes were killed"],
    );
    let seen = lab.kept("o");
    killed_as_reckoned(&seen);
    assert_eq!(seen.texts("kills", "who")[2], "all 3");
    let stalls = seen.numbers("kills", "stall");
    assert!(stalls.iter().all(|&stall| stall >= 0.0) && stalls[0] == seen.metric("oom.stall.equal").unwrap());
    // The kernel kills the first and then all of the group, and counts the first again where it
    // still has its memory then.
    let counted = seen.numbers("kills", "oom_kill")[2];
    assert!(counted == 3.0 || counted == 4.0, "the cgroup's own count: {counted}");
    // In the processes of the three situations once more.
    let looked = seen.cell("operations", "OOM: victim looked for", "count");
    assert!(looked >= 3.0, "{looked} calls of out_of_memory");
}

/// 8 MiB of the mapping are hot and 24 cold: a kernel that knew nothing would take a quarter from
/// the hot part.
fn cold_pages_are_reclaimed_before_hot_ones() {
    let lab = Lab::new();
    lab.shows(
        "run reclaim --html none --name r --functions --on kernel:NEW,accel=icount",
        &["of 16 MiB asked for"],
    );
    let seen = lab.kept("r");
    let had = seen.metric("reclaim.reclaimed").unwrap();
    let out = seen.metric("reclaim.pages").unwrap() * 4096.0;
    assert_eq!(seen.metric("reclaim.requested"), Some(16.0 * MIB));
    // The kernel reclaims in batches, up to two megabytes at once in each of eight steps.
    assert!((16.0 * MIB..=32.0 * MIB).contains(&had), "{had} bytes");
    // Two counts of one thing, but for pages of the program itself.
    assert!((had - out).abs() < MIB, "{had} reclaimed, {out} gone");
    let freed = seen.metric("reclaim.freed").unwrap();
    assert!((freed - had).abs() < MIB, "{had} reclaimed, {freed} less charged");
    // Nothing reclaims but what was asked for.
    let [scanned, stolen] = ["scan.direct", "steal.direct"].map(|name| seen.metric(name).unwrap());
    assert!((stolen - had / 4096.0).abs() < 128.0, "{stolen} pages in all, {had} bytes in the steps");
    assert!(scanned >= stolen, "{scanned} pages scanned, {stolen} reclaimed");
    assert_eq!((seen.metric("scan.kswapd"), seen.metric("steal.kswapd")), (Some(0.0), Some(0.0)));
    assert_eq!(seen.texts("scans", "phase")[7..], ["8", "reread"]);
    let refaults = seen.cell("scans", "reread", "refaults");
    assert!(refaults > 0.0 && refaults <= seen.metric("refaults").unwrap(), "{refaults} refaults at last");
    let cold = seen.metric("reclaim.cold").unwrap();
    assert!(cold > 0.75 && cold <= 1.0, "{cold} of them cold");
    assert!(seen.metric("reclaim.cost").unwrap() > 0.0);
    let away = |name: &str| seen.numbers("steps", name).iter().sum::<f64>();
    assert_eq!((away("out.cold") + away("out.hot")) * 4096.0, out);
    let (back, mistakes) =
        (seen.metric("reclaim.reread.faults").unwrap(), seen.metric("reclaim.mistakes").unwrap());
    assert!(back > 0.0 && back <= away("out.cold"), "{back} faults");
    assert!(mistakes <= away("out.hot"), "{mistakes} faults");
    // The load once more: at least one call per step, and a fault for each page that comes back. It
    // is a load of its own, in which the kernel may choose other pages: once there were 1.21 times
    // as many.
    let calls = |what: &str| seen.cell("operations", what, "count");
    assert!(calls("reclaim: for a limit") >= 8.0, "{}", calls("reclaim: for a limit"));
    let again = calls("fault: from swap");
    assert!((0.7..1.4).contains(&(again / (back + mistakes))), "{again} calls once more, {back} {mistakes}");
}

/// What is the machine's own, or a kernel's without it, is left alone.
fn damon_is_refused_where_it_cannot_be_had_alone() {
    let lab = Lab::new();
    let line = "run reclaim --by damon --html none --name d";
    let held = std::fs::read_to_string("/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds").ok();
    let why = match held.as_deref().map(str::trim) {
        None => Some("a kernel without DAMON"),
        Some("0") => None,
        Some(_) => Some("DAMON in use already"),
    };
    if let Some(why) = why {
        lab.refuses(line, 3, &[why]);
        assert!(!lab.path("pagelab.db").exists());
    }
    // Debian's 6.1 has none.
    lab.refuses(&format!("{line} --on kernel:OLD,accel=tcg"), 3, &["built without CONFIG_DAMON"]);
}

/// What else may take a page away for a moment, and grew over the run.
fn meanwhile(seen: &Recorded) -> String {
    const WORDS: [&str; 9] =
        ["migrate", "compact", "thp", "ksm", "pswp", "numa", "pgsteal", "pgscan", "pgdeactivate"];
    let counters = seen.0["counters"].as_array().unwrap().iter();
    let told = counters.filter_map(|counter| {
        let name = counter["name"].as_str()?;
        let grown = counter["after"].as_f64()? - counter["before"].as_f64()?;
        (grown != 0.0 && WORDS.iter().any(|word| name.contains(word))).then(|| format!("{name} {grown}"))
    });
    told.collect::<Vec<_>>().join(", ")
}

/// Growth of a counter of /proc/vmstat over the run.
fn grown(seen: &Recorded, name: &str) -> f64 {
    let counters = seen.0["counters"].as_array().unwrap();
    let counter = counters.iter().find(|counter| counter["name"] == name && counter["source"] == "vmstat");
    let counter = counter.unwrap_or_else(|| panic!("no {name}"));
    counter["after"].as_f64().unwrap() - counter["before"].as_f64().unwrap()
}

/// 8 MiB of the mapping are hot and 24 cold, of which the scheme may take 8.
fn a_scheme_pages_cold_pages_out_and_counts_them() {
    let lab = Lab::new();
    let line = "run reclaim --by damon --ask 2048 --steps 4 --seconds 0.4 --html none --name d";
    lab.shows(&format!("{line} --on kernel:NEW,accel=icount"), &["of 8 MiB allowed to a DAMON scheme"]);
    let seen = lab.kept("d");
    let out = seen.metric("reclaim.pages").unwrap();
    let away = |name: &str| seen.numbers("steps", name).iter().sum::<f64>();
    assert_eq!(away("out.cold") + away("out.hot"), out);
    // Sixteen windows of 128 pages are in the steps. Each end of them is known as of the last
    // window's end, and what the scheme counts is told before it acts for the last time: a window
    // more at either end.
    let [tried, applied] =
        ["reclaim.tried", "reclaim.applied"].map(|name| seen.metric(name).unwrap() / 4096.0);
    assert!(applied <= tried && tried <= 18.0 * 128.0, "{tried} pages tried, {applied} applied");
    assert_eq!(seen.numbers("scheme", "tried").iter().sum::<f64>(), tried * 4096.0);
    // Nothing but the scheme pages out: what pagemap says is gone lies in regions where it was
    // done, and was written to swap. A hot page may come back before it is written.
    assert!(out > 0.0 && out <= applied + 128.0, "{out} pages gone, {applied} applied; {}", meanwhile(&seen));
    let written = grown(&seen, "pswpout");
    assert!(away("out.cold") <= written && written <= out + 128.0, "{written} pages written, {out} gone");
    // A scheme that knew nothing would take a quarter from the hot part.
    let cold = seen.metric("reclaim.cold").unwrap();
    assert!(cold > 0.75 && cold <= 1.0, "{cold} of them cold");
    assert!(seen.metric("reclaim.mistakes").unwrap() <= away("out.hot"));
    // Swap is in zram, where writing ends at once and frees the frame.
    let freed = seen.metric("reclaim.freed").unwrap();
    assert!((freed - away("out.cold") * 4096.0).abs() < MIB, "{freed} bytes freed, {out} pages gone");
    assert_eq!(seen.metric("reclaim.reclaimed"), None, "the cgroup does not count what a scheme takes");
    let back = seen.metric("reclaim.reread.faults").unwrap();
    assert!(back > 0.0 && back <= away("out.cold"), "{back} faults");
    for name in ["reclaim.kdamond", "reclaim.cost", "reclaim.hot.cost"] {
        assert!(seen.metric(name).unwrap() > 0.0, "{name}");
    }
}

/// The same without its action: DAMON watches, the scheme finds cold regions, and no page goes.
fn a_scheme_that_counts_alone_pages_nothing_out() {
    let lab = Lab::new();
    let line = "run reclaim --by damon --action stat --steps 2 --seconds 0.3 --html none --name d";
    lab.ok(&format!("{line} --on kernel:NEW,accel=icount"));
    let seen = lab.kept("d");
    assert!(seen.metric("reclaim.tried").unwrap() > 0.0, "it found cold regions");
    for name in ["reclaim.applied", "reclaim.pages", "reclaim.mistakes", "reclaim.reread.faults"] {
        assert_eq!(seen.metric(name), Some(0.0), "{name}; {}", meanwhile(&seen));
    }
    assert_eq!(grown(&seen, "pswpout"), 0.0);
    assert_eq!((seen.metric("reclaim.cold"), seen.metric("reclaim.cost")), (None, None));
    assert!(seen.metric("reclaim.kdamond").unwrap() > 0.0, "watching takes time");
}

/// The start of a script that has a guest's DAMON to itself. `undone COMMAND` checks that pagelab
/// undoes the command's DAMON settings after an interrupt, and on its next start after a kill.
pub const WITH_DAMON: &str = r#"
kdamonds=/sys/kernel/mm/damon/admin/kdamonds
export PAGELAB_STATE_DIR=/tmp/state HOME=/tmp
mkdir -p /tmp/state
cd /tmp
undone() {
  for signal in KILL INT; do
    "$@" >answer 2>&1 &
    pid=$!
    while test "$(cat $kdamonds/0/state 2>/dev/null)" != on; do
      kill -0 $pid || { cat answer >&2; exit 31; }
      sleep 0.1
    done
    kill -$signal $pid
    wait $pid 2>/dev/null
    test $signal = INT || test "$(cat $kdamonds/nr_kdamonds)" = 1 || exit 32
    test $signal = KILL || test "$(cat $kdamonds/nr_kdamonds)" = 0 || exit 33
    PAGELAB patterns >/dev/null 2>&1
    test "$(cat $kdamonds/nr_kdamonds)" = 0 || exit 34
  done
}
"#;

/// Each exit status stands for one failed check.
fn damon_settings_are_undone_and_foreign_ones_left_alone() {
    const SCRIPT: &str = r#"
PAGELAB run reclaim --by damon --steps 1 --seconds 0.2 --html none -q >answer 2>&1 || { cat answer >&2; exit 11; }
test "$(cat $kdamonds/nr_kdamonds)" = 0 || exit 12
undone PAGELAB run reclaim --by damon --steps 1000 --html none -q
echo 1 >$kdamonds/nr_kdamonds
PAGELAB run reclaim --by damon >answer 2>&1
test $? = 3 || exit 13
grep -q 'in use already' answer || exit 14
test "$(cat $kdamonds/nr_kdamonds)" = 1 || exit 15
"#;
    let lab = Lab::new();
    let script =
        format!("{WITH_DAMON}{SCRIPT}").replace("PAGELAB ", concat!(env!("CARGO_BIN_EXE_pagelab"), " "));
    let line = "run command --memory none --html none --on kernel:NEW,accel=tcg,ram=2G -- sh -c";
    let output = lab.command(line).arg(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn huge_pages_are_few_in_pieces_and_many_after_compaction() {
    let lab = Lab::new();
    let line = "run fragment --html none --name f --functions";
    lab.shows(&format!("{line} --on kernel:OLD,accel=tcg"), &["huge pages allocated in fragmented memory"]);
    let seen = lab.kept("f");
    let had = seen.numbers("ways", "had");
    let [whole, pieces, direct, collapse, compacted] = had[..] else { panic!("{had:?}") };
    assert_eq!(whole, 192.0, "a gigabyte is free");
    let blocks = seen.numbers("ways", "blocks");
    // Filling leaves 32 MiB, sixteen huge pages; some are in lists of the processor, and in no
    // block.
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
    // Filling is in none of the ways.
    for (name, counter) in [
        ("scan.kswapd", "pgscan_kswapd"),
        ("scan.direct", "pgscan_direct"),
        ("steal.kswapd", "pgsteal_kswapd"),
        ("steal.direct", "pgsteal_direct"),
    ] {
        assert_eq!(seen.metric(name), Some(grown(counter)), "{name}");
        let ways: f64 = seen.numbers("scans", name).iter().sum();
        assert!(ways <= grown(counter), "{name}: {ways}");
    }
    let (stall, success) = (seen.numbers("ways", "stall"), seen.numbers("ways", "success"));
    assert_eq!(stall[..2], [0.0, 0.0], "no compaction where there is to be none");
    assert!(stall[2] > 0.0 && success[2] > 0.0, "{stall:?} {success:?}");
    let calls = seen.cell("operations", "compaction: for an allocation", "count");
    assert!(calls > 0.5 * stall[2], "{calls} calls once more, {stall:?}");
}

/// Performed inside a guest with two nodes: a shell reads the kernel's counters before and after
/// each experiment, of the root cgroup or of the machine, and what pagelab says must agree. Three
/// seconds on either side, for the kernel sums a cgroup's counters every two. tier's hot set is
/// large and its time long enough that kswapd has to demote: with 512 pages and 0.4 s some runs
/// pass without.
fn scanned_and_reclaimed_pages_are_those_that_the_kernel_counts() {
    const SCRIPT: &str = r#"
export PAGELAB_STATE_DIR=/tmp/state HOME=/tmp
mkdir -p /tmp/state
cd /tmp
counter() {
  found=0
  while read -r name value; do
    test "$name" != "$2" || found=$value
  done <"$1"
  echo "$found"
}
grown() {
  sum=0
  for one; do
    sum=$((sum + $(counter after $one) - $(counter before $one)))
  done
  echo "$sum"
}
metric() {
  while IFS=, read -r run repetition outcome kind name item row unit value text; do
    test "$kind $name" != "metric $1" || echo "${value%.*}"
  done <csv
}
agree() {
  ours=$(metric $1)
  shift
  kernels=$(grown "$@")
  apart=$((ours - kernels))
  echo "$experiment: $* grew by $kernels, recorded are $ours" >>said
  test -n "$ours" && test ${apart#-} -le 192 || { cat said >&2; exit 11; }
}
for experiment in reclaim neighbour oom tier; do
  file=/sys/fs/cgroup/memory.stat
  case $experiment in
    reclaim) line="" ;;
    neighbour) line="--pages 2048 --references 4000 --neighbour 4096 --memory 16M" ;;
    oom) line="--held 256,2048 --grow 8192 --memory 16M --swap zram" ;;
    tier) line="--hot 4096 --positions 1 --seconds 3" file=/proc/vmstat ;;
  esac
  sleep 3
  cat $file >before
  PAGELAB run $experiment $line --html none --name $experiment -q >out 2>&1 || { cat out >&2; exit 12; }
  sleep 3
  cat $file >after
  PAGELAB export $experiment --format csv >csv
  for what in scan steal; do
    agree $what.kswapd pg${what}_kswapd
    agree $what.direct pg${what}_direct pg${what}_proactive
  done
  agree refaults workingset_refault_anon workingset_refault_file
  test $(($(metric scan.kswapd) + $(metric scan.direct))) -gt 1000 || { cat said >&2; exit 13; }
done
test $(metric steal.kswapd) -gt 0 || { cat said >&2; exit 14; }
"#;
    let lab = Lab::new();
    let script = SCRIPT.replace("PAGELAB ", concat!(env!("CARGO_BIN_EXE_pagelab"), " "));
    let line = "run command --memory none --html none --on kernel:NEW,accel=tcg,numa=512M+1G@slow -- sh -c";
    let output = lab.command(line).arg(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
