//! The views of the kernel's counters, on this machine and on a recorded one.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Lab, eventually};
use pagelab_testing::{ALONE, LIMITS, Need, PROMETHEUS, ROOT, STRACE, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        stat_has_the_habits_of_kstat;
        stat_as_json_and_as_rates;
        counters_of_the_users_own_are_read_recorded_and_asked_for;
        views_of_a_recorded_machine_are_stable;
        vmstat_prints_a_line_an_interval;
        an_interval_of_vmstat_is_a_few_system_calls: STRACE;
        prstat_reads_one_file_of_a_process_that_runs_and_none_of_an_idle_one: ROOT, STRACE;
        a_recorded_machine_can_be_looked_at;
        memory_is_counted_by_meminfo;
        pages_counted_one_by_one_agree_with_meminfo: KPAGEFLAGS;
        microstates_add_up;
        tasks_that_come_and_go_within_an_interval_are_seen;
        empty_match_is_reported;
        a_selector_that_matches_nothing_is_no_recording;
        the_old_hands_habits_are_taken;
        a_name_and_a_port_alone_can_be_listened_on;
        the_doctor_answers;
        tracepoints_fill_the_columns_that_linux_does_not_keep: TRACEPOINTS;
        a_real_shortage_is_named_with_its_victim_and_its_hog: LIMITS, DELAYS, ALONE;
        the_counters_are_served_to_prometheus;
        a_real_prometheus_scrapes_the_counters: PROMETHEUS;
        the_newest_need_is_served_beside_its_limit;
        a_recording_is_kept_and_drawn;
        a_killed_recording_keeps_what_it_saw;
        the_accounting_switch_is_put_back_even_after_a_kill: DELAYS_OFF, ALONE;
        the_accounting_switch_stays_on_for_the_last_that_needs_it: DELAYS_OFF, ALONE;
    }
}

/// The kernel says what each page is used for.
const KPAGEFLAGS: Need = Need {
    name: "kpageflags",
    on: &[&ROOT],
    met: || File::open("/proc/kpageflags").map(drop).map_err(|e| format!("/proc/kpageflags: {e}")),
};

/// The kernel lets programs be attached to tracepoints.
const TRACEPOINTS: Need = Need {
    name: "tracepoints",
    on: &[&ROOT],
    met: || {
        let traced = Lab::new().output("vmstat --trace 0.1 1");
        let refused = traced.status.code() == Some(3);
        if refused { Err(String::from_utf8_lossy(&traced.stderr).into_owned()) } else { Ok(()) }
    },
};

/// The kernel accounts delays when it is asked to.
const DELAYS: Need = Need {
    name: "delay-accounting",
    on: &[],
    met: || accounting().map(drop).ok_or_else(|| "this kernel has no task_delayacct".into()),
};

/// Nobody asked it to.
const DELAYS_OFF: Need = Need {
    name: "delay-accounting",
    on: &[&ROOT, &DELAYS],
    met: || {
        if accounting() == Some(true) { Err("task_delayacct is on already".into()) } else { Ok(()) }
    },
};

/// A recorded machine.
fn recorded(machine: &str) -> String {
    format!("{}/../counters/tests/fixtures/{machine}", env!("CARGO_MANIFEST_DIR"))
}

fn stat_has_the_habits_of_kstat() {
    let lab = Lab::new();
    let one = lab.ok("stat -p vmstat:0:vm:pgfault");
    let (name, value) = one.trim_end().split_once('\t').unwrap();
    assert_eq!(name, "vmstat:0:vm:pgfault");
    assert!(value.parse::<u64>().unwrap() > 0);
    assert_eq!(lab.ok("stat -l vmstat:::pgfault"), "vmstat:0:vm:pgfault\n");
    assert_eq!(lab.ok("stat -q -m vmstat -s pgfault"), "");
    assert_eq!(lab.output("stat -q nothing").status.code(), Some(1));
    assert_eq!(lab.ok("stat -p -m vmstat -s pgm*fault -c vm").lines().count(), 1);
    assert_eq!(lab.output("stat -m vmstat -c disk").status.code(), Some(1));
    assert_eq!(lab.ok("stat -l vmstat:::/^pgm?a?j?fault$/ 0.05 2").lines().count(), 4);
    lab.shows("stat meminfo:::MemTotal", &["module: meminfo", " bytes"]);
    lab.shows("stat --modules", &["/proc/PID/smaps_rollup"]);
}

