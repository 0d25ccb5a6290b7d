//! `pagelab trace`: what a program references is what the trace has, however the program goes about
//! it and ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{Lab, eventually, joined};
use pagelab_testing::{CC, QEMU_USER, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        trace_holds_the_references_of_a_program: QEMU_USER, CC;
        an_access_across_pages_references_both: QEMU_USER, CC;
        threads_and_forked_processes_have_their_own_order: QEMU_USER, CC;
        programs_that_it_executes_are_recorded: QEMU_USER, CC;
        pages_are_those_that_the_kernel_has_but_for_known_reasons: QEMU_USER, CC;
        one_process_is_read_by_itself_everywhere: QEMU_USER, CC;
        a_killed_program_and_an_interrupted_recording_keep_what_was_recorded: QEMU_USER, CC;
        the_programs_descriptors_and_status_are_its_own: QEMU_USER;
        untraceable_programs_are_refused: QEMU_USER;
        a_torn_or_damaged_trace_is_refused: QEMU_USER;
        models_replay_the_recording_of_a_program: QEMU_USER, CC;
        a_trace_is_drawn_with_its_mappings: QEMU_USER, CC;
        a_recording_is_exported_with_its_kinds: QEMU_USER;
    }
}

/// Compiles a program without libraries of its own kind, and gives its path.
fn compiled(lab: &Lab, name: &str, source: &str) -> String {
    lab.compile(name, source, &[]).to_str().unwrap().to_owned()
}

fn trace(lab: &Lab, arguments: &str) -> Output {
    lab.command(&format!("trace --force {arguments}")).stdin(Stdio::null()).output().unwrap()
}

/// The number that stands before `word` in what was said.
fn number(said: &str, word: &str) -> u64 {
    let before = said.split(word).next().unwrap();
    let text = before.split([' ', '(']).rfind(|part| !part.is_empty()).unwrap();
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("'{text}' before '{word}' in {said}"))
}

/// Waits until the trace has some of its references.
fn recorded(lab: &Lab, name: &str) {
    let bytes = || fs::metadata(lab.path(name)).map_or(0, |file| file.len());
    eventually("something is recorded", || bytes() > 1 << 18);
}

fn said(output: &Output) -> String {
    joined(&String::from_utf8_lossy(&output.stderr))
}

/// 1,000 pages: 100 passes that write, 300 that read.
const PASSES: &str = "
#include <stdlib.h>
int main(void) {
    volatile char *pages = malloc(1001 * 4096);
    for (int pass = 0; pass < 100; pass++) for (long i = 0; i < 1000; i++) pages[i * 4096] = pass;
    long sum = 0;
    for (int pass = 0; pass < 300; pass++) for (long i = 0; i < 1000; i++) sum += pages[i * 4096];
    return sum == 1;
}";

fn trace_holds_the_references_of_a_program() {
    let lab = Lab::new();
    let program = compiled(&lab, "passes", PASSES);
    let output = trace(&lab, &format!("-o data.trace --only data -- {program}"));
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    // Beside these, the loader and the C library: some ten thousand.
    let (loads, stores) = (number(&said, " loads"), number(&said, " stores"));
    assert!((300_000..400_000).contains(&loads) && (100_000..150_000).contains(&stores), "{said}");
    assert_eq!(number(&said, " fetches"), 0);
    assert_eq!(number(&said, " references"), loads + stores, "{said}");
    let pages = number(&said, " pages");
    assert!((1000..1300).contains(&pages), "{said}");
    // Each pass over 1,000 pages misses all of them in LRU with 500, and none with as many as there are.
    let rows = lab.ok("replay data.trace --memory 500p,2000p --on model:lru --json");
    let rows: Vec<serde_json::Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |row: &serde_json::Value, key: &str| row[key].as_u64().unwrap();
    assert_eq!(of(&rows[0], "references"), loads + stores);
    assert!((400_000..405_000).contains(&of(&rows[0], "misses")), "{rows:?}");
    assert_eq!(of(&rows[1], "misses"), pages);
    // The mechanism broken: one pass fewer is 1,000 loads fewer.
    let fewer = compiled(&lab, "fewer", &PASSES.replace("pass < 300", "pass < 299"));
    let fewer = trace(&lab, &format!("-o fewer.trace --only data -- {fewer}"));
    let difference = loads.abs_diff(number(&self::said(&fewer), " loads"));
    assert!((900..1100).contains(&difference), "{difference}");
    // Lines are finer: 64 bytes of each page.
    let lines = trace(&lab, &format!("-o lines.trace --granularity line --only data -- {program}"));
    assert!(number(&self::said(&lines), " lines of") > pages, "{lines:?}");
    lab.shows("mrc lines.trace --page-size 64", &["pages of 64 bytes"]);
    // In pages they are about as many again: where the stack and libraries lie differs from run to run.
    let larger: serde_json::Value =
        serde_json::from_str(&lab.ok("mrc lines.trace --page-size 4096 --memory 2000p --json")).unwrap();
    assert!(larger["misses"].as_u64().unwrap().abs_diff(pages) < 20, "{larger} against {pages}");
}

