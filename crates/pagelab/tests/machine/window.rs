//! Tests of `pagelab trace --window`: the trace has the references outside the window of the most
//! recent pages, a recorded program behaves as it does without a recorder, and commands refuse
//! memory for which the trace does not hold.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::common::{Lab, eventually, joined};
use crate::pager;
use pagelab_reference::trace::{Options, Reader, recorded};
use pagelab_testing::{CC, PRELOAD, ROOT, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        a_window_lets_through_what_is_not_among_the_most_recent_pages: ROOT, PRELOAD, CC;
        a_trace_through_a_window_is_refused_for_smaller_memory: PRELOAD;
        a_recorded_program_does_what_it_does_by_itself: PRELOAD, CC;
        executed_programs_are_recorded_through_the_window: PRELOAD;
        a_window_that_grows_is_stated_in_the_trace: PRELOAD, CC;
        what_has_no_window_is_refused: PRELOAD, CC;
        nothing_is_left_of_a_program_whose_recorder_was_killed: PRELOAD;
    }
}

fn trace(lab: &Lab, arguments: &str) -> Output {
    lab.command(&format!("trace --force {arguments}")).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    joined(&String::from_utf8_lossy(&output.stderr))
}

/// The pages of a trace in order.
fn pages(path: &Path) -> Vec<u64> {
    let mut reader = Reader::open(path, &Options { window: true, ..Options::default() }).unwrap();
    let mut list = Vec::new();
    while let Some((page, _, count)) = reader.run(u64::MAX).unwrap() {
        assert_eq!(count, 1, "page {page}");
        list.push(page);
    }
    list
}

const PAGES: u64 = 600;
const REFERENCES: u64 = 40_000;

/// Prints the address of an area, and references its pages once in order, then at random.
const AREA: &str = "
#include <stdio.h>
#include <sys/mman.h>
int main(void) {
    volatile char *area = mmap(0, 600 * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf(\"%lu\\n\", (unsigned long)area / 4096);
    fflush(stdout);
    for (long n = 0; n < 600; n++) area[n * 4096] = 1;
    unsigned state = 1;
    for (long n = 0; n < 40000; n++) {
        state = state * 1664525 + 1013904223;
        area[(state >> 8) % 600 * 4096L] = n;
    }
    return 7;
}";

/// The program's references, as pages of its area.
fn references() -> Vec<u64> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u64::from(state >> 8) % PAGES
    };
    (0..PAGES).chain((0..REFERENCES).map(|_| next())).collect()
}

fn a_window_lets_through_what_is_not_among_the_most_recent_pages() {
    // As root: otherwise faults of the kernel go unseen, and the handler empties the window now and
    // then. BATCH: pages that may be accessible in addition to K, those of one signal. OWN: pages
    // that the handler itself references, which are in the window but not in the trace, a few per
    // signal.
    const BATCH: usize = 64;
    const OWN: usize = 24;
    let lab = Lab::new();
    let program = lab.compile("area", AREA, &[]);
    for window in [128, 256] {
        let output = trace(&lab, &format!("--window {window} -o w.trace -- {}", program.display()));
        assert_eq!(output.status.code(), Some(7), "{}", said(&output));
        let first: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        let all = pages(&lab.path("w.trace"));
        let area = |page: u64| page.checked_sub(first).filter(|page| *page < PAGES);
        // The last position of each page in the trace, counted in recorded references.
        let (mut last, mut at, mut let_through) = (HashMap::new(), 0, 0);
        for (number, page) in references().into_iter().enumerate() {
            let next = (at..all.len()).find(|&at| area(all[at]).is_some());
            let is_next = next.is_some_and(|next| area(all[next]) == Some(page));
            let age = last.get(&page).map(|last: &usize| at - last);
            let recorded = match age {
                Some(age) if age + OWN <= window => false,
                Some(age) if age <= window + BATCH + OWN => is_next,
                _ => true,
            };
            if recorded {
                assert!(
                    is_next,
                    "K = {window}: reference {number} to page {page} ({age:?}) is not in the trace"
                );
                let next = next.unwrap();
                last.insert(page, next);
                at = next + 1;
                let_through += 1;
            }
        }
        assert!(all[at..].iter().all(|&page| area(page).is_none()), "K = {window}: what was not referenced");
        // The probability that a random page of 600 is outside the window.
        let share = let_through as f64 / REFERENCES as f64;
        let expected = 1.0 - (window + BATCH / 2) as f64 / PAGES as f64;
        assert!((share - expected).abs() < 0.1, "K = {window}: {share:.3} instead of {expected:.3}");
    }
}