fn stat_as_json_and_as_rates() {
    let lab = Lab::new();
    let json = lab.json("stat --json vmstat:::pgfault");
    let counter = &json["counters"][0];
    assert_eq!(counter["kind"], "counter");
    assert_eq!(counter["unit"], "count");
    assert!(counter["value"].as_u64().unwrap() > 0);
    let rate = lab.ok("stat -p --rate vmstat:::pgfault 0.2 2");
    assert_eq!(rate.lines().count(), 2, "{rate}");
    // Starting pagelab is not counted, reading is: rates stay small numbers, not the total.
    let faults: f64 = rate.lines().last().unwrap().split('\t').nth(1).unwrap().parse().unwrap();
    assert!(faults < counter["value"].as_f64().unwrap());
}

fn counters_of_the_users_own_are_read_recorded_and_asked_for() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("own")).unwrap();
    let text = "# TYPE jobs_done counter\njobs_done 12\nwait_seconds 0.5\nhits_ratio{device=\"sda\"} 0.25\n";
    std::fs::write(lab.path("own/queue.prom"), text).unwrap();
    assert_eq!(
        lab.ok("stat -p --extra own extra"),
        "extra:0:device=sda:hits_ratio\t25\nextra:0:queue:jobs_done\t12\nextra:0:queue:wait_seconds\t500000000\n"
    );
    // Beside the kernel's, and with the signs of a shortage where nothing else is named.
    assert_eq!(lab.ok("stat -l --extra own vmstat:::pgfault extra:::jobs_done").lines().count(), 2);
    lab.ok("record --extra own --count 2 --interval 0.05 --name mine");
    lab.shows("export mine --format csv", &["extra:0:queue:jobs_done", "pressure"]);
    lab.refuses("export mine --extra own", 2, &["--listen"]);
}

fn views_of_a_recorded_machine_are_stable() {
    let lab = Lab::new();
    for machine in ["linux-6.18-cgroup1", "adapted-cgroup2", "adapted-4.19"] {
        let root = recorded(machine);
        insta::assert_snapshot!(format!("vmstat_{machine}"), lab.ok(&format!("vmstat --root {root}")));
        insta::assert_snapshot!(format!("iostat_{machine}"), lab.ok(&format!("iostat -xn --root {root}")));
        let quick = lab.ok(&format!("memstat --quick -q --root {root}"));
        insta::assert_snapshot!(format!("memstat_{machine}"), quick);
        let by = ["process", "cgroup"].map(|by| lab.ok(&format!("memstat --by {by} --root {root}"))).concat();
        insta::assert_snapshot!(format!("holders_{machine}"), by);
    }
}

fn vmstat_prints_a_line_an_interval() {
    let lab = Lab::new();
    let text = lab.ok("vmstat 0.1 3");
    assert_eq!(text.lines().count(), 5, "{text}");
    let json = lab.ok("vmstat --json 0.1 2");
    let rows: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((rows[0]["since_boot"].as_bool(), rows[1]["since_boot"].as_bool()), (Some(true), Some(false)));
    assert!(rows[1]["vmstat"]["avail"].as_f64().unwrap() > 1e6);
    assert!(rows[1]["vmstat"]["epi"].is_null());
    let root = recorded("adapted-4.19");
    let xcalls = lab.json(&format!("vmstat --xcalls --json --root {root}"));
    assert_eq!(xcalls["xcalls"].as_array().unwrap().len(), 2, "{xcalls}");
    assert!(lab.ok(&format!("vmstat --xcalls --root {root}")).contains("\nall "));
}

