//! Programs whose memory a policy pages: what they compute stays right, and what cannot be paged is
//! refused.

use std::fs;
use std::process::Command;

use crate::common::Lab;
use pagelab_testing::{CC, PRELOAD, Test, USERFAULT, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        a_sorted_file_is_sorted: PRELOAD;
        a_program_finds_what_it_wrote: PRELOAD, CC;
        unpageable_programs_are_refused: PRELOAD, CC;
        more_memory_than_pages_takes_no_more: USERFAULT;
        leftover_processes_end_with_the_run: PRELOAD;
    }
}

/// A metric of the newest run.
fn metric(lab: &Lab, name: &str) -> f64 {
    let json = lab.json("export @1 --format json");
    let metrics = json["runs"][0]["repetitions"][0]["observations"]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|metric| metric["name"] == name);
    found.and_then(|metric| metric["value"].as_f64()).unwrap_or_else(|| panic!("no {name} in {metrics:?}"))
}

fn a_sorted_file_is_sorted() {
    let lab = Lab::new();
    let mut state = 1u64;
    let mut lines: Vec<String> = (0..60_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:016x}", state >> 3)
        })
        .collect();
    fs::write(lab.path("words"), lines.join("\n") + "\n").unwrap();
    lines.sort();
    for policy in ["arc", "lru,hidden=1", "fifo,hidden=0"] {
        let run = format!("run command --on pager:{policy} --memory 2M --html none --quiet");
        let mut sort = lab.command(&format!("{run} -- sort -S 12M words -o sorted"));
        let output = sort.env("LC_ALL", "C").output().unwrap();
        assert!(output.status.success(), "{policy}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(fs::read_to_string(lab.path("sorted")).unwrap(), lines.join("\n") + "\n", "{policy}");
        assert!(metric(&lab, "faults.major") > 100.0 && metric(&lab, "swap.out") > 100.0, "{policy}");
    }
}