fn a_trace_through_a_window_is_refused_for_smaller_memory() {
    let lab = Lab::new();
    let words: String = (0..40_000u32).map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761))).collect();
    std::fs::write(lab.path("words"), words).unwrap();
    let output = trace(&lab, "--window 128 -o w.trace -- sort --parallel=1 words -o sorted");
    assert!(output.status.success(), "{}", said(&output));
    let told = said(&output);
    assert!(told.contains("window: 128 pages; the trace holds for memory of 512 pages and more"), "{told}");
    let (heading, ending) = recorded::ends(&lab.path("w.trace")).unwrap().unwrap();
    assert_eq!((heading.window, heading.least()), (Some(128), 512));
    assert!(ending.outside.is_some());
    let window = "recorded through a window of 128 pages";
    lab.refuses("mrc w.trace --memory 511p", 2, &[window, "512 pages and more"]);
    lab.refuses("replay w.trace --memory 100p --on lru", 2, &[window]);
    lab.refuses("convert w.trace --to text -o w.txt", 3, &[window]);
    lab.refuses("wss w.trace", 3, &[window]);
    lab.refuses("reduce w.trace --memory 600p -o r", 3, &[window]);
    let run = "run command --trace w.trace --on model:lru --html none";
    lab.refuses(&format!("{run} --memory 1M -- sort --parallel=1 words -o sorted"), 3, &["through a window"]);
    lab.ok(&format!("{run} --memory 4M -- sort --parallel=1 words -o sorted"));
    lab.ok("replay w.trace --memory 512p,1000p --on lru --on clock --on opt");
    lab.ok("report w.trace -o w.html");
    lab.shows("show w.trace", &["window of 128 pages", "512 pages and more"]);
    let rows = lab.ok("mrc w.trace --json");
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        assert!(row["frames"].as_u64().unwrap() >= 512, "{row}");
    }
}

fn a_recorded_program_does_what_it_does_by_itself() {
    let lab = Lab::new();
    let program = lab.compile("program", pager::PROGRAM, &["-pthread"]);
    let output = trace(&lab, &format!("--window 128 -o w.trace -- {}", program.display()));
    assert!(output.status.success(), "{}", said(&output));
    let (_, ending) = recorded::ends(&lab.path("w.trace")).unwrap().unwrap();
    assert_eq!((ending.processes, ending.unrecorded_threads), (2, 0));
    assert!(ending.threads >= 3, "{ending:?}");
    std::fs::write(lab.path("script"), "echo output; echo error >&2; exit 5\n").unwrap();
    let output = trace(&lab, "--window 128 -o s.trace -- sh script");
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "output\n");
    assert!(said(&output).contains("error"));
}

fn executed_programs_are_recorded_through_the_window() {
    let lab = Lab::new();
    std::fs::write(lab.path("script"), "true & ls / | wc -l\n").unwrap();
    let output = trace(&lab, "--window 256 -o w.trace -- sh script");
    assert!(output.status.success(), "{}", said(&output));
    let (_, ending) = recorded::ends(&lab.path("w.trace")).unwrap().unwrap();
    let names: Vec<&str> =
        ending.streams.iter().filter_map(|one| one.program.first()).map(|s| &**s).collect();
    for name in ["sh", "ls", "wc"] {
        assert!(names.iter().any(|found| found.ends_with(name)), "{names:?}");
    }
}

fn a_window_that_grows_is_stated_in_the_trace() {
    let lab = Lab::new();
    // A program that misses a small window at every reference.
    let source = AREA.replace("600", "3000").replace("40000", "3000000");
    let program = lab.compile("large", &source, &[]);
    let output = trace(&lab, &format!("--window auto -o w.trace -- {}", program.display()));
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let (heading, _) = recorded::ends(&lab.path("w.trace")).unwrap().unwrap();
    let window = heading.window.unwrap();
    assert!(window > 256 && window.is_power_of_two(), "{window}");
    assert!(said(&output).contains("pages; the trace holds for memory"), "{}", said(&output));
    lab.refuses(&format!("mrc w.trace --memory {}p", 4 * window - 1), 2, &["through a window"]);
    lab.ok(&format!("mrc w.trace --memory {}p", 4 * window));
}

fn what_has_no_window_is_refused() {
    let lab = Lab::new();
    let program = lab.compile("static", "int main(void) { return 0; }", &["-static"]);
    let command = format!("trace --window 256 -o s.trace -- {}", program.display());
    lab.refuses(&command, 3, &["statically linked", "without --window"]);
    assert!(!lab.path("s.trace").exists());
    lab.refuses("trace --window 12 -- true", 2, &["between 128 and 65536"]);
    lab.refuses("trace --window 256 --granularity line -- true", 2, &["records pages"]);
}

fn nothing_is_left_of_a_program_whose_recorder_was_killed() {
    let lab = Lab::new();
    std::fs::write(lab.path("script"), "while :; do :; done\n").unwrap();
    let mut recorder = lab
        .command("trace --window 128 -o w.trace --quiet -- sh script")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", recorder.id());
    let child = || std::fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse::<u32>().ok();
    eventually("the program runs", || child().is_some());
    let child = child().unwrap();
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    eventually("the program is gone", || !Path::new(&format!("/proc/{child}/exe")).exists());
    let left = std::fs::read_dir("/dev/shm").unwrap().flatten();
    let left = left.filter(|file| file.file_name().to_string_lossy().contains("pagelab"));
    assert_eq!(left.count(), 0, "a name in /dev/shm");
}