/// 400 pairs of pages: the second of each is referenced by what begins in the first, and by nothing
/// else.
const ACROSS: &str = "
#include <sys/mman.h>
int main(void) {
    char *pages = mmap(0, 800 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    for (long i = 0; i < 400; i++) {
        volatile long *across = (long *)(pages + (2 * i + 1) * 4096 - BEFORE);
        if (i % 2) *across = i; else sum += *across;
    }
    return sum == 1;
}";

fn an_access_across_pages_references_both() {
    let lab = Lab::new();
    let pages = |before: &str| {
        let program = compiled(&lab, "across", &ACROSS.replace("BEFORE", before));
        let output = trace(&lab, &format!("-o across.trace --only data -- {program}"));
        assert!(output.status.success(), "{}", said(&output));
        number(&said(&output), " pages")
    };
    let (within, across) = (pages("8"), pages("4"));
    assert!((390..=410).contains(&(across - within)), "{within} pages within, {across} across");
}

fn threads_and_forked_processes_have_their_own_order() {
    let lab = Lab::new();
    let program = compiled(
        &lab,
        "family",
        "
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile char area[4][100 * 4096];
static void *touch(void *which) {
    for (int pass = 0; pass < 1000; pass++)
        for (int i = 0; i < 100; i++) area[(long)which][i * 4096L] = pass;
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, touch, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    if (fork() == 0) { touch((void *)2); _exit(0); }
    wait(0);
    return 0;
}",
    );
    let output = trace(&lab, &format!("-o family.trace --only data -- {program}"));
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("processes: 2; threads: 4") || said.contains("processes: 2; threads: 3"), "{said}");
    // Three times 100,000, of the child none twice and none left out.
    let stores = number(&said, " stores");
    assert!((300_000..330_000).contains(&stores), "{said}");
    // The child's pages are others than its parent's.
    assert!(number(&said, " pages") >= 300, "{said}");
}

/// What stands at the end of a trace.
fn ending(lab: &Lab, trace: &str) -> serde_json::Value {
    let bytes = fs::read(lab.path(trace)).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let text = number(bytes.len() - 24) + 20;
    let length = u32::from_le_bytes(bytes[text..text + 4].try_into().unwrap()) as usize;
    serde_json::from_slice(&bytes[text + 4..text + 4 + length]).unwrap()
}