/// Blocks of every kind, system calls on evicted pages, a moved mapping, emptied pages, a thread, a
/// forked child.
pub const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define WORDS 512
static unsigned long value(unsigned long page, unsigned long n) {
    return n % 2 ? page : (page * 6364136223846793005UL + n) * 1442695040888963407UL;
}
static void fill(unsigned long *at, unsigned long pages, unsigned long from) {
    for (unsigned long p = 0; p < pages; p++)
        for (unsigned long n = 0; n < WORDS; n++) at[p * WORDS + n] = value(p + from, n);
}
static void check(const char *what, unsigned long *at, unsigned long pages, unsigned long from) {
    for (unsigned long k = 0; k < pages; k++) {
        unsigned long p = k * 7919% pages;
        for (unsigned long n = 0; n < WORDS; n++)
            if (at[p * WORDS + n] != value(p + from, n)) {
                fprintf(stderr, "%s: page %lu word %lu is %lx\n", what, p, n, at[p * WORDS + n]);
                _exit(3);
            }
    }
}
static void *thread(void *unused) {
    char *blocks[2000];
    for (int k = 0; k < 2000; k++) { blocks[k] = malloc(1000); memset(blocks[k], k, 1000); }
    for (int k = 0; k < 2000; k++)
        for (int n = 0; n < 1000; n++)
            if (blocks[k][n] != (char)k) { fprintf(stderr, "thread: block %d\n", k); _exit(4); }
    return unused;
}
int main(void) {
    unsigned long pages = 1501;
    unsigned long *big = malloc(pages * 4096);
    fill(big, pages, 0);
    check("big", big, pages, 0);
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
    char **small = malloc(20000 * sizeof *small);
    for (int k = 0; k < 20000; k++) { small[k] = malloc(100); memset(small[k], k, 100); }
    check("big beside a thread", big, pages, 0);
    for (int k = 0; k < 20000; k++)
        for (int n = 0; n < 100; n++)
            if (small[k][n] != (char)k) { fprintf(stderr, "small block %d\n", k); _exit(5); }
    pthread_join(other, 0);
    big = realloc(big, 2 * pages * 4096);
    check("moved", big, pages, 0);
    fill(big + pages * WORDS, pages, pages);
    check("grown", big, 2 * pages, 0);
    FILE *file = tmpfile();
    int number = fileno(file);
    char *bytes = (char *)big;
    long left = 2 * pages * 4096;
    for (long done = 0, one; done < left; done += one)
        if ((one = write(number, bytes + done, left - done)) <= 0) { perror("write"); _exit(6); }
    unsigned long *copy = mmap(0, left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    lseek(number, 0, SEEK_SET);
    for (long done = 0, one; done < left; done += one)
        if ((one = read(number, (char *)copy + done, left - done)) <= 0) { perror("read"); _exit(7); }
    check("copy", copy, 2 * pages, 0);
    madvise(copy + 100 * WORDS, 300 * 4096, MADV_DONTNEED);
    for (unsigned long n = 100 * WORDS; n < 400 * WORDS; n++)
        if (copy[n]) { fprintf(stderr, "emptied: word %lu is %lx\n", n, copy[n]); _exit(8); }
    check("before what was emptied", copy, 100, 0);
    check("behind it", copy + 400 * WORDS, 2 * pages - 400, 400);
    pid_t child = fork();
    if (child == 0) {
        check("child", big, 2 * pages, 0);
        fill(big, pages, 5);
        check("child's own", big, pages, 5);
        _exit(0);
    }
    check("parent", big, 2 * pages, 0);
    int status = 1;
    waitpid(child, &status, 0);
    check("parent after its child", big, 2 * pages, 0);
    munmap(copy, left);
    copy = mmap(0, left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long n = 0; n < left / 8; n++) if (copy[n]) { fprintf(stderr, "new: word %ld\n", n); _exit(9); }
    return status != 0;
}
"#;

/// Compiles the program with these words of the compiler's.
fn compiled(lab: &Lab, name: &str, words: &[&str]) {
    lab.compile(name, PROGRAM, words);
}

fn a_program_finds_what_it_wrote() {
    let lab = Lab::new();
    compiled(&lab, "program", &[]);
    for policy in ["lru", "clock,hidden=0", "arc,hidden=1", "s3-fifo"] {
        lab.ok(&format!("run command --on pager:{policy} --memory 2M --html none --quiet -- ./program"));
        assert!(metric(&lab, "faults.major") > 1000.0 && metric(&lab, "swap.out") > 1000.0, "{policy}");
        assert_eq!(metric(&lab, "command.status"), 0.0);
    }
}

fn unpageable_programs_are_refused() {
    let lab = Lab::new();
    compiled(&lab, "static", &["-static"]);
    for (arguments, wanted) in [
        ("run command --on pager:lru -- ./static", "is static"),
        ("run command --on pager:opt -- true", "must know every reference"),
        ("run command --on pager:lru --sweep-memory 1M..8M -- true", "use host"),
        ("run command --on pager:lru --swap zram --memory 8M -- true", "store of its own"),
    ] {
        lab.refuses(arguments, 2, &[wanted]);
    }
    // A program that ends badly is a failed repetition, as on the host.
    lab.refuses("run command --on pager:lru --memory 8M --html none -- false", 3, &["false ended with"]);
}

fn leftover_processes_end_with_the_run() {
    let lab = Lab::new();
    // Nobody else's sleeper has this many seconds.
    let sleeper = |n: u32| format!("600.{}{n}", std::process::id());
    let sleeps = |seconds: &str| {
        let found = Command::new("pgrep").args(["-fx", &format!("sleep {seconds}")]).output().unwrap();
        found.status.success()
    };
    let line = |seconds: &str, rest: &str| {
        let mut run = lab.command("run command --on pager:lru --memory 8M --html none --quiet -- sh -c");
        run.arg(format!("setsid sleep {seconds} & {rest}"));
        run
    };
    let seconds = sleeper(1);
    assert!(line(&seconds, "exec sleep 0.5").status().unwrap().success());
    assert!(!sleeps(&seconds), "it has ended with its run");

    let seconds = sleeper(2);
    let mut pagelab = line(&seconds, "exec sleep 60").spawn().unwrap();
    while !sleeps(&seconds) {
        assert!(pagelab.try_wait().unwrap().is_none(), "the run goes on");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    pagelab.kill().unwrap();
    pagelab.wait().unwrap();
    lab.ok("doctor --leftovers");
    assert!(!sleeps(&seconds), "the next start has ended it");
}

/// Tables are as long as there are pages, not frames.
fn more_memory_than_pages_takes_no_more() {
    let lab = Lab::new();
    for policy in ["lru", "arc", "opt"] {
        lab.ok(&format!(
            "run mapanon --on pager:{policy} --memory 100G --pages 100 --references 1000 --html none"
        ));
        assert_eq!(metric(&lab, "faults.major"), 0.0, "{policy}");
    }
}
