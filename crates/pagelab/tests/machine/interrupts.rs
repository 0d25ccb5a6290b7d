//! Ctrl-C: whatever a command waits for or computes, it ends, and once or often pressed, nothing is
//! left behind.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Lab;
use pagelab_testing::{KERNELS, LIMITS, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        waits_end;
        computations_end;
        loads_end_and_leave_nothing: LIMITS;
        machines_end: KERNELS;
    }
}

/// After this it goes on as if nobody had pressed Ctrl-C, and is killed: other load on the machine
/// explains less.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for nobody that comes.
const WAITS: &[&str] = &[
    "wss SELF --interval 1000",
    "wss SELF --interval 0.05 --count 1000000",
    "record --interval 1000",
    "record --interval 0.01",
    "export --listen 127.0.0.1:0",
    "clock serve 127.0.0.1:0",
    "doctor",
    "doctor --watch 1000",
    "vmstat 1000",
    "iostat 1000",
    "stat vmstat 1000",
    "prstat 1000",
    "prstat -m 0.05",
    "mrc FIFO",
    "replay FIFO --memory 10%",
    "wss FIFO",
    "run mapanon --on model:lru --pages 64 --references 100 --pattern trace:FIFO --html none",
    "run forkstorm --script FIFO --memory none --html none",
    "run mapanon --on model:lru --pages 64 --references 100 --html FIFO",
    "run clock --reference SILENT --html none",
    // The notebook is somebody else's for as long as the test lasts.
    "--notebook LOCKED run mapanon --on model:lru --pages 64 --references 100 --html none",
    "--notebook LOCKED record --interval 1000",
];

/// Computes for long, with nothing set up.
const COMPUTATIONS: &[&str] = &[
    "mrc uniform --pages 3000000 --references 30000000",
    "mrc smooth-sin-random --pages 1000000 --references 20000000 --policy opt --policy arc",
    "mrc zipf:0.9 --pages 3000000 --references 4000000000 --sample 0.01",
    "replay uniform --pages 1000000 --references 20000000 --on lru --on linux-lru --on linux-mglru --memory 10%",
    "wss uniform --pages 3000000 --references 30000000",
    "run mapanon --on model:opt --pages 1000000 --references 60000000 --html none",
    "run mapanon --on model:linux-mglru --pages 1000000 --references 30000000 --memory 1G --html none",
    "run vmtest --on model:sun4c-sunos403 --repeat 1000 --html none",
    "reproduce irlam-1990",
];

/// Loads this machine, under a limit and without one.
const LOADS: &[&str] = &[
    "run mapanon --pages 12288 --references 2000000000 --pattern uniform --memory 32M --html none",
    "run mapanon --pages 12288 --references 20000000 --pattern uniform --memory 32M --swap zram --html none",
    "run mapfile --pages 12288 --references 20000000 --memory 32M --html none",
    "run vmtest --seconds 100 --memory 32M --html none",
    "run forkstorm --forks 100000000 --memory none --html none",
    "run forkstorm --script endless --html none",
    "run forkstorm --script endless --memory none --html none",
    "run faultscale --seconds 100 --memory none --html none",
    "run fileread --seconds 100 --memory 32M --html none",
    "run seqread --seconds 100 --memory 32M --html none",
    "run restore --pages 100000 --references 16000000 --pattern uniform --html none",
    "run clock --steps 1000 --memory none --html none",
    "run command --html none -- sleep 1000",
    "run command --memory none --html none -- setsid sleep 1000",
    "need --max-memory 64M --html none -- sleep 1000",
    "run --html none",
    "reproduce --on host",
];

const MACHINES: &[&str] = &[
    "run mapanon --pages 64 --references 100 --memory none --html none --on kernel:OLD,accel=tcg",
    "run mapanon --pages 64 --references 100 --memory none --html none --on kernel:OLD,accel=tcg,append=rdinit=/nothing",
];

fn waits_end() {
    each(WAITS, &[(400, false)]);
}

fn computations_end() {
    each(COMPUTATIONS, &[(700, false)]);
}

fn loads_end_and_leave_nothing() {
    each(LOADS, &[(60, true), (900, false)]);
}

fn machines_end() {
    each(MACHINES, &[(300, true), (2500, false)]);
}

/// Each command, interrupted after these times in milliseconds, once or often.
fn each(commands: &[&str], moments: &[(u64, bool)]) {
    for command in commands {
        for &(wait, often) in moments {
            interrupt(command, wait, often);
        }
    }
}

/// Interrupts the command after `wait` ms. It ends, and nothing of it is left.
fn interrupt(command: &str, wait: u64, often: bool) {
    let lab = Lab::new();
    let (words, _held) = filled(&lab, command);
    let mut child = lab.begin(&words, Stdio::null());
    std::thread::sleep(Duration::from_millis(wait));
    if let Some(status) = child.try_wait().unwrap() {
        let output = child.wait_with_output().unwrap();
        panic!("{command}: ended by itself with {status}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let begun = Instant::now();
    signal(&child);
    let mut more = if often { 3 } else { 0 };
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
        if more > 0 {
            signal(&child);
            more -= 1;
        }
        if begun.elapsed() > TIMEOUT {
            let _ = child.kill();
        }
    };
    // Those that say something in the end are successful, the others say 130 as shells do.
    let ended = status.success() || status.code() == Some(130) || status.signal() == Some(2);
    assert!(ended, "{command}: {status} {:?}", child.wait_with_output());
    lab.nothing_is_left(command);
}

/// The command with what the test gives it, and what is to be held until it has ended.
fn filled(lab: &Lab, command: &str) -> (String, (TcpListener, Option<rusqlite::Connection>)) {
    std::fs::File::create(lab.path("endless")).unwrap().set_len(1 << 40).unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    if command.contains("FIFO") {
        assert!(Command::new("mkfifo").arg(lab.path("fifo")).status().unwrap().success());
    }
    let held = command.contains("LOCKED").then(|| {
        lab.ok("--notebook locked.db run mapanon --on model:lru --pages 8 --references 20 --html none");
        let notebook = rusqlite::Connection::open(lab.path("locked.db")).unwrap();
        notebook.execute_batch("BEGIN EXCLUSIVE").unwrap();
        notebook
    });
    let words = command
        .replace("SELF", &std::process::id().to_string())
        .replace("FIFO", "fifo")
        .replace("LOCKED", "locked.db")
        .replace("SILENT", &silent.local_addr().unwrap().to_string());
    (words, (silent, held))
}

fn signal(child: &Child) {
    // It may have ended already.
    let id = child.id().to_string();
    let _ = Command::new("kill").args(["-INT", &id]).stderr(Stdio::null()).status();
}