/// Touches memory in five ways and says of each area where it begins, its pages, and how many of
/// them are in the page table: written pages, pages that were read alone, pages that the kernel
/// alone has filled, one page of 512 that may be a huge one, one page of a file in the page cache.
const AREAS: &str = r#"
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
static void say(const char *name, volatile char *area, long pages) {
    static uint64_t entries[4096];
    int map = open("/proc/self/pagemap", O_RDONLY);
    long present = 0;
    pread(map, entries, 8 * pages, (uintptr_t)area / 4096 * 8);
    for (long i = 0; i < pages; i++) present += entries[i] >> 63;
    printf("%s %lx %ld %ld\n", name, (unsigned long)area, pages, present);
}
static volatile char *map(long pages, int file) {
    int flags = MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0);
    volatile char *area = mmap(0, pages * 4096, PROT_READ | (file < 0 ? PROT_WRITE : 0), flags, file, 0);
    if (file < 0) madvise((void *)area, pages * 4096, MADV_NOHUGEPAGE);
    return area;
}
int main(int count, char **words) {
    (void)count;
    volatile char *written = map(3000, -1), *looked = map(500, -1), *filled = map(700, -1), *huge = map(1536, -1);
    for (long i = 0; i < 3000; i += 2) written[i * 4096] = 1;
    char sum = 0;
    for (long i = 0; i < 500; i += 5) sum += looked[i * 4096];
    int zero = open("/dev/zero", O_RDONLY);
    if (read(zero, (void *)filled, 700 * 4096) != 700 * 4096) return 1;
    huge = (volatile char *)(((uintptr_t)huge + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
    madvise((void *)huge, 2 << 20, MADV_HUGEPAGE);
    huge[5 * 4096] = 1;
    int words_file = open(words[1], O_RDONLY);
    volatile char *file = map(64, words_file);
    sum += file[17 * 4096];
    say("written", written, 3000); say("looked", looked, 500); say("filled", filled, 700);
    say("huge", huge, 512); say("file", file, 64);
    return sum == 99;
}"#;

fn pages_are_those_that_the_kernel_has_but_for_known_reasons() {
    let lab = Lab::new();
    let program = compiled(&lab, "areas", AREAS);
    fs::write(lab.path("file"), vec![1u8; 64 * 4096]).unwrap();
    let areas = |output: &Output| -> Vec<(String, u64, u64, u64)> {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let start = u64::from_str_radix(words[1], 16).unwrap();
            (words[0].to_owned(), start, words[2].parse().unwrap(), words[3].parse().unwrap())
        };
        text.lines().map(line).collect()
    };
    let alone = Command::new(&program).arg(lab.path("file")).output().unwrap();
    let kernel = areas(&alone);
    let output =
        trace(&lab, &format!("-o areas.trace --only data -- {program} {}", lab.path("file").display()));
    assert!(output.status.success(), "{output:?}");
    lab.ok("convert areas.trace --to lackey -o areas.lackey");
    let text = fs::read_to_string(lab.path("areas.lackey")).unwrap();
    let address = |line: &str| u64::from_str_radix(line[3..].split(',').next().unwrap(), 16).ok();
    let pages: std::collections::HashSet<u64> = text.lines().filter_map(address).map(|a| a / 4096).collect();
    let recorded = |of: &(String, u64, u64, u64)| {
        (of.1 / 4096..of.1 / 4096 + of.2).filter(|page| pages.contains(page)).count() as u64
    };
    let traced: Vec<u64> = areas(&output).iter().map(recorded).collect();
    // The program's own references, page by page, are the kernel's.
    assert_eq!((kernel[0].3, traced[0]), (1500, 1500), "{kernel:?}");
    assert_eq!((kernel[1].3, traced[1]), (100, 100), "{kernel:?}");
    // What read(2) fills and nobody looks at is the kernel's alone.
    assert_eq!((kernel[2].3, traced[2]), (700, 0), "{kernel:?}");
    // One page was referenced; a huge page, and what a fault maps around it, are more to the kernel.
    assert!(traced[3] == 1 && [1, 512].contains(&kernel[3].3), "{kernel:?}");
    assert!(traced[4] == 1 && (1..=64).contains(&kernel[4].3), "{kernel:?}");
}

/// Says its arguments and its environment, and which descriptors it has.
const SHOWS: &str = r#"
#include <stdio.h>
#include <fcntl.h>
extern char **environ;
int main(int count, char **words) {
    for (int i = 0; i < count; i++) printf("[%s] ", words[i]);
    for (int i = 0; environ[i]; i++) printf("{%s} ", environ[i]);
    for (int i = 0; i < 20; i++) if (fcntl(i, F_GETFD) >= 0) printf("%d ", i);
    puts("");
    return 0;
}"#;

/// Programs beside each other, in the place of the one before, by a script, with arguments and
/// environments of their own, and some that there are none of.
const EXECUTES: &str = r#"
env -i 'B=2,3' ./shows one '' 'two words'
env -i ./script a b
./missing; echo missing $?
./text; echo text $?
./passes | cat
(exit 4); echo status $?
sh -c 'kill -9 $$' ; echo killed $?
ls missing || exec env -i LAST=1 ./shows last
"#;

fn programs_that_it_executes_are_recorded() {
    let lab = Lab::new();
    compiled(&lab, "shows", SHOWS);
    compiled(&lab, "passes", PASSES);
    fs::write(lab.path("text"), "no program").unwrap();
    fs::write(lab.path("script"), "#!./shows  an argument \nnothing\n").unwrap();
    for (file, mode) in [("text", 0o644), ("script", 0o755)] {
        fs::set_permissions(lab.path(file), fs::Permissions::from_mode(mode)).unwrap();
    }
    let folder = lab.path("text").parent().unwrap().to_owned();
    let alone =
        Command::new("sh").args(["-c", EXECUTES]).current_dir(&folder).stdin(Stdio::null()).output().unwrap();
    let output = lab
        .command("trace --force --only data -o all.trace --")
        .args(["sh", "-c", EXECUTES])
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    // What it does is what it does without.
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&alone.stdout),
        "{}",
        said(&output)
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(!said(&output).contains("not in the trace"), "{output:?}");
    let ending = ending(&lab, "all.trace");
    let streams = ending["streams"].as_array().unwrap();
    let named = |name: &str| -> Vec<&serde_json::Value> {
        let is = |s: &&serde_json::Value| {
            Path::new(s["program"][0].as_str().unwrap()).file_name().unwrap() == name
        };
        streams.iter().filter(is).collect()
    };
    assert_eq!((named("shows").len(), named("cat").len(), named("ls").len()), (3, 1, 1), "{ending}");
    assert_eq!(named("shows")[0]["program"], serde_json::json!(["./shows", "one", "", "two words"]));
    assert_eq!(
        named("shows")[1]["program"],
        serde_json::json!(["./shows", "an argument", "./script", "a", "b"])
    );
    // The last takes the place of the first: the same process, other memory.
    assert_eq!(named("shows")[2]["process"], streams[0]["process"], "{ending}");
    // Each has its own references: 300,000 loads and 100,000 stores of this one.
    let passes = named("passes")[0];
    assert!((300_000..400_000).contains(&passes["loads"].as_u64().unwrap()), "{passes}");
    assert!((100_000..150_000).contains(&passes["stores"].as_u64().unwrap()), "{passes}");
    let sum = |key: &str| streams.iter().map(|stream| stream[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("loads"), ending["loads"].as_u64().unwrap());
    assert_eq!(sum("stores"), ending["stores"].as_u64().unwrap());
    assert_eq!(ending["processes"].as_u64().unwrap(), streams.len() as u64);
    // The page names them.
    lab.shows("report all.trace -o all.html", &["all.html"]);
    assert!(fs::read_to_string(lab.path("all.html")).unwrap().contains("passes (1 process)"));
    // What the kernel would give other rights is left to it, and said.
    if Command::new("id").arg("-u").output().unwrap().stdout == b"0\n" {
        let other = lab.path("other");
        fs::copy("/bin/true", &other).unwrap();
        std::os::unix::fs::chown(&other, Some(65534), Some(65534)).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o4755)).unwrap();
        let mut command = lab.command("trace --force -o sh.trace --");
        let output = command.args(["sh", "-c", "./other; exit 3"]).current_dir(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert!(said(&output).contains("not in the trace: one program"), "{output:?}");
    }
}