fn an_interval_of_vmstat_is_a_few_system_calls() {
    let lab = Lab::new();
    let calls = lab.system_calls("vmstat 0.05 12", "all");
    let waits: Vec<usize> = (0..calls.len()).filter(|&call| calls[call].contains("nanosleep(")).collect();
    let intervals = waits.windows(2).map(|ends| &calls[ends[0]..ends[1]]);
    // On a busy machine a line may be late, and then nothing waits before the next one.
    let interval = intervals.min_by_key(|calls| calls.len()).expect("there are intervals");
    // Four files that stay open, of which one is longer than a page; the line; the wait.
    assert!(interval.len() <= 8, "{interval:#?}");
    let since = &calls[waits[0]..];
    assert!(!since.iter().any(|call| call.contains(" open")), "{since:#?}");
}

fn prstat_reads_one_file_of_a_process_that_runs_and_none_of_an_idle_one() {
    let lab = Lab::new();
    let mut idle = Command::new("sleep").arg("60").spawn().unwrap();
    let calls = lab.system_calls("prstat -n 1 0.2 5", "open,openat");
    let _ = idle.kill();
    idle.wait().unwrap();
    let opened = |name: &str| calls.iter().filter(|call| call.contains(name)).count();
    // A kernel that accounts no process as a whole tells of its threads alone.
    if opened("/task/") == 0 {
        assert!(opened(&format!("/proc/{}/", idle.id())) <= 3, "{calls:#?}");
        assert!(opened("/status\"") <= 5, "of the one row of each print: {calls:#?}");
    }
    assert_eq!(opened("/cgroup\""), 0, "no line shows it: {calls:#?}");
}

fn a_recorded_machine_can_be_looked_at() {
    let lab = Lab::new();
    lab.shows("fixture machine vmstat meminfo settings", &["--root"]);
    let name = "meminfo:0:mem:MemTotal";
    assert_eq!(lab.ok(&format!("stat -p {name}")), lab.ok(&format!("stat -p --root machine {name}")));
    assert_eq!(lab.output("stat -q --root machine diskstats").status.code(), Some(1));
    lab.refuses("fixture machine", 3, &["not empty"]);
}

fn memory_is_counted_by_meminfo() {
    let lab = Lab::new();
    let quick = lab.json("memstat --quick --json");
    assert_eq!(quick["memory"]["exact"], false);
    lab.shows("memstat --quick", &["unmapped file cache"]);
    let holders = lab.json("memstat --by process --json");
    assert!(holders["holders"].as_array().unwrap().len() > 1);
}

fn pages_counted_one_by_one_agree_with_meminfo() {
    let lab = Lab::new();
    let quick = lab.json("memstat --quick --json");
    let exact = lab.json("memstat --json");
    assert_eq!(exact["memory"]["exact"], true);
    let bytes = |json: &serde_json::Value, kind: &str| -> f64 {
        let lines = json["memory"]["lines"].as_array().unwrap();
        lines.iter().find(|l| l["kind"] == kind).unwrap()["bytes"].as_f64().unwrap()
    };
    // The kernel's own account and our count of its pages agree, but for what happened in between.
    let (ours, kernels) = (bytes(&exact, "kernel: slab"), bytes(&quick, "kernel: slab"));
    assert!((ours / kernels - 1.0).abs() < 0.25, "slab {ours} against {kernels}");
    assert!(bytes(&exact, "executables and libraries") > 1e6);
}

fn microstates_add_up() {
    let lab = Lab::new();
    let own = lab.ok("prstat -m -n 400 0.3 1");
    assert!(own.starts_with("    PID USER"), "{own}");
    assert!(own.contains("pagelab/1"), "{own}");
    let json = lab.json("prstat -L --json -n 400 0.3 1");
    for task in json["tasks"].as_array().unwrap() {
        let share = |name: &str| task[name].as_f64().unwrap_or(0.0);
        let sum = share("usr") + share("sys") + share("lat") + share("slp") + share("dfl");
        // Ticks of a task that ran all the time may be read a moment late.
        assert!((99.0..=210.0).contains(&sum), "{task}");
    }
}

