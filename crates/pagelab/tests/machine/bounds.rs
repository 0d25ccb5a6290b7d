//! Memory that is not the experiment's own: refused with its figure where this machine has too
//! little, an error where it cannot be had, and never more than was planned.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Lab, joined};
use pagelab_kernel::hierarchy;
use pagelab_testing::{LIMITS, ROOT, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        load_beyond_the_machine_is_refused_with_the_figure;
        impossible_values_are_no_panic;
        memory_that_cannot_be_had_is_an_error;
        a_trace_is_bounded_while_it_is_read;
        a_sample_takes_memory_for_itself_alone;
        no_model_takes_more_than_was_planned;
        a_long_stream_is_never_held: LIMITS;
        load_beyond_the_cgroup_is_refused_with_the_figure: LIMITS;
        too_few_threads_are_an_error: ROOT;
    }
}

/// Pages and references as many as there can be, and more.
const BEYOND: &[&str] = &[
    "mrc uniform --pages 4294967295 --references 1000",
    "mrc uniform --pages 1073741825 --references 1000",
    "mrc zipf:0.9 --pages 4294967295 --references 10 --policy arc",
    "mrc uniform --pages 1000 --references 4294967295 --policy opt",
    "mrc zipf:0.9 --pages 4294967295 --references 100 --sample 0.5",
    "replay linear --pages 4294967295 --references 10 --memory 10p",
    "replay smooth-sin-random --pages 10 --references 4294967295 --memory 5p",
    "replay smooth-sin --pages 4294967295 --references 10 --on linux-lru --memory 10p",
    "wss uniform --pages 4294967295 --references 4294967295",
    "wss drift --pages 4294967295 --references 10",
    "run mapanon --on model:lru --pages 4294967295 --references 10 --html none",
    "run mapanon --on model:opt --pages 10 --references 4294967295 --html none",
    "run mapanon --on model:linux-mglru --pages 4294967295 --references 10 --html none",
    "run mapanon --on model:arc,frames=4294967295 --pages 4294967295 --references 10 --html none",
    "run mapanon --on model:lru --pages 100 --references 4294967295 --pattern smooth-sin-random --html none",
    "run mapanon --pages 4294967295 --references 10 --memory 32M --swap none --html none",
    "run mapanon --pages 100 --references 4294967295 --pattern smooth-sin-random --memory 32M --html none",
];

fn load_beyond_the_machine_is_refused_with_the_figure() {
    let lab = Lab::new();
    for command in BEYOND {
        let output = lab.output(command);
        let error = joined(&String::from_utf8_lossy(&output.stderr));
        assert!(matches!(output.status.code(), Some(2 | 3)), "{command}: {} {error}", output.status);
        assert!(error.contains("bytes") && error.contains("use "), "{command}: {error}");
    }
    // Frames without pages take nothing.
    for frames in ["lru", "arc", "s3-fifo", "clock-pro", "random", "linux-lru", "two-handed"] {
        let line = format!(
            "run mapanon --on model:{frames},frames=4294967295 --pages 8 --references 20 --html none"
        );
        let output = lab.output(&line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 2 | 3)), "{line}: {} {error}", output.status);
    }
}

fn impossible_values_are_no_panic() {
    let lab = Lab::new();
    std::fs::write(lab.path("t"), "1\n2\n1\n").unwrap();
    for command in ["mrc t --page-size 0", "mrc t --page-size 3000"] {
        lab.fails(command, 3);
    }
    lab.fails("replay t --memory 1p --page-size 18446744073709551615", 3);
    lab.ok("wss t --window 18446744073709551615");
    lab.ok("wss linear --pages 10 --references 100 --window 18446744073709551615");
    lab.ok("run mapanon --on model:ws:18446744073709551615 --pages 8 --references 20 --html none");
}

