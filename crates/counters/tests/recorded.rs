//! The tree of recorded machines: golden text, what a selection opens, and files that make no sense.

use std::path::{Path, PathBuf};

use pagelab_counters::census::Census;
use pagelab_counters::views::prstat::Moment;
use pagelab_counters::views::{Width, doctor, iostat, memstat, prstat, stat, vmstat};
use pagelab_counters::{Root, Selection, Snapshot, Tree, openmetrics};
use proptest::prelude::*;

const MACHINES: [&str; 3] = ["linux-6.18-cgroup1", "adapted-cgroup2", "adapted-4.19"];

fn fixture(machine: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(machine)
}

fn tree(machine: &str) -> Tree {
    Tree::new(Root::new(fixture(machine)))
}

fn everything() -> Selection {
    // The second names what is read only when named.
    Selection::parse(["", "smaps"]).unwrap()
}

#[test]
fn the_whole_tree_of_each_machine() {
    for machine in MACHINES {
        let snapshot = tree(machine).read(&everything());
        insta::assert_snapshot!(format!("tree_{machine}"), stat::parsable(&snapshot));
    }
}

#[test]
fn figures_to_read_name_their_units() {
    let selection = Selection::parse(["meminfo:::/^Mem/", "pressure::memory", "swaps"]).unwrap();
    insta::assert_snapshot!(stat::human(&tree("adapted-cgroup2").read(&selection), false));
}

#[test]
fn vmstat_since_boot_of_each_machine() {
    let lines: Vec<String> = MACHINES
        .iter()
        .map(|machine| {
            let tree = tree(machine);
            let now = tree.read(&vmstat::selection());
            vmstat::Row::between(None, &now, tree.root().page_size(), None).line(vmstat::Layout::default())
        })
        .collect();
    insta::assert_snapshot!(format!("{}\n{}", vmstat::heading(vmstat::Layout::default()), lines.join("\n")));
}

#[test]
fn openmetrics_of_a_machine() {
    let operands = [
        "pressure",
        "meminfo:::Mem*",
        "cgroup:2:/system.slice:current",
        "swaps",
        "settings:::/enabled|swap/",
    ];
    let snapshot = tree("adapted-cgroup2").read(&Selection::parse(operands).unwrap());
    insta::assert_snapshot!(openmetrics::render(snapshot.samples()));
}

#[test]
fn one_statistic_opens_its_own_file_only() {
    for (operand, most) in [
        ("vmstat:0:vm:pgfault", 1),
        ("cgroup:2", 60),
        ("process:900::minor_faults", 2),
        ("process:900::rss_anon", 3),
        ("settings:0:vm:swappiness", 1),
        ("pressure::memory", 1),
    ] {
        let tree = tree("linux-6.18-cgroup1");
        let snapshot = tree.read(&Selection::parse([operand]).unwrap());
        assert!(!snapshot.samples().is_empty(), "{operand}");
        let opened = tree.root().opened();
        assert!(opened <= most, "{operand} opened {opened} files");
    }
    let tree = tree("linux-6.18-cgroup1");
    assert!(tree.read(&Selection::parse(["nothing"]).unwrap()).samples().is_empty());
    assert_eq!(tree.root().opened(), 0);
}

#[test]
fn a_selection_gives_the_same_as_the_whole_tree() {
    let tree = tree("linux-6.18-cgroup1");
    let all = tree.read(&everything());
    for sample in all.samples() {
        let operand = format!("{}:{}::{}", sample.module, sample.instance, sample.statistic);
        let one = tree.read(&Selection::parse([operand.as_str()]).unwrap());
        assert!(one.samples().contains(sample), "{}", sample.full_name());
    }
}

#[test]
fn recorded_counters_read_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let copying = Tree::new(Root::copying(fixture("adapted-cgroup2"), folder.path()));
    copying.root().page_size();
    let first = copying.read(&everything());
    let again = Tree::new(Root::new(folder.path())).read(&everything());
    assert_eq!(first.samples(), again.samples());
    assert!(first.samples().len() > 700);
}

#[test]
fn this_machine_has_a_tree() {
    let snapshot = Tree::live().read(&Selection::all());
    assert!(snapshot.number("vmstat", 0, "vm", "pgfault").unwrap() > 0.0);
    assert!(snapshot.number("meminfo", 0, "mem", "MemTotal").unwrap() > 0.0);
    let own = u64::from(std::process::id());
    assert!(snapshot.module("process").iter().any(|s| s.instance == own && s.statistic == "rss"));
}

/// The files of a recorded machine, to be replaced one at a time.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Draws every view there is.
fn every_view(tree: &Tree, snapshot: Snapshot) {
    let page_size = tree.root().page_size();
    let _ = vmstat::Row::between(None, &snapshot, page_size, None).line(vmstat::Layout::default());
    let _ = openmetrics::render(snapshot.samples());
    let devices = iostat::Moment { counters: snapshot.clone(), waits: None };
    let _ = iostat::rows(None, &devices).iter().map(|row| row.line(Width::Whole, true)).collect::<String>();
    let _ = memstat::table(&memstat::lines(&snapshot), page_size);
    let _ = memstat::exact_lines(&Census::default(), &snapshot, page_size);
    let _ = memstat::by_process(&snapshot)
        .iter()
        .chain(&memstat::by_cgroup(&snapshot))
        .map(|h| h.line(Width::Whole))
        .collect::<String>();
    let now = Moment { counters: snapshot, ..Moment::default() };
    let _ = prstat::rows(&Moment::default(), &now, true)
        .iter()
        .map(|r| r.microstates("x", Width::Whole) + &r.summary("x", Width::Whole))
        .collect::<String>();
    let _ = doctor::examine(&Moment::default(), &now, &Snapshot::default(), page_size);
}

/// A recorded file cut, with words replaced, or something else entirely.
fn damaged() -> impl Strategy<Value = (usize, usize, String, bool)> {
    (0..10_000_usize, 0..6_000_usize, "[ -~\n\t\u{e9}]{0,80}", any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_text_makes_reading_fail((which, cut, junk, keep_rest) in damaged(), big in any::<u64>()) {
        for machine in ["adapted-cgroup2", "linux-6.18-cgroup1"] {
            let source = fixture(machine);
            let mut all = Vec::new();
            files(&source, &mut all);
            all.sort();
            let victim = &all[which % all.len()];
            let text = std::fs::read(victim).unwrap();
            let cut = cut % (text.len() + 1);
            let mut damaged = text[..cut].to_vec();
            damaged.extend_from_slice(junk.as_bytes());
            damaged.extend_from_slice(format!(" {big} ").as_bytes());
            if keep_rest {
                damaged.extend_from_slice(&text[cut..]);
            }
            // Only the damaged file's own folder need exist, but mounts lead to the cgroups.
            let folder = tempfile::tempdir().unwrap();
            for file in [victim, &source.join("proc/mounts"), &source.join("proc/900/comm"), &source.join("proc/900/stat")] {
                let copy = folder.path().join(file.strip_prefix(&source).unwrap());
                std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
                let bytes = if file == victim { damaged.clone() } else { std::fs::read(file).unwrap() };
                std::fs::write(copy, bytes).unwrap();
            }
            let tree = Tree::new(Root::new(folder.path()));
            let snapshot = tree.read(&everything());
            let _ = stat::human(&snapshot, true);
            every_view(&tree, snapshot);
        }
    }
}