fn tasks_that_come_and_go_within_an_interval_are_seen() {
    let lab = Lab::new();
    let looking = lab.begin("prstat --json -n 100000 2 1", Stdio::piped());
    // One that is born in the middle and works from then on, and many that are gone before anybody
    // looks.
    let mut script =
        sh("sleep 1; for i in $(seq 40); do /bin/true; done; timeout 5 sh -c 'while :; do :; done'");
    let output = looking.wait_with_output().unwrap();
    let _ = script.kill();
    script.wait().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let tasks = json["tasks"].as_array().unwrap();
    let born = |task: &&serde_json::Value| task["command"] == "sh" && task["seconds"].as_f64().unwrap() < 1.5;
    let busy =
        tasks.iter().filter(born).map(|task| task["slp"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
    assert!(busy < 30.0, "asleep {busy}% of the time since its birth");
    let ended = &json["ended"];
    assert!(ended["tasks"].as_u64().unwrap() >= 40, "{ended}");
    if ended["cpu"].is_number() {
        let names = ended["names"].as_array().unwrap();
        assert!(names.iter().any(|name| name[0] == "true" && name[1].as_u64().unwrap() >= 40), "{ended}");
    }
}

fn a_selector_that_matches_nothing_is_no_recording() {
    let lab = Lab::new();
    let error = lab.fails("record vmstat:::pgfault nosuch --interval 0.01 --count 2", 2);
    assert!(error.contains("no counter matches 'nosuch'"), "{error}");
    assert!(!lab.path("pagelab.db").exists());
}

fn empty_match_is_reported() {
    let lab = Lab::new();
    for (arguments, wanted) in [
        ("stat vmstatt", "nothing matched vmstatt (did you mean 'vmstat'?)"),
        ("stat vmstat:::no_such", "nothing matched vmstat:::no_such"),
        ("prstat -p 999999999 0.1 1", "no process 999999999"),
    ] {
        lab.refuses(arguments, 1, &[wanted]);
    }
    assert_eq!(lab.fails("--quiet stat vmstatt", 1), "");
    std::fs::create_dir_all(lab.path("empty/proc")).unwrap();
    for arguments in ["stat --root empty", "stat vmstat --root empty"] {
        let error = lab.fails(arguments, 3);
        assert!(error.contains("no counter could be read"), "{arguments}: {error}");
    }
}

fn the_old_hands_habits_are_taken() {
    let lab = Lab::new();
    let plain = lab.ok("vmstat");
    assert_eq!(plain.lines().nth(1), lab.ok("vmstat -p").lines().nth(1), "paging by kind is what it shows");
    let sums = lab.ok("vmstat -s");
    let faults = sums.lines().find_map(|line| line.trim().strip_suffix(" faults")).unwrap();
    let now = lab.ok("stat -p vmstat:::pgfault");
    let now: u64 = now.split_whitespace().last().unwrap().parse().unwrap();
    assert!((1..=now).contains(&faults.parse().unwrap()), "{sums}");
    let swapping = lab.ok("vmstat -S 0.1 1");
    assert!(swapping.lines().nth(1).unwrap().contains(" si ") && !swapping.contains(" re "), "{swapping}");
    let devices = lab.ok("iostat -xnc 0.1 2");
    assert!(devices.contains(" us  sy  wt  id  st") && devices.contains("r/s"), "{devices}");
    lab.shows("prstat -mL -n 3 0.1 1", &["PROCESS/TID"]);
}

fn a_name_and_a_port_alone_can_be_listened_on() {
    let lab = Lab::new();
    for (address, reached) in [("localhost:0", "127.0.0.1"), (":0", "127.0.0.1")] {
        let mut child = lab.begin(&format!("export --listen {address} vmstat"), Stdio::null());
        let mut said = String::new();
        let stderr = child.stderr.as_mut().unwrap();
        let mut byte = [0];
        while !said.contains("/metrics") && stderr.read(&mut byte).unwrap() == 1 {
            said.push(char::from(byte[0]));
        }
        let port = said.rsplit(':').next().unwrap().split('/').next().unwrap();
        let mut answer = String::new();
        if let Ok(mut stream) = TcpStream::connect(format!("{reached}:{port}")) {
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let _ = stream.read_to_string(&mut answer);
        }
        let _ = child.kill();
        let _ = child.wait();
        assert!(
            answer.contains("# HELP pagelab_vmstat_pgfault pgfault of module vmstat"),
            "{address}: {said}{answer}"
        );
    }
}

fn the_doctor_answers() {
    let lab = Lab::new();
    let output = lab.output("doctor --watch 0.2 --count 1 --json");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let short = json["doctor"]["level"] == "short";
    assert_eq!(output.status.code(), Some(i32::from(short)));
    assert!(json["doctor"]["evidence"].as_array().unwrap().len() >= 8);
    assert!(json["doctor"]["fitness"].as_array().unwrap().iter().any(|c| c["what"] == "cgroups"));
}

fn tracepoints_fill_the_columns_that_linux_does_not_keep() {
    let lab = Lab::new();
    let json = |arguments: &str| -> serde_json::Value {
        serde_json::from_str(lab.ok(arguments).lines().last().unwrap()).unwrap()
    };
    let row = json("vmstat --trace --json 0.3 2");
    assert!(row["vmstat"]["epi"].is_number() && row["vmstat"]["epf"].is_number(), "{row}");
    assert!(row["vmstat"]["epo"].is_null() && row["vmstat"]["de"].is_null(), "{row}");

    let mut busy = sh("trap : USR1; while :; do kill -USR1 $$; done");
    let tasks = json("prstat -m --trace --json -n 100000 1 1");
    let id = u64::from(busy.id());
    busy.kill().unwrap();
    busy.wait().unwrap();
    let row = tasks["tasks"].as_array().unwrap().iter().find(|t| t["pid"] == id).unwrap();
    let figure = |name: &str| row[name].as_f64().unwrap();
    // Each turn sends a signal, takes it, and returns from the handler.
    assert!(figure("sig") > 10.0 && figure("scl") > figure("sig"), "{row}");
    assert!((0.0..=100.0).contains(&figure("lck")) && (0.0..=100.0).contains(&figure("tfl")), "{row}");
    assert!(lab.ok("prstat -m -n 1 0.2 1").contains("   - "), "a dash unless traced");

    let devices = json("iostat -x --trace --json 0.3 2");
    for device in devices["devices"].as_array().unwrap() {
        let has_queue = Path::new("/sys/block").join(device["device"].as_str().unwrap()).join("mq").is_dir();
        assert_eq!(device["wait"].is_number(), has_queue, "{device}");
    }
}

/// A shortage of one cgroup: 64 MiB for a shell that holds 20 MB or more and a `cat` that rereads
/// 64 MiB.
struct Shortage {
    cgroup: PathBuf,
    children: Vec<Child>,
}

impl Shortage {
    fn make(lab: &Lab) -> Self {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (parent, limit, met) = if v1.join("memory.limit_in_bytes").exists() {
            (v1, "memory.limit_in_bytes", "memory.failcnt")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max", "memory.events")
        };
        let cgroup = parent.join(format!("shortage-test-{}", std::process::id()));
        std::fs::create_dir(&cgroup).unwrap();
        let mut shortage = Self { cgroup, children: Vec::new() };
        std::fs::write(shortage.cgroup.join(limit), "64M").unwrap();
        let file = lab.path("reread");
        std::fs::write(&file, vec![7_u8; 64 << 20]).unwrap();
        // What is cached already is charged to whoever wrote it: clean it and drop it.
        let shown = file.display();
        sh(&format!("sync {shown}; dd if={shown} iflag=nocache count=0")).wait().unwrap();
        let procs = shortage.cgroup.join("cgroup.procs");
        let file = file.display();
        let join = format!("echo $$ > {}", procs.display());
        let held = lab.path("held");
        let hog = format!(
            "{join}; x=$(head -c 20000000 /dev/zero | tr '\\0' x); : > {}; while :; do sleep 1; done; echo $x",
            held.display()
        );
        // 4096 times over: long enough for whatever looks.
        let many = format!("F={file}; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do F=\"$F $F\"; done");
        shortage.children.push(sh(&hog));
        eventually("the hog holds its memory", || held.exists());
        shortage.children.push(sh(&format!("{join}; {many}; exec cat $F > /dev/null")));
        // From here on every page that is read costs another.
        eventually("the limit is met", || {
            let text = std::fs::read_to_string(shortage.cgroup.join(met)).unwrap();
            let number = |line: &str| line.strip_prefix("max ").unwrap_or(line).parse::<u64>().ok();
            text.lines().find_map(number).unwrap() >= 100
        });
        shortage
    }
}

fn sh(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).stderr(Stdio::null()).spawn().unwrap()
}

impl Drop for Shortage {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        // The hog's last sleep ends by itself.
        for _ in 0..30 {
            if std::fs::remove_dir(&self.cgroup).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn a_real_shortage_is_named_with_its_victim_and_its_hog() {
    let lab = Lab::new();
    let switch = Path::new("/proc/sys/kernel/task_delayacct");
    let before = std::fs::read_to_string(switch).unwrap();
    // Delays are accounted for processes that start while somebody looks.
    let watching = Running::start(&lab, "prstat -m 60 --enable-accounting");
    std::thread::sleep(Duration::from_millis(500));
    let shortage = Shortage::make(&lab);
    std::thread::sleep(Duration::from_millis(500));
    // Other load on the machine thins the shortage out for a while: look again then.
    let look = || lab.output("doctor --watch 2 --count 1 --json");
    let mut output = look();
    for _ in 0..5 {
        if output.status.code() == Some(1) {
            break;
        }
        output = look();
    }
    let prstat = lab.json("prstat -m --json -n 400 1 1");
    let vmstat = lab.ok("vmstat --json 1 2");
    let words = lab.output("doctor");
    drop(shortage);
    drop(watching);
    assert_eq!(std::fs::read_to_string(switch).unwrap(), before, "the switch was not put back");

    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let doctor = &json["doctor"];
    assert_eq!(doctor["level"], "short", "{doctor:#}");
    assert_eq!(output.status.code(), Some(1));
    assert!(doctor["limited"][0]["path"].as_str().unwrap().contains("shortage-test"), "{doctor:#}");
    assert_eq!(doctor["limited"][0]["level"], "short", "{doctor:#}");
    let holding = doctor["limited"][0]["holding"].as_array().unwrap();
    let process = holding.iter().find(|holder| holder["pid"].is_u64()).unwrap();
    assert_eq!(process["name"], "sh", "{doctor:#}");
    assert!(holding.iter().any(|holder| holder["name"] == "page cache"), "{doctor:#}");
    let evidence = |sign: &str| -> Option<f64> {
        doctor["evidence"].as_array().unwrap().iter().find(|e| e["sign"] == sign).unwrap()["value"].as_f64()
    };
    let line = vmstat.lines().last().unwrap();
    let row: serde_json::Value = serde_json::from_str(line).unwrap();
    let scanned = row["vmstat"]["sr"].as_f64().unwrap();
    assert!(scanned > 1000.0, "{line}");
    // Others on the machine may wait as well.
    let cgroup = doctor["limited"][0]["path"].as_str().unwrap();
    let waiting = doctor["waiting"].as_array().unwrap();
    let victim = waiting.iter().find(|task| task["cgroup"] == cgroup).unwrap_or_else(|| panic!("{doctor:#}"));
    assert_eq!(victim["command"], "cat", "{doctor:#}");
    let waited = victim["dfl"].as_f64().unwrap();
    if let Some(pressure) = evidence("tasks waiting for memory") {
        // The kernel averages pressure over the CPUs that are not idle, so another busy CPU divides
        // it; others that wait too only add to it.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let least = 0.8 * waited / cpus - 3.0;
        assert!(waited > 1.0 && pressure > least, "cat waited {waited}%, pressure {pressure}%");
    }
    let tasks = prstat["tasks"].as_array().unwrap();
    let cat = tasks.iter().find(|t| t["command"] == "cat").unwrap();
    assert!(cat["dfl"].as_f64().unwrap() > 1.0, "{cat}");
    let words = String::from_utf8_lossy(&words.stdout).into_owned();
    assert!(words.contains("SHORT of memory") && words.contains("shortage-test"), "{words}");
    assert!(words.contains("Who holds the memory of /shortage-test") && words.contains("cat ("), "{words}");
}

/// A pagelab that runs until it is interrupted, as by Ctrl-C, whatever becomes of the test.
struct Running(Child);

impl Running {
    fn start(lab: &Lab, arguments: &str) -> Self {
        let mut command = lab.command(arguments);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
            let _ = self.0.wait();
        }
    }
}

/// One scrape, by hand.
fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

fn the_counters_are_served_to_prometheus() {
    let lab = Lab::new();
    let address = "127.0.0.1:19750";
    let server = Running::start(&lab, &format!("export --listen {address} vmstat pressure diskstats"));
    eventually("the server answers", || get(address, "/").is_some());
    let text = get(address, "/metrics").unwrap();
    let missing = get(address, "/nothing").unwrap();
    drop(server);
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.contains("application/openmetrics-text"), "{text}");
    assert!(text.contains("\npagelab_vmstat_pgfault_total "), "{text}");
    assert!(!text.contains("pagelab_meminfo"), "only what was chosen");
    assert!(text.contains("# EOF\n"), "{text}");
    assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
}

/// Keeps a run of what a process of its own needs, as two tests that clear the accessed bits of one
/// disturb each other; the line that serves it.
fn keep_need(lab: &Lab) -> String {
    let mut busy = lab.shell("while :; do :; done").spawn().unwrap();
    let of = busy.id();
    let kept = lab.output(&format!("need {of} --for 12 --html none"));
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert!(kept.status.success(), "{kept:?}");
    let kept = lab.json("export @1 --format json");
    let metrics = kept["runs"][0]["repetitions"][0]["observations"]["metrics"].as_array().unwrap();
    let need = metrics.iter().find(|metric| metric["name"] == "need.memory").unwrap();
    let bytes = need["value"].as_f64().unwrap();
    assert!(bytes > 0.0, "{kept}");
    format!("pagelab_need_memory_bytes{{of=\"{of}\"}} {bytes}")
}

fn the_newest_need_is_served_beside_its_limit() {
    let lab = Lab::new();
    let line = keep_need(&lab);
    // Whether or not this process has one.
    let notebook = rusqlite::Connection::open(lab.path("pagelab.db")).unwrap();
    let limited = notebook.execute("UPDATE metric SET value = 123456789 WHERE name = 'need.limit'", []);
    assert_eq!(limited.unwrap(), 1);
    drop(notebook);
    let address = "127.0.0.1:19753";
    let server = Running::start(&lab, &format!("export --listen {address} need"));
    eventually("the server answers", || get(address, "/").is_some());
    let text = get(address, "/metrics").unwrap();
    drop(server);
    let limit = line.replace("memory_bytes", "limit_bytes");
    let limit = format!("{} 123456789", limit.split_once(' ').unwrap().0);
    for wanted in
        [&*line, &*limit, "# TYPE pagelab_need_memory_bytes gauge", "runs of pagelab need in the notebook"]
    {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

fn a_real_prometheus_scrapes_the_counters() {
    let program = pagelab_testing::prometheus().unwrap();
    let lab = Lab::new();
    let (need, bytes) = keep_need(&lab).split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let _server = Running::start(&lab, "export --listen 127.0.0.1:19751");
    let alerts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/how-to/prometheus-alerts.yml");
    let checked =
        Command::new(program.with_file_name("promtool")).arg("check").arg("rules").arg(&alerts).output();
    let checked = checked.expect("promtool is installed with Prometheus");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    std::fs::copy(alerts, lab.path("alerts.yml")).unwrap();
    let config = "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yml]\nscrape_configs:\n  - job_name: pagelab\n    static_configs: \
                  [{targets: ['127.0.0.1:19751']}]\n";
    std::fs::write(lab.path("prometheus.yml"), config).unwrap();
    let prometheus = Command::new(&program)
        .args([
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            "--web.listen-address=127.0.0.1:19752",
        ])
        .current_dir(lab.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _prometheus = Running(prometheus);
    let address = "127.0.0.1:19752";
    let query = "/api/v1/query?query=pagelab_vmstat_pgfault_total";
    let faults = || get(address, query).filter(|text| text.contains("19751"));
    eventually("Prometheus has scraped", || faults().is_some());
    let rules = || get(address, "/api/v1/rules").unwrap_or_default();
    eventually("Prometheus has evaluated every rule", || rules().matches("\"health\":\"ok\"").count() == 7);
    assert!(rules().matches("\"lastError\"").count() == 0, "{}", rules());
    let faults = faults();
    let name = need.split('{').next().unwrap();
    let kept = get(address, &format!("/api/v1/query?query={name}")).unwrap_or_default();
    assert!(kept.contains(&format!("\"{bytes}\"")), "{need} {bytes}: {kept}");
    let targets = get(address, "/api/v1/targets").unwrap_or_default();
    assert!(faults.is_some_and(|text| text.contains("\"status\":\"success\"")), "{targets}");
    assert!(targets.contains("\"health\":\"up\"") && targets.contains("\"lastError\":\"\""), "{targets}");
}

fn a_recording_is_kept_and_drawn() {
    let lab = Lab::new();
    lab.shows("record --interval 0.1 --count 5 --name quiet", &["5 samples"]);
    lab.shows("list", &["quiet"]);
    let run = lab.json("export quiet --format json");
    let text = run.to_string();
    assert!(
        text.contains("pressure:0:memory:some_total/s") || text.contains("meminfo:0:mem:MemFree"),
        "{text}"
    );
    lab.ok("report quiet -o page.html");
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    // By the names that a person reads.
    assert!(page.contains("page cache") && page.contains("page faults"), "{page}");
}

fn a_killed_recording_keeps_what_it_saw() {
    let lab = Lab::new();
    let selection = "vmstat:::pgfault meminfo:::MemFree";
    let mut killed = Running::start(&lab, &format!("record --interval 0.05 --name cut {selection}"));
    let cells = || {
        let notebook = rusqlite::Connection::open(lab.path("pagelab.db"))?;
        notebook.query_row("SELECT count(*) FROM cell", [], |row| row.get::<_, u32>(0))
    };
    eventually("the recording has rows", || cells().is_ok_and(|cells| cells >= 30));
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    let csv = lab.ok("export cut --format csv");
    let kept = csv.lines().filter(|line| line.contains("torn") && line.contains("meminfo:0:mem:MemFree"));
    assert!(kept.count() >= 5, "a killed recording is lost");
    lab.shows("show @1", &["torn"]);
    lab.ok("report @1 -o page.html");
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("page faults") && page.contains("killed"), "{page}");
}

/// Whether the accounting is on; `None` where this kernel has no switch for it.
fn accounting() -> Option<bool> {
    let text = std::fs::read_to_string("/proc/sys/kernel/task_delayacct").ok()?;
    Some(text.trim() != "0")
}

fn the_accounting_switch_is_put_back_even_after_a_kill() {
    let lab = Lab::new();
    let mut killed = Running::start(&lab, "prstat 60 --enable-accounting");
    eventually("accounting is on", || accounting().unwrap());
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    assert!(accounting().unwrap(), "nobody could put it back yet");
    lab.ok("stat -l vmstat:::pgfault");
    assert!(!accounting().unwrap(), "the next start puts it back");
}

fn the_accounting_switch_stays_on_for_the_last_that_needs_it() {
    let lab = Lab::new();
    let journals = || {
        let folder = std::fs::read_dir(lab.path("state")).into_iter().flatten().flatten();
        folder.filter(|file| file.path().extension().is_some_and(|e| e == "journal")).count()
    };
    let first = Running::start(&lab, "prstat 60 --enable-accounting");
    eventually("accounting is on", || accounting().unwrap());
    let second = Running::start(&lab, "prstat 60 --enable-accounting");
    eventually("there are two journals", || journals() == 2);
    drop(first);
    assert!(accounting().unwrap(), "the second still needs it");
    drop(second);
    assert!(!accounting().unwrap(), "the last puts it back");
}