/// Runs it with so many KiB of address space.
fn within(lab: &Lab, kib: u64, command: &str) -> (Option<i32>, String) {
    let script = format!("ulimit -v {kib}; exec '{}' {command}", env!("CARGO_BIN_EXE_pagelab"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(lab.folder.path()).env("PAGELAB_STATE_DIR", lab.path("state"));
    let output = shell.output().unwrap();
    (output.status.code(), joined(&String::from_utf8_lossy(&output.stderr)))
}

fn memory_that_cannot_be_had_is_an_error() {
    let lab = Lab::new();
    for command in [
        "mrc uniform --pages 1000 --references 300000000",
        "mrc uniform --pages 50000000 --references 1000",
        "replay uniform --pages 20000000 --references 1000 --on arc --memory 10%",
        "replay uniform --pages 1000 --references 150000000 --on opt --memory 10%",
        "wss uniform --pages 1000 --references 300000000",
        "run mapanon --on model:opt --pages 1000 --references 150000000 --html none",
        "run mapanon --on model:lru --pages 20000000 --references 1000 --html none",
        "run mapanon --on model:lru --pages 1000 --references 300000000 --pattern smooth-sin-random --html none",
    ] {
        let (status, error) = within(&lab, 800 << 10, command);
        assert_eq!(status, Some(3), "{command}: {error}");
        assert!(error.contains("no memory for"), "{command}: {error}");
    }
}

fn a_trace_is_bounded_while_it_is_read() {
    let lab = Lab::new();
    let zeros = "for i in $(seq 40); do head -c 100000000 /dev/zero; done";
    for (source, kib, command) in [
        // A thousand million references, all of which are wanted at once.
        (zeros, 1_000_000, "wss - --format u32 --no-keep"),
        // Many pages, and nothing kept but what is counted of them.
        ("seq 9000000", 600_000, "mrc - --format text --no-keep"),
    ] {
        let mut source = Command::new("sh").args(["-c", source]).stdout(Stdio::piped()).spawn().unwrap();
        let script = format!("ulimit -v {kib}; exec '{}' {command}", env!("CARGO_BIN_EXE_pagelab"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(lab.folder.path());
        shell.env("PAGELAB_STATE_DIR", lab.path("state"));
        let output = shell.stdin(source.stdout.take().unwrap()).output().unwrap();
        let _ = source.kill();
        let _ = source.wait();
        let error = joined(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(3), "{command}: {error}");
        assert!(error.contains("too long") && error.contains("no memory for"), "{command}: {error}");
    }
}

/// The most that the process `pid` had resident so far, bytes; `None` when it has ended.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// The most that a curve of a trace of so many different pages takes, bytes.
fn peak_of_a_curve(lab: &Lab, pages: u32, options: &str) -> u64 {
    let mut source = Command::new("seq").arg(pages.to_string()).stdout(Stdio::piped()).spawn().unwrap();
    let mut curve = Command::new(env!("CARGO_BIN_EXE_pagelab"));
    curve.args(["mrc", "-", "--format", "text", "--no-keep"]).args(options.split_whitespace());
    curve.current_dir(lab.folder.path()).env("PAGELAB_STATE_DIR", lab.path("state"));
    let mut child = curve.stdin(source.stdout.take().unwrap()).stdout(Stdio::null()).spawn().unwrap();
    let mut most = 0;
    let status = loop {
        most = most.max(peak(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(status.success() && source.wait().unwrap().success(), "{options}: {status}");
    assert!(most > 1 << 20, "{options}: nothing was seen");
    most
}

fn a_sample_takes_memory_for_itself_alone() {
    const SLACK: u64 = 8 << 20;
    let lab = Lab::new();
    for options in ["--sample 0.001", "--sample-pages 1000", "--sample 0.001 --policy sieve"] {
        let [short, long] = [100_000, 3_000_000].map(|pages| peak_of_a_curve(&lab, pages, options));
        assert!(long < short + SLACK, "{options}: {short} and {long} bytes");
    }
    let [short, long] = [100_000, 3_000_000].map(|pages| peak_of_a_curve(&lab, pages, ""));
    assert!(long > short + 3 * SLACK, "the exact curve: {short} and {long} bytes");
}

/// What a model takes that does nothing: the program itself.
const PROGRAM: u64 = 48 << 20;

fn no_model_takes_more_than_was_planned() {
    let lab = Lab::new();
    for model in ["lru", "opt", "arc", "lirs", "clock-pro", "s3-fifo", "lfu", "linux-lru", "linux-mglru"] {
        let line = format!(
            "run mapanon --on model:{model} --pages 400000 --references 1000000 --memory 800M --html none -q"
        );
        let planned = lab.json(&format!("{line} --dry-run --json"));
        let planned = planned["plans"][0]["needs"]["memory"].as_u64().unwrap_or_else(|| panic!("{planned}"));
        let mut child = lab.begin(&line, Stdio::null());
        let mut most = 0;
        while child.try_wait().unwrap().is_none() {
            most = most.max(peak(child.id()).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(most > 10 << 20, "{model}: nothing was seen");
        assert!(most < planned + PROGRAM, "{model}: {most} bytes, planned were {planned}");
    }
}

fn a_long_stream_is_never_held() {
    let lab = Lab::new();
    for target in ["host", "model:lru", "model:linux-lru"] {
        let line = format!(
            "run mapanon --on {target} --pages 4096 --references 4294967295 --pattern uniform --memory 64M --html none -q"
        );
        let child = lab.begin(&line, Stdio::null());
        std::thread::sleep(Duration::from_millis(1500));
        let all = lab.workers().into_iter().chain([child.id()]);
        let most = all.filter_map(peak).max().unwrap();
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{target}: {output:?}");
        // The region, a window of the stream, the program.
        assert!(most > 8 << 20 && most < 250 << 20, "{target}: {most} bytes");
    }
}

/// A cgroup of 24 MiB, removed when dropped.
struct Narrow(std::path::PathBuf);

impl Narrow {
    fn new() -> Self {
        let one = std::path::Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
        let root = if one { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" };
        let new = Self(format!("{root}/narrow-{}", std::process::id()).into());
        if !one {
            std::fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory").unwrap();
        }
        std::fs::create_dir(&new.0).unwrap();
        let limit = if one { "memory.limit_in_bytes" } else { "memory.max" };
        std::fs::write(new.0.join(limit), "25165824").unwrap();
        new
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The kernel would kill it without a word.
fn load_beyond_the_cgroup_is_refused_with_the_figure() {
    let lab = Lab::new();
    let narrow = Narrow::new();
    for (command, fits) in [
        ("mrc zipf:1 --pages 1000000 --no-keep", false),
        ("replay uniform --pages 1000000 --references 5000000 --memory 10% --on arc --no-keep", false),
        ("wss uniform --pages 1000 --references 5000000 --no-keep", false),
        ("run mapanon --on model:lru --pages 1000000 --references 1000 --html none", false),
        ("convert zipf:1 --pages 1000000 --to oracle-general -o whole", false),
        ("reduce zipf:1 --pages 1000000 --memory 64M -o reduced", false),
        ("mrc zipf:1 --pages 1000 --references 1000 --no-keep", true),
    ] {
        let (cgroup, program) = (narrow.0.display(), env!("CARGO_BIN_EXE_pagelab"));
        let script = format!("echo $$ > {cgroup}/cgroup.procs; exec '{program}' {command}");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script])
            .current_dir(lab.folder.path())
            .env("PAGELAB_STATE_DIR", lab.path("state"));
        let output = shell.output().unwrap();
        let error = joined(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(if fits { 0 } else { 3 }), "{command}: {error}");
        assert!(fits || error.contains("bytes available; use fewer"), "{command}: {error}");
    }
}

/// A pids cgroup of its own, removed when dropped.
struct FewThreads(PathBuf);

impl Drop for FewThreads {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn too_few_threads_are_an_error() {
    let lab = Lab::new();
    let mount = hierarchy::of("pids").expect("the pids controller").mount;
    let few = FewThreads(mount.join(format!("pagelab-test-{}", std::process::id())));
    fs::create_dir(&few.0).unwrap();
    let (cgroup, program) = (few.0.display(), env!("CARGO_BIN_EXE_pagelab"));
    let run = |most: &str, command: &str| {
        fs::write(few.0.join("pids.max"), most).unwrap();
        let script = format!("echo $$ > {cgroup}/cgroup.procs; exec '{program}' {command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(lab.folder.path());
        let output = shell.env("PAGELAB_STATE_DIR", lab.path("state")).output().unwrap();
        (output.status.code(), joined(&String::from_utf8_lossy(&output.stderr)))
    };
    for most in 1..=12 {
        for command in [
            "run mapanon --pages 64 --references 100 --memory none --html none",
            "run populate --pages 64 --rounds 1 --html none",
            "run mapanon --on model:lru --pages 64 --references 100 --html none",
            "mrc zipf:1 --pages 1000 --references 1000 --no-keep",
        ] {
            let (status, error) = run(&most.to_string(), command);
            assert!(matches!(status, Some(0 | 3)), "{most} threads: {command}: {status:?} {error}");
        }
    }
    let (status, error) = run("20", "run forkstorm --copies 50 --html none");
    assert_eq!(status, Some(3), "{error}");
    assert!(error.contains("pids.max is 20") && error.contains("101 of its own"), "{error}");
}
