//! Nothing is left behind: on success, error, Ctrl-C, SIGTERM, and after kill -9 by the next start.

use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{Lab, eventually};
use crate::in_guest;
use pagelab_testing::{ALONE, KERNELS, LIMITS, THP, TMPFS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        a_finished_run_leaves_nothing: LIMITS, ALONE;
        ctrl_c_and_sigterm_leave_nothing_and_keep_the_notebook: LIMITS, ALONE;
        an_interrupt_leaves_no_run_that_was_never_performed;
        after_kill_9_at_any_moment_the_next_start_removes_what_was_left: LIMITS, ALONE;
        after_kill_9_the_pipelines_of_a_script_end;
        after_kill_9_what_a_program_left_running_is_ended_by_the_next_start;
        an_out_of_memory_kill_ends_the_experiment_and_not_pagelab: LIMITS, ALONE;
        a_load_beyond_half_of_the_memory_is_refused_without_a_limit;
        settings_are_put_back: LIMITS, THP, ALONE;
        a_full_disk_is_a_clear_error_and_the_notebook_still_opens: LIMITS, TMPFS, ALONE;
        nested_cgroups_of_a_program_are_removed: LIMITS, ALONE;
        a_killed_worker_ends_the_run_and_what_it_started;
        processes_that_clear_their_environment_end_with_the_run;
        a_kernel_with_cgroup_1_is_left_as_it_was: KERNELS;
        a_kernel_with_cgroup_2_is_left_as_it_was: KERNELS;
    }
}

/// A run of about a second that pages for real.
const RUN: &str =
    "run mapanon --pages 12288 --references 60000 --pattern uniform --memory 32M --html none -q";

fn spawn(lab: &Lab, run: &str) -> Child {
    lab.begin(run, Stdio::null())
}

/// The zram devices of the machine.
fn zrams() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir("/sys/block")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("zram"))
        .collect();
    names.sort();
    names
}

/// The huge page mode in force; `None` on a kernel without.
fn thp() -> Option<String> {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()
}

/// Waits until no other pagelab of this machine has the turn of a run with swap: ours would wait
/// for it, and be killed before it has set anything up.
fn others_have_ended() {
    std::fs::File::open("/proc/swaps").unwrap().lock().unwrap();
}

fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

fn a_finished_run_leaves_nothing() {
    let lab = Lab::new();
    lab.ok(RUN);
    lab.nothing_is_left("after a run");
}

fn ctrl_c_and_sigterm_leave_nothing_and_keep_the_notebook() {
    for (name, wait) in [("-INT", 300), ("-TERM", 600), ("-INT", 20), ("-TERM", 900)] {
        let lab = Lab::new();
        let child = spawn(&lab, RUN);
        std::thread::sleep(Duration::from_millis(wait));
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        lab.nothing_is_left(&format!("{name} after {wait} ms ({output:?})"));
        if lab.path("pagelab.db").exists() {
            lab.ok("list");
        }
    }
}

fn an_interrupt_leaves_no_run_that_was_never_performed() {
    let lab = Lab::new();
    let lines = "run mapanon --pages 512 --references 30000000 --memory none --html none -q --name side --on host --on model:lru";
    let child = spawn(&lab, lines);
    eventually("the run begins", || lab.output("show side-1").status.success());
    std::thread::sleep(Duration::from_millis(200));
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let runs = lab.json("list --json");
    let names: Vec<&str> =
        runs["runs"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["side-1"]);
    lab.shows("show @1", &["was interrupted"]);
}

