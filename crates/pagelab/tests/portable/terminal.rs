//! Every command on a terminal of 80 columns, and before a reader that goes away.

use std::io::Read;
use std::process::Stdio;

use crate::common::Lab;

/// What each command prints is looked at with these arguments. Of a run its name is its
/// experiment's first letters.
const LINES: &[(&str, &[&str])] = &[
    ("run", &["run --quiet --html none mapanon --memory none --pages 100 --references 1000 --name r1"]),
    ("list", &["list", "list --check"]),
    (
        "show",
        &[
            "show map",
            "show map2",
            "show vm",
            "show fork",
            "show scale",
            "show read",
            "show seq",
            "show clock",
            "show com --all",
            "show rec",
            "show mod",
        ],
    ),
    (
        "compare",
        &[
            "compare map map2",
            "compare map map2 --all",
            "compare mod mod2",
            "compare vm vm",
            "compare map mod",
        ],
    ),
    ("history", &["history", "history mapanon"]),
    ("mechanisms", &["mechanisms --list"]),
    ("reproduce", &["reproduce gorman-2002"]),
    (
        "replay",
        &["replay zipf:0.9 --pages 1000 --references 20000 --on lru --on opt --on sieve --memory 100p 500p"],
    ),
    ("mrc", &["mrc zipf:0.9 --pages 1000 --references 20000"]),
    ("stat", &["stat vmstat:::pgfault", "stat swaps", "stat nothing", "stat --modules"]),
    ("vmstat", &["vmstat", "vmstat -p", "vmstat -s", "vmstat -S", "vmstat --xcalls", "vmstat 0.2 2"]),
    ("iostat", &["iostat", "iostat -xn", "iostat -xnc 0.2 2"]),
    (
        "memstat",
        &[
            "memstat",
            "memstat --quick",
            "memstat --by process",
            "memstat --by cgroup",
            "memstat --files",
            "memstat --files /etc",
        ],
    ),
    (
        "prstat",
        &["prstat -n 400 0.2 1", "prstat -m -n 400 0.2 1", "prstat -mL -n 400 0.2 1", "prstat -p 999999999"],
    ),
    ("doctor", &["doctor --watch 0.2 --count 1", "doctor"]),
    ("record", &["record --interval 0.1 --count 3 --name r2"]),
    ("wss", &["wss zipf:0.9 --pages 1000 --references 20000"]),
    ("experiments", &["experiments"]),
    ("targets", &["targets", "targets --honours"]),
    ("patterns", &["patterns"]),
    ("policies", &["policies", "policies --conformance"]),
    ("explain", &["explain", "explain knee", "explain access.mean"]),
];

/// These print for other programs, write files, serve, or draw a screen of their own (looked at
/// where they are).
const OTHERS: &[&str] = &[
    "report",
    "bisect-run",
    "fuzz-reclaim",
    "export",
    "import",
    "top",
    "trace",
    "reduce",
    "convert",
    "fixture",
    "clock",
    "completions",
    "site",
    "man",
    "help",
    // They need limits, BPF or a guest: tests on the machine look at them.
    "need",
    "cachestat",
    "shadow",
    "gate",
];

/// A notebook with a run of each experiment.
fn filled() -> Lab {
    let lab = Lab::new();
    let small = "mapanon --pages 400 --references 2000";
    for run in [
        &format!("{small} --memory none --repeat 2 --name map"),
        &format!("{small} --memory none --repeat 2 --name map2"),
        &format!("{small} --name mod --on model:linux-mglru --memory 1M"),
        &format!("{small} --name mod2 --on model:opt --memory 1M"),
        "vmtest --memory none --sizes 16K..1M:1 --seconds 0.02 --name vm",
        "forkstorm --forks 20 --profile 0 --name fork",
        "faultscale --workers 1,2,3,4 --seconds 0.02 --name scale",
        "fileread --memory none --sizes 256K,1M --reads 200 --name read",
        "seqread --size 1M --transfers 4K,256K --name seq",
        "clock --steps 2 --step 20 --name clock",
        "command --name com -- sort /etc/passwd",
    ] {
        lab.ok(&format!("run --quiet --html none {run}"));
    }
    lab.ok("record --interval 0.1 --count 5 --name rec");
    lab
}

#[test]
fn every_command_suits_a_terminal() {
    let lab = filled();
    every_command_fits_eighty_columns(&lab);
    a_reader_that_goes_away_is_no_failure(&lab);
}

fn every_command_fits_eighty_columns(lab: &Lab) {
    let help = lab.ok("--help");
    let commands = help.split("Usage:").nth(1).unwrap().split("Options:").next().unwrap();
    for line in commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let command = line.trim().split(' ').next().unwrap();
        let known = LINES.iter().any(|(name, _)| *name == command) || OTHERS.contains(&command);
        assert!(known, "{command} is not looked at");
    }
    let mut long = Vec::new();
    for arguments in LINES.iter().flat_map(|(_, lines)| *lines) {
        let output = lab.command(arguments).env("COLUMNS", "80").output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{arguments}: {output:?}");
        for line in
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).join("\n").lines()
        {
            // A name is not broken, however long it is.
            if line.chars().count() > 80 && line.trim().contains(' ') {
                long.push(format!("{arguments} ({}): {line}", line.chars().count()));
            }
        }
    }
    assert!(long.is_empty(), "{} lines are too long:\n{}", long.len(), long.join("\n"));
}

fn a_reader_that_goes_away_is_no_failure(lab: &Lab) {
    let others = [
        "export map --format json",
        "export map --format csv",
        "export map --format parquet",
        "completions bash",
    ];
    let all = LINES.iter().flat_map(|(_, lines)| *lines).chain(&others);
    for arguments in all.filter(|arguments| !arguments.contains("--name")) {
        let mut child = lab.begin(arguments, Stdio::piped());
        // As `head -c 1` does.
        let mut first = [0];
        let _ = child.stdout.take().unwrap().read(&mut first);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap();
        assert!(status.code().is_some_and(|code| code < 2), "{arguments}: {status}: {said}");
        assert!(
            !said.contains("written") && !said.contains("pipe") && !said.contains("panicked"),
            "{arguments}: {said}"
        );
    }
}