/// A shell, and two programs that it executes one after the other.
fn one_process_is_read_by_itself_everywhere() {
    let lab = Lab::new();
    let program = compiled(&lab, "passes", PASSES);
    let mut command = lab.command("trace --force --only data -o all.trace --");
    let output = command.args(["sh", "-c", &format!("{program}; cat /dev/null")]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown: serde_json::Value = serde_json::from_str(&lab.ok("show all.trace --json")).unwrap();
    let streams = shown["ending"]["streams"].as_array().unwrap();
    let named = |name: &str| {
        let is =
            |s: &serde_json::Value| s["program"][0].as_str().is_some_and(|program| program.ends_with(name));
        streams.iter().position(is).unwrap_or_else(|| panic!("no {name} in {shown}"))
    };
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let pages: u64 = streams.iter().map(|stream| number(&stream["pages"])).sum();
    assert_eq!(pages, number(&shown["pages"]));
    let passes = named("passes");
    assert!((1000..1200).contains(&number(&streams[passes]["pages"])), "{shown}");
    // However soon a process ends, it is looked at before: each has what it mapped first and last.
    let mapped = shown["ending"]["mappings"].as_array().unwrap();
    for (process, stream) in streams.iter().enumerate().filter(|(_, stream)| number(&stream["pages"]) > 50) {
        let of = |name: &str| mapped.iter().any(|m| m["process"] == process && m["name"] == name);
        assert!(["stack", "heap", "libc.so.6"].into_iter().all(of), "{stream}: {mapped:?}");
    }
    let malloced = mapped.iter().filter(|m| m["process"] == passes && m["name"] == "anonymous");
    let malloced: u64 = malloced.map(|m| number(&m["end"]) - number(&m["start"])).sum();
    assert!(malloced >= 1001 * 4096, "{mapped:?}");
    let text = lab.ok("show all.trace");
    // A pipe is as wide as a terminal of 100 columns.
    assert!(text.contains("--process N") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // Every command has the same references of it, and of all of them together those of the whole.
    let misses = |arguments: &str| {
        let row = lab.ok(&format!("replay all.trace {arguments} --memory 1M --on model:lru --json"));
        let row: serde_json::Value = serde_json::from_str(row.trim()).unwrap();
        (number(&row["references"]), number(&row["misses"]), row["stream"].clone())
    };
    let of = |stream: &serde_json::Value| number(&stream["loads"]) + number(&stream["stores"]);
    let (mut all, option) = (0, format!("--process {}", passes + 1));
    for (n, stream) in streams.iter().enumerate() {
        let (references, ..) = misses(&format!("--process {}", n + 1));
        assert_eq!(references, of(stream), "{stream}");
        all += references;
    }
    assert_eq!(all, misses("").0);
    let alone = misses(&option);
    assert!((398_000..403_000).contains(&alone.1), "400 passes over 1,000 pages in 256 frames: {alone:?}");
    assert!(misses("").1 > alone.1);
    lab.ok(&format!("convert all.trace {option} --to pagelab -o alone.trace"));
    let row = lab.ok("replay alone.trace --memory 1M --on model:lru --json");
    let row: serde_json::Value = serde_json::from_str(row.trim()).unwrap();
    assert_eq!((number(&row["references"]), number(&row["misses"])), (alone.0, alone.1));
    lab.ok(&format!("mrc all.trace {option}"));
    lab.shows("show @1", &[&option]);
    lab.ok(&format!("wss all.trace {option}"));
    lab.ok(&format!("reduce all.trace {option} --memory 600p -o small.trace"));
    lab.ok(&format!("report all.trace {option} -o passes.html"));
    let page = fs::read_to_string(lab.path("passes.html")).unwrap();
    assert!(
        page.contains("alone") && page.contains("passes") && page.contains("heap"),
        "its mappings have names"
    );
    // What is not there is said.
    lab.refuses(
        "mrc all.trace --process 99",
        3,
        &[&format!("{} processes, but not process 99", streams.len())],
    );
    fs::write(lab.path("pages.txt"), "1\n2\n1\n").unwrap();
    lab.refuses("mrc pages.txt --process 1", 3, &["does not tell processes apart"]);
    lab.refuses("show pages.txt", 3, &["is not a recording"]);
    fs::write(lab.path("torn.trace"), &fs::read(lab.path("all.trace")).unwrap()[..5000]).unwrap();
    lab.refuses("show torn.trace", 3, &["it is cut"]);
}

fn a_killed_program_and_an_interrupted_recording_keep_what_was_recorded() {
    let lab = Lab::new();
    let killed =
        compiled(&lab, "killed", &PASSES.replace("return sum == 1;", "*(volatile int *)0 = 0; return 0;"));
    let output = trace(&lab, &format!("-o killed.trace --only data -- {killed}"));
    let words = said(&output);
    assert!(!output.status.success() && words.contains("killed by signal 11"), "{words}");
    assert!(number(&words, " loads") > 300_000, "{words}");
    lab.ok("mrc killed.trace");
    // A program that goes on for ever, and the user's Ctrl-C.
    let forever = compiled(&lab, "forever", &PASSES.replace("pass < 300", "pass < 300 || sum + 1"));
    let mut child = lab.begin(&format!("trace -o forever.trace -- {forever}"), Stdio::null());
    recorded(&lab, "forever.trace");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    lab.ok("mrc forever.trace --sample 0.1");
    // Killed itself, it takes the program with it, and says of the rest of its trace what it is.
    let mut child = lab.begin(&format!("trace -o half.trace -- {forever}"), Stdio::null());
    recorded(&lab, "half.trace");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let runs = || Command::new("pgrep").args(["-f", &forever]).output().unwrap().status.success();
    eventually("the program has ended too", || !runs());
    lab.refuses("mrc half.trace --sample 0.01", 3, &["it is cut"]);
}

fn the_programs_descriptors_and_status_are_its_own() {
    let lab = Lab::new();
    let output = lab
        .command("trace --force -o ls.trace --")
        .args(["ls", "/proc/self/fd"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let alone = Command::new("ls").arg("/proc/self/fd").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.stdout, alone.stdout, "{output:?}");
    fs::write(lab.path("script"), "#!/bin/sh\nexit 7\n").unwrap();
    let script = trace(&lab, "-o script.trace -- ./script");
    assert_eq!(script.status.code(), Some(7), "{script:?}");
}

fn untraceable_programs_are_refused() {
    let lab = Lab::new();
    let fails = |arguments: &str| joined(&lab.fails(&format!("trace {arguments}"), 3));
    assert!(fails("-- there-is-no-such-program").contains("there is no program 'there-is-no-such-program'"));
    fs::write(lab.path("text"), "no program").unwrap();
    assert!(fails("-- ./text").contains("is not a 64-bit program"));
    // Of another architecture: MIPS of 64 bits, x86 of 32.
    let elf = |class: u8, machine: u8| {
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        (head[18], head[6]) = (machine, 1);
        head
    };
    fs::write(lab.path("mips"), elf(2, 8)).unwrap();
    assert!(fails("-- ./mips").contains("ELF number 8) cannot be traced"));
    fs::write(lab.path("x86"), elf(1, 3)).unwrap();
    assert!(fails("-- ./x86").contains("is not a 64-bit program"));
    fs::write(lab.path("kept.trace"), "kept").unwrap();
    lab.refuses("trace -o kept.trace -- true", 2, &["--force"]);
    assert_eq!(fs::read_to_string(lab.path("kept.trace")).unwrap(), "kept");
    // A file that is no tracer.
    let output =
        lab.command("trace -o none.trace -- true").env("PAGELAB_TRACER", lab.path("text")).output().unwrap();
    assert!(said(&output).contains("it is not the tracer of pagelab"), "{output:?}");
    // A QEMU without plugins is passed over where there is another, and said where there is none.
    let folder = lab.path("bin");
    fs::create_dir(&folder).unwrap();
    let qemu = folder.join("qemu-x86_64");
    fs::write(&qemu, "#!/bin/sh\necho usage\n").unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let with = |path: &str| {
        lab.command("trace -o none.trace --force -- /bin/true").env("PATH", path).output().unwrap()
    };
    assert!(with(&path).status.success());
    // One that says it has them and does not load ours.
    fs::write(&qemu, "#!/bin/sh\necho ' -plugin'\n").unwrap();
    let output = with(&path);
    assert!(said(&output).contains("did not load the tracer"), "{output:?}");
    fs::write(&qemu, "#!/bin/sh\necho usage\n").unwrap();
    let (none, empty) = (with(folder.to_str().unwrap()), with(""));
    // But for one that the script has built in this tree.
    if Path::new(env!("CARGO_BIN_EXE_pagelab")).with_file_name("../qemu-user/qemu-x86_64").exists() {
        assert!(none.status.success() && empty.status.success(), "{none:?}, {empty:?}");
    } else {
        assert!(
            said(&none).contains("has no plugins") && said(&none).contains("scripts/qemu-user"),
            "{none:?}"
        );
        assert!(said(&empty).contains("apt-get install qemu-user"), "{empty:?}");
    }
}

fn a_torn_or_damaged_trace_is_refused() {
    let lab = Lab::new();
    assert!(trace(&lab, "-o good.trace -- true").status.success());
    let good = fs::read(lab.path("good.trace")).unwrap();
    lab.ok("mrc good.trace");
    fs::write(lab.path("torn.trace"), &good[..good.len() - 30]).unwrap();
    lab.refuses("mrc torn.trace", 3, &["it is cut"]);
    fs::write(lab.path("cut.trace"), &good[..good.len() / 2]).unwrap();
    lab.refuses("mrc cut.trace", 3, &["it is cut"]);
    let mut damaged = good.clone();
    let middle = good.len() / 2;
    damaged[middle] ^= 1;
    fs::write(lab.path("damaged.trace"), damaged).unwrap();
    lab.refuses("mrc damaged.trace", 3, &["checksum"]);
    lab.refuses("mrc good.trace --page-size 1024", 3, &["units of 4096 bytes"]);
}

fn models_replay_the_recording_of_a_program() {
    let lab = Lab::new();
    let program = compiled(&lab, "passes", PASSES);
    let line =
        |more: &str| format!("run command --memory 500p --on model:lru --on model:opt {more} -- {program}");
    let result: serde_json::Value = serde_json::from_str(&lab.ok(&line("--json"))).unwrap();
    let faults = |run: usize, name: &str| {
        result["result"]["runs"][run]["repetitions"][0]["metrics"][name]["value"].as_f64().unwrap()
    };
    // The same recording by the other way.
    let rows = lab.ok("replay passes.trace --memory 500p --on model:lru --on model:opt --json");
    for (run, row) in rows.lines().enumerate() {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        let misses = row["misses"].as_f64().unwrap();
        assert_eq!(faults(run, "faults.minor") + faults(run, "faults.major"), misses, "{row}");
    }
    // 400 passes over 1,000 pages in 500 frames: LRU misses always, but for the first time of each page.
    assert!((398_000.0..402_000.0).contains(&faults(0, "faults.major")), "{result}");
    assert!((190_000.0..205_000.0).contains(&faults(1, "faults.major")), "{result}");
    // It is recorded once.
    let again = lab.command(&line("")).output().unwrap();
    assert!(said(&again).contains("simulators use the existing recording passes.trace"), "{again:?}");
    let text = joined(&String::from_utf8_lossy(&again.stdout));
    assert!(
        text.contains("Major faults of ") && text.contains("what the kernel copies for the program"),
        "{text}"
    );
    // Not when the program, or what it is called with, is another.
    let other = lab.command(&(line("") + " x")).output().unwrap();
    assert!(!other.status.success() && said(&other).contains("is a recording of"), "{other:?}");
    compiled(&lab, "passes", PASSES);
    let newer = lab.command(&line("")).output().unwrap();
    assert!(!newer.status.success() && said(&newer).contains("was changed after"), "{newer:?}");
    let unplayed = lab.command(&format!("run command --trace passes.trace -- {program}")).output().unwrap();
    assert_eq!(unplayed.status.code(), Some(2));
}

fn a_recording_is_exported_with_its_kinds() {
    let lab = Lab::new();
    let output = trace(&lab, "-o true.trace -- /bin/true");
    let said = said(&output);
    lab.ok("convert true.trace --to lackey -o true.lackey");
    let text = fs::read_to_string(lab.path("true.lackey")).unwrap();
    let lines = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).count() as u64;
    assert_eq!(lines(" L "), number(&said, " loads"));
    assert_eq!(lines(" S "), number(&said, " stores"));
    assert_eq!(lines("I  "), number(&said, " fetches"));
    let misses = |trace: &str| -> serde_json::Value {
        serde_json::from_str(&lab.ok(&format!("mrc {trace} --memory 30p --json"))).unwrap()
    };
    let (whole, exported) = (misses("true.trace"), misses("true.lackey"));
    assert_eq!((&whole["misses"], &whole["references"]), (&exported["misses"], &exported["references"]));
    lab.ok("convert true.trace --to oracle-general -o true.oracle");
    assert_eq!(misses("true.oracle")["misses"], whole["misses"]);
}

/// A little of the heap is used as well.
const SMALL: &str = "int main(void) { volatile char *small = malloc(100); small[0] = 1;";

fn a_trace_is_drawn_with_its_mappings() {
    let lab = Lab::new();
    let program = compiled(
        &lab,
        "passes",
        &PASSES.replace("pass < 300", "pass < 3000").replace("int main(void) {", SMALL),
    );
    trace(&lab, &format!("-o passes.trace -- {program}"));
    lab.shows("report passes.trace -o passes.html", &["The working set", "of 4."]);
    let page = fs::read_to_string(lab.path("passes.html")).unwrap();
    for word in [
        "References in space and time",
        "libc.so.6",
        "anonymous",
        "heap",
        "stack",
        "Reuse distances",
        "s3-fifo",
    ] {
        assert!(page.contains(word), "{word}");
    }
    // A pattern's numbers have no addresses and no names.
    lab.ok("convert zipf:1 --pages 500 --references 20000 --to text -o zipf.txt");
    lab.shows("report zipf.txt -o zipf.html", &["The working set"]);
    fs::write(lab.path("torn.trace"), &fs::read(lab.path("passes.trace")).unwrap()[..5000]).unwrap();
    // The notebook has the recording.
    lab.shows("show @1", &["references to", "recorded in"]);
    let torn = lab.command("report torn.trace").output().unwrap();
    assert!(!torn.status.success() && said(&torn).contains("it is cut"), "{torn:?}");
}