fn after_kill_9_at_any_moment_the_next_start_removes_what_was_left() {
    let (mut killed, mut seen) = (0, [false; 3]);
    let (devices, thp) = (zrams(), thp());
    let other = if thp.as_deref().is_some_and(|t| t.contains("[never]")) { "always" } else { "never" };
    let with_thp = if thp.is_some() { format!(" --thp {other}") } else { String::new() };
    // Moments from the very start of the set-up to the middle of the load, with each kind of swap.
    let moments = [5, 8, 12, 20, 30, 45, 60, 90, 130, 200, 350, 600, 900];
    // On a slow machine the set-up takes longer: later ones, until there was everything to be left.
    let later = [1400, 1900, 2600, 3500, 5000, 7000, 10_000];
    for (n, wait) in moments.into_iter().chain(later).enumerate() {
        if n >= moments.len() && seen == [true; 3] {
            break;
        }
        let lab = Lab::new();
        let swap = if n % 2 == 0 { " --swap zram" } else { "" };
        others_have_ended();
        let mut child = spawn(&lab, &format!("{RUN}{swap}{with_thp}"));
        std::thread::sleep(Duration::from_millis(wait));
        killed += u32::from(child.try_wait().unwrap().is_none());
        let there = [!lab.cgroups().is_empty(), !lab.swaps().is_empty(), !lab.workers().is_empty()];
        seen = std::array::from_fn(|i| seen[i] || there[i]);
        let _ = child.kill();
        child.wait().unwrap();
        // The worker dies with its parent, which takes the kernel a moment.
        while !lab.workers().is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
        lab.ok("patterns");
        lab.nothing_is_left(&format!("kill -9 after {wait} ms{swap}"));
        assert_eq!(zrams(), devices, "kill -9 after {wait} ms: zram devices");
        assert_eq!(self::thp(), thp, "kill -9 after {wait} ms: the huge page mode");
        if lab.path("pagelab.db").exists() {
            let runs = lab.json("list --json");
            for run in runs["runs"].as_array().unwrap() {
                if run["done"] != 0 {
                    // Killed after its end was written: then all of it is there.
                    let shown = lab.json(&format!("show {} --json", run["name"].as_str().unwrap()));
                    let metrics = &shown["result"]["runs"][0]["repetitions"][0]["metrics"];
                    assert!(
                        metrics["access.mean"]["value"].is_number(),
                        "a killed repetition counts as done"
                    );
                }
            }
        }
    }
    assert_eq!(seen, [true; 3], "a cgroup, swap and a worker were there to be left");
    assert!(killed >= 6, "only {killed} runs were still there to be killed");
}

fn after_kill_9_the_pipelines_of_a_script_end() {
    let lab = Lab::new();
    let endless = lab.path("endless");
    std::fs::File::create(&endless).unwrap().set_len(1 << 40).unwrap();
    let name = endless.display().to_string();
    let pipelines = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let line = |entry: std::fs::DirEntry| {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).into_owned()
        };
        all.map(line).filter(|line| line.starts_with("cat") && line.contains(&name)).count()
    };
    let run = format!("run forkstorm --script {name} --memory none --html none -q");
    let mut child = spawn(&lab, &run);
    eventually("the script begins", || pipelines() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("its pipelines end", || pipelines() == 0);
}

/// Also without a limit, and where it has left its session and its parent.
fn after_kill_9_what_a_program_left_running_is_ended_by_the_next_start() {
    let lab = Lab::new();
    let script = "setsid sleep 1000 & exec sleep 1000";
    std::fs::write(lab.path("leaves"), script).unwrap();
    let mut child = spawn(&lab, "run command --memory none --html none -q -- sh leaves");
    let sleepers = || lab.processes().iter().filter(|line| line.starts_with("sleep")).count();
    eventually("the program begins", || sleepers() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(sleepers() > 0, "something is left for the next start");
    lab.ok("patterns");
    lab.nothing_is_left("a program that had left a process");
}

fn an_out_of_memory_kill_ends_the_experiment_and_not_pagelab() {
    let lab = Lab::new();
    lab.refuses(
        "run mapanon --pages 12288 --references 1000 --memory 16M --swap none --html none",
        3,
        &["out of memory"],
    );
    lab.nothing_is_left("after an out-of-memory kill");
    // One side that cannot be performed does not take the other with it.
    let both = "run mapanon --pages 12288 --references 1000 --name both --on host,memory=16M,swap=none --on host,memory=64M --html none";
    lab.fails(both, 3);
    assert_eq!(lab.json("list --json")["runs"][2]["done"], 1);
    lab.shows("show both-1", &["out of memory"]);
}

fn a_load_beyond_half_of_the_memory_is_refused_without_a_limit() {
    let lab = Lab::new();
    lab.refuses("run mapanon --pages 1000000000 --references 10 --memory none --html none", 3, &["refused"]);
    assert!(!lab.path("pagelab.db").exists() || !lab.ok("list").contains("mapanon"));
}

fn settings_are_put_back() {
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    let before = std::fs::read_to_string(file).unwrap();
    let lab = Lab::new();
    let other = if before.contains("[never]") { "always" } else { "never" };
    let result = lab.json(&format!(
        "run mapanon --pages 1024 --references 5000 --memory 32M --thp {other} --html none --json"
    ));
    let environment = &result["result"]["runs"][0]["repetitions"][0]["environment"];
    assert_eq!(environment["thp.enabled"], other, "the setting was in force");
    assert_eq!(std::fs::read_to_string(file).unwrap(), before);
}

fn a_full_disk_is_a_clear_error_and_the_notebook_still_opens() {
    let lab = Lab::new();
    let disk = lab.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=300k", "none", disk.to_str().unwrap()];
    assert!(std::process::Command::new("mount").args(mount).status().unwrap().success());
    let small = "--notebook disk/small.db run mapanon --pages 4096 --references 20000 --pattern uniform --memory 12M --repeat 40 --html none -q";
    let output = lab.output(small);
    let listed = lab.output("--notebook disk/small.db list --json");
    let unmounted = std::process::Command::new("umount").arg(&disk).status().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("full"), "{error}");
    assert!(listed.status.success(), "{listed:?}");
    assert!(unmounted.success());
    lab.nothing_is_left("after a full disk");
}

