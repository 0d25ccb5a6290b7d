//! What the kernel counts for us on its tracepoints, against what was done.

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use pagelab_counters::Root;
use pagelab_counters::views::vmstat::Executables;
use pagelab_kernel::bpf::pages::Pages;
use pagelab_kernel::bpf::tasks::Tasks;
use pagelab_kernel::perf::profile::type_of;
use pagelab_testing::{Need, ROOT, Test, tests};

use crate::DISK;

pub fn tests() -> Vec<Test> {
    tests! {
        a_threads_calls_and_lock_waits_are_counted: TASKS;
        pages_of_code_are_counted: PAGES, DISK;
        every_thread_finds_the_tracepoints: TRACEPOINTS;
    }
}

/// The tracepoints of tasks can be counted.
const TASKS: Need =
    Need { name: "bpf", on: &[&ROOT], met: || Tasks::start().map(drop).map_err(|e| e.to_string()) };

/// The tracepoints of the page cache can be counted.
const PAGES: Need =
    Need { name: "bpf", on: &[&ROOT], met: || Pages::start().map(drop).map_err(|e| e.to_string()) };

/// Tracefs can be read.
const TRACEPOINTS: Need = Need {
    name: "tracepoints",
    on: &[&ROOT],
    met: || type_of("sched:sched_switch").map(drop).ok_or_else(|| "no tracefs".to_owned()),
};

/// Looking up a tracepoint does not move the thread to another mount namespace.
fn every_thread_finds_the_tracepoints() {
    assert!(type_of("sched:sched_switch").is_some());
    let namespace = |task: &str| std::fs::read_link(format!("/proc/{task}/ns/mnt")).unwrap();
    let parent = rustix::process::getppid().unwrap().as_raw_pid().to_string();
    assert_eq!(namespace("thread-self"), namespace(&parent));
}

fn a_threads_calls_and_lock_waits_are_counted() {
    let tasks = Tasks::start().unwrap();
    let own = || u64::from(rustix::thread::gettid().as_raw_pid().unsigned_abs());
    let before = tasks.thread(own());
    for _ in 0..1000 {
        // Neither the C library nor the compiler keeps the answer.
        let _ = rustix::process::getppid();
    }
    let calls = tasks.thread(own()).calls - before.calls;
    assert!((1000..1100).contains(&calls), "{calls} calls");

    let (lock, ready) = (Arc::new(Mutex::new(())), Arc::new(Barrier::new(2)));
    let held = lock.lock().unwrap();
    let waiter = {
        let (lock, ready) = (Arc::clone(&lock), Arc::clone(&ready));
        std::thread::spawn(move || {
            ready.wait();
            drop(lock.lock());
        })
    };
    ready.wait();
    std::thread::sleep(Duration::from_millis(300));
    let threads: Vec<u64> = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().parse().unwrap())
        .collect();
    let lasting = threads.iter().map(|&t| tasks.thread(t).lock_wait).max().unwrap();
    drop(held);
    waiter.join().unwrap();
    assert!(lasting > 200_000_000, "a wait that lasts is counted until now: {lasting} ns");
}

/// Drops a file of code from the page cache and reads it again.
fn pages_of_code_are_counted() {
    let mut pages = Pages::start().unwrap();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = folder.path().join("sleep");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let file = std::fs::File::open(&program).unwrap();
    file.sync_all().unwrap();
    let size = file.metadata().unwrap().len();
    // Nobody runs it yet: no executable.
    let _ = pages.sample(&Root::live());
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
    let mut read = Executables::default();
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(20));
        let now = pages.sample(&Root::live());
        read.paged_in += now.paged_in;
        read.freed += now.freed;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let whole = size.div_ceil(rustix::param::page_size() as u64);
    assert!(read.paged_in >= whole / 2, "{read:?} of {whole} pages");
}