/// Also where what the worker started goes on, with its ends of the pipes.
fn a_killed_worker_ends_the_run_and_what_it_started() {
    let lab = Lab::new();
    std::fs::File::create(lab.path("endless")).unwrap().set_len(1 << 40).unwrap();
    let mut child = spawn(&lab, "run forkstorm --script endless --memory none --html none -q");
    eventually("the script is read", || lab.processes().iter().any(|line| line.contains("endless")));
    let worker = lab.workers()[0].to_string();
    assert!(std::process::Command::new("kill").args(["-9", &worker]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(3));
    lab.nothing_is_left("after the worker was killed");
}

/// Without a limit there is no cgroup that holds them, and nothing in the environment names the
/// run.
fn processes_that_clear_their_environment_end_with_the_run() {
    let lives = |lab: &Lab| {
        let pid = std::fs::read_to_string(lab.path("pid")).unwrap();
        std::fs::read_to_string(format!("/proc/{}/cmdline", pid.trim()))
            .is_ok_and(|words| words.contains("1013"))
    };
    for (last, by_signal) in [("exit 0", false), ("exit 9", false), ("sleep 1000", true)] {
        let lab = Lab::new();
        let script = format!("unset PAGELAB_RUN\nsleep 1013 &\necho $! > pid\n{last}\n");
        std::fs::write(lab.path("script"), script).unwrap();
        let mut child = spawn(&lab, "run command --memory none --html none -q -- sh script");
        if by_signal {
            eventually("the program begins", || lab.path("pid").exists() && lives(&lab));
            signal(&child, "-INT");
        }
        child.wait().unwrap();
        assert!(!lives(&lab), "after {last}");
    }
}

/// A program may make cgroups inside its own, and move into them; also when pagelab is killed they go.
fn nested_cgroups_of_a_program_are_removed() {
    for kill in [false, true] {
        let lab = Lab::new();
        let script = "while IFS=: read n c p; do case $p in */pagelab-*)
  for root in /sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/unified; do
    if test -e $root$p/memory.stat; then mkdir -p $root$p/a/b; echo $$ > $root$p/a/b/cgroup.procs; fi
  done;;
esac; done < /proc/self/cgroup
sleep 1000 & sleep 1000";
        std::fs::write(lab.path("inside"), script).unwrap();
        let mut child = spawn(&lab, "run command --memory 32M --html none -q -- sh inside");
        let inside = || {
            let cgroups = lab.cgroups();
            cgroups.iter().any(|path| {
                std::fs::read_to_string(path.join("a/b/cgroup.procs"))
                    .is_ok_and(|pids| pids.lines().count() >= 2)
            })
        };
        eventually("the program moves into a cgroup of its own", inside);
        if kill {
            child.kill().unwrap();
            child.wait().unwrap();
            lab.ok("patterns");
        } else {
            signal(&child, "-INT");
            child.wait().unwrap();
        }
        lab.nothing_is_left(&format!("a program with cgroups of its own, killed: {kill}"));
    }
}

/// What is performed in a guest: all the others.
fn inside() -> Vec<&'static str> {
    tests().iter().map(|test| test.name).filter(|name| !name.contains("a_kernel_with_cgroup")).collect()
}

fn a_kernel_with_cgroup_1_is_left_as_it_was() {
    let kernels = pagelab_testing::kernels();
    println!("{}", in_guest::run_tests(&kernels[0], 1, &inside()));
}

fn a_kernel_with_cgroup_2_is_left_as_it_was() {
    let kernels = pagelab_testing::kernels();
    println!("{}", in_guest::run_tests(kernels.last().unwrap(), 2, &inside()));
}
