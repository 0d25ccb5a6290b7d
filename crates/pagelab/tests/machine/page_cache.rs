//! The views of the page cache against files with known pages.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pagelab_kernel::bpf::page_requests::PageRequests;
use pagelab_kernel::bpf::page_requests::stream::{Kind, PageStream, file_number};
use pagelab_kernel::page_frames::FrameReader;
use pagelab_kernel::region::{forget, page_size};
use pagelab_kernel::{hierarchy, page_cache};
use pagelab_reference::Pattern;
use pagelab_testing::{KERNELS, LIMITS, Need, ROOT, Test, kernels, tests};
use serde_json::Value;

use crate::common::Lab;
use crate::in_guest;

pub fn tests() -> Vec<Test> {
    tests! {
        the_largest_files_and_directories_are_listed;
        what_is_no_file_is_named;
        a_cold_read_is_no_hit_and_a_warm_one_is: REQUESTS;
        the_table_of_requests_suits_a_terminal: REQUESTS;
        the_stream_has_the_requests_of_known_reads: REQUESTS;
        requests_are_counted_on_other_kernels: KERNELS;
        a_shadow_has_the_misses_of_the_program_and_records_them: REQUESTS;
        a_shadow_of_the_kernel_has_its_misses: SHADOWED;
        a_shadow_ends_with_ctrl_c_and_prints: REQUESTS;
        a_shadow_refuses_what_a_live_stream_cannot_tell: REQUESTS;
    }
}

/// Requests of the page cache can be counted.
const REQUESTS: Need = Need {
    name: "bpf",
    on: &[&ROOT],
    met: || {
        let by = pagelab_counters::views::cachestat::By::Machine;
        PageRequests::start(by).map(drop).map_err(|error| error.to_string())
    },
};

/// The same, and a cgroup with a memory limit.
const SHADOWED: Need = Need { name: REQUESTS.name, on: &[&LIMITS], met: REQUESTS.met };

const PAGES: usize = 512;

/// A file of so many pages that the cache has, below the lab's folder `files`.
fn cached(lab: &Lab, name: &str, pages: usize) -> PathBuf {
    let path = lab.path("files").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = File::create(&path).unwrap();
    file.write_all(&vec![7; pages * page_size()]).unwrap();
    file.sync_all().unwrap();
    path
}

fn the_largest_files_and_directories_are_listed() {
    let lab = Lab::new();
    let page = page_size() as u64;
    let folder = std::fs::canonicalize(lab.path(".")).unwrap().join("files");
    for (name, pages) in [("a/small", 3), ("a/b/large", 30), ("a/b/other", 10), ("c/empty", 0)] {
        cached(&lab, name, pages);
    }
    let found = &lab.json("memstat --files files --json")["page_cache"];
    let list = |key: &str| -> Vec<(PathBuf, u64)> {
        let row = |row: &Value| {
            (PathBuf::from(row["name"].as_str().unwrap()), row["cached"].as_u64().unwrap() / page)
        };
        found[key].as_array().unwrap().iter().map(row).collect()
    };
    let of = |name: &str, pages| (folder.join(name), pages);
    assert_eq!(list("files"), [of("a/b/large", 30), of("a/b/other", 10), of("a/small", 3)]);
    // Below the lab everything is below `a`.
    assert_eq!(list("directories"), [of("a", 43), of("a/b", 40)]);
    assert_eq!((found["looked_at"].as_u64(), found["with_pages"].as_u64()), (Some(4), Some(3)));
    assert!(found["machine"].as_f64().unwrap() >= (43 * page) as f64);
    let row = &found["files"][0];
    assert!(row["dirty"].as_u64().is_none_or(|dirty| dirty == 0), "{row}");
    assert!(row["mapped"].as_u64().is_none_or(|mapped| mapped == 0), "{row}");
    let quick = &lab.json("memstat --files files --quick --json")["page_cache"]["files"][0];
    assert_eq!((&quick["mapped"], &quick["active"]), (&Value::Null, &Value::Null), "not looked at");
    lab.shows("memstat --files files -n 1", &["large", "Looked at 4 files, 3 of them cached"]);
    lab.refuses("memstat --files none", 2, &["none: No such file"]);
}

fn what_is_no_file_is_named() {
    let lab = Lab::new();
    let path = cached(&lab, "a/one", 1);
    symlink(&path, lab.path("files/link")).unwrap();
    std::fs::hard_link(&path, lab.path("files/again")).unwrap();
    lab.shows(
        "memstat --files files",
        &["symbolic links: 1", "files/link", "hard links to counted files: 1"],
    );
    // Of other file systems that have none, the mount points.
    lab.shows("memstat --files /proc", &["file systems without page cache: 1 (/proc)"]);
}

/// Reads all of it.
fn read(path: &Path) {
    File::open(path).unwrap().read_to_end(&mut Vec::new()).unwrap();
}

fn a_cold_read_is_no_hit_and_a_warm_one_is() {
    let lab = Lab::new();
    let path = cached(&lab, "file", PAGES);
    forget(&File::open(&path).unwrap()).unwrap();
    let inode = path.metadata().unwrap().ino();
    let mut child = lab.begin("cachestat 0.2 --by file -n 10000 --json", Stdio::piped());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    // With the first interval it has begun.
    next();
    let mut counted = || {
        read(&path);
        let mut sums = [0; 3];
        while sums.iter().sum::<u64>() < PAGES as u64 {
            let interval = next();
            assert_eq!(interval["lost"], 0);
            let rows = interval["requests"].as_array().unwrap();
            for row in rows.iter().filter(|row| row["number"] == inode) {
                assert_eq!(Path::new(row["name"].as_str().unwrap()).file_name(), path.file_name());
                for (sum, key) in sums.iter_mut().zip(["hits", "misses", "ahead"]) {
                    *sum += row[key].as_u64().unwrap();
                }
            }
        }
        sums
    };
    let [hits, misses, ahead] = counted();
    println!("\nseen: misses of a cold read: {} of {PAGES}", misses + ahead);
    assert_eq!((hits, misses + ahead), (0, PAGES as u64));
    assert!(misses > 0);
    // A machine that is short of memory may evict some of them.
    let file = File::open(&path).unwrap();
    let kept = page_cache::of(&file, file.metadata().unwrap().len()).unwrap().pages;
    let [hits, misses, ahead] = counted();
    println!("seen: hits of a read of cached pages: {hits} of {kept}");
    assert_eq!((hits, misses + ahead), (kept, PAGES as u64 - kept));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn the_table_of_requests_suits_a_terminal() {
    let lab = Lab::new();
    for by in ["", "--by process", "--by cgroup", "--by file"] {
        let output = lab.command(&format!("cachestat 0.2 2 {by}")).env("COLUMNS", "80").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("hit%"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

/// There the programs are attached to functions.
fn requests_are_counted_on_other_kernels() {
    let tests = [
        "page_cache::a_cold_read_is_no_hit_and_a_warm_one_is",
        "page_cache::the_stream_has_the_requests_of_known_reads",
        "page_cache::a_shadow_has_the_misses_of_the_program_and_records_them",
        "page_cache::a_shadow_of_the_kernel_has_its_misses",
    ];
    let inside = |image: &Path| {
        let said = in_guest::run_tests(image, 2, &tests);
        let passed = said.matches("1 passed").count();
        println!("\nin a guest of {}:", image.file_name().unwrap().display());
        said.lines().filter(|line| line.starts_with("seen: ")).for_each(|line| println!("{line}"));
        assert!(passed == tests.len() && !said.contains("1 ignored"), "{}: {said}", image.display());
    };
    std::thread::scope(|scope| {
        for image in kernels() {
            scope.spawn(move || inside(&image));
        }
    });
}

fn the_stream_has_the_requests_of_known_reads() {
    let lab = Lab::new();
    let path = cached(&lab, "file", PAGES);
    let file = File::open(&path).unwrap();
    let number = file_number(&file.metadata().unwrap());
    let (pages, all) = (PAGES as u64, (0..PAGES as u64).collect::<Vec<_>>());
    let mut stream = PageStream::start(None).unwrap();
    // The pages of the events of the file: requested, and read from the disk.
    let drain = |stream: &mut PageStream| {
        let mut found = [Vec::new(), Vec::new()];
        stream.drain(|event| match event.kind {
            _ if (event.device, event.inode) != number => {}
            Kind::Requested => found[0].extend(event.pages),
            Kind::Read => found[1].extend(event.pages),
            Kind::Written => panic!("nobody writes: {event:?}"),
        });
        found[1].sort_unstable();
        found
    };
    let read_page = |page: u64| {
        file.read_exact_at(&mut vec![0; page_size()], page * page_size() as u64).unwrap();
    };
    let random: Vec<u64> = (0..pages / 2).map(|n| n * 37 % pages).collect();
    forget(&file).unwrap();
    drain(&mut stream);
    random.iter().for_each(|&page| read_page(page));
    let [requested, mut read] = drain(&mut stream);
    assert_eq!(requested, random, "single pages, in order");
    let count = read.len();
    read.dedup();
    assert_eq!(read.len(), count, "each page enters the cache once");
    assert!(random.iter().all(|page| read.binary_search(page).is_ok()), "{read:?}");
    forget(&file).unwrap();
    drain(&mut stream);
    file.read_exact_at(&mut vec![0; PAGES * page_size()], 0).unwrap();
    assert_eq!(drain(&mut stream), [all.clone(), all.clone()], "one cold read of all pages");
    file.read_exact_at(&mut vec![0; PAGES * page_size()], 0).unwrap();
    assert_eq!(drain(&mut stream)[0], all, "the same when they are cached");
    // Maps the file, and faults on some of its pages.
    FrameReader::open().unwrap().look(&file, pages * page_size() as u64).unwrap();
    let [mut mapped, _] = drain(&mut stream);
    mapped.sort_unstable();
    assert_eq!(mapped, all, "the kernel maps each page once");
    assert_eq!((stream.dropped(), stream.counts().1), (0, 0));
}

fn a_shadow_has_the_misses_of_the_program_and_records_them() {
    let lab = Lab::new();
    let path = cached(&lab, "file", PAGES);
    forget(&File::open(&path).unwrap()).unwrap();
    let file = path.display();
    let shadow = "shadow --memory 1G --on lru --on linux-lru --record reads.trace --json";
    // grep reads the file twice, and finds nothing.
    let found = lab.json(&format!("{shadow} -- grep -q nothing {file} {file}"));
    let of = |key: &str| found[key].as_u64().unwrap();
    assert!(of("requests") >= 2 * PAGES as u64, "{found}");
    assert_eq!((of("lost"), of("left_out")), (0, 0));
    let kernel = |key: &str| found["kernel"][key].as_u64().unwrap();
    assert!(kernel("misses") + kernel("ahead") >= PAGES as u64, "{found}");
    // The kernel may evict a few pages between the two reads.
    assert!(kernel("hits") >= PAGES as u64 / 2, "{found}");
    // A memory that holds everything has the compulsory misses alone.
    for model in found["models"].as_array().unwrap() {
        assert_eq!(model["misses"], found["compulsory"], "{found}");
    }
    assert!(found["compulsory"].as_f64().unwrap() >= PAGES as f64, "{found}");
    let replayed = lab.json("replay reads.trace --on lru --memory 1G --json");
    assert!(replayed["references"].as_u64().unwrap() >= of("requests"), "{replayed}");
    lab.refuses("shadow --memory 1G --record reads.trace --for 1", 2, &["reads.trace exists", "--force"]);
}

/// The variable that makes this program one of [`LOADS`]: the load's number and its file.
const LOAD: &str = "PAGELAB_TEST_LOAD";
/// The memory limit of the loads, in MiB, and the sizes that are simulated.
const LIMIT: u64 = 64;
const SIZES: RangeInclusive<u64> = LIMIT - 10..=LIMIT;
/// Pages of 4 KiB per MiB.
const MIB: u32 = 256;

/// Loads of file reads: the file's size in MiB, the passes in order, the random reads of a page.
const LOADS: [(u32, u32, u32); 3] = [(72, 3, 0), (128, 2, 0), (128, 0, 60_000)];

/// Performs the load that [`LOAD`] names.
pub fn reader() -> Option<ExitCode> {
    let load = std::env::var(LOAD).ok()?;
    let (number, path) = load.split_once(' ').unwrap();
    let (size, passes, random) = LOADS[number.parse::<usize>().unwrap()];
    let (file, mut buffer) = (File::open(path).unwrap(), vec![0; 1 << 20]);
    for offset in (0..passes).flat_map(|_| 0..u64::from(size)) {
        file.read_exact_at(&mut buffer, offset << 20).unwrap();
    }
    if random > 0 {
        let stream = Pattern::Zipf(0.9).stream((size * MIB).into(), random.into(), 1).unwrap();
        for &page in stream.references() {
            file.read_exact_at(&mut buffer[..4096], u64::from(page) * 4096).unwrap();
        }
    }
    Some(ExitCode::SUCCESS)
}

/// A memory cgroup with a limit of [`LIMIT`], removed when dropped.
struct Limited(PathBuf);

impl Limited {
    fn new(name: &str) -> Self {
        let mount = hierarchy::mount().unwrap();
        // Version 1 has no such file.
        let _ = std::fs::write(mount.join("cgroup.subtree_control"), "+memory");
        let folder = mount.join(name);
        std::fs::create_dir(&folder).unwrap();
        let limits = ["memory.max", "memory.limit_in_bytes"].map(|file| folder.join(file));
        let limit = limits.iter().find(|file| file.exists()).unwrap();
        std::fs::write(limit, (LIMIT << 20).to_string()).unwrap();
        Self(folder)
    }

    /// Bytes of file pages.
    fn cached(&self) -> u64 {
        let text = std::fs::read_to_string(self.0.join("memory.stat")).unwrap_or_default();
        let of = |line: &str| line.strip_prefix("file ").or(line.strip_prefix("cache "))?.parse().ok();
        text.lines().find_map(of).unwrap_or(0)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).unwrap();
    }
}

/// The model of the kernel that runs: generations or two lists.
fn model_of_the_kernel() -> &'static str {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").unwrap_or_default();
    if matches!(enabled.trim(), "" | "0x0000") { "linux-lru" } else { "linux-mglru" }
}

fn a_shadow_of_the_kernel_has_its_misses() {
    let lab = Lab::new();
    let model = model_of_the_kernel();
    let size = LOADS.iter().map(|(size, ..)| size * MIB).max().unwrap();
    let path = std::fs::canonicalize(cached(&lab, "file", size as usize)).unwrap();
    for (number, (size, passes, reads)) in LOADS.into_iter().enumerate() {
        forget(&File::open(&path).unwrap()).unwrap();
        let name = format!("pagelab-test-{}-{number}", std::process::id());
        let group = Limited::new(&name);
        let sizes: Vec<_> = SIZES.map(|size| format!("{size}M")).collect();
        let words = format!("shadow --memory {} --on {model} --cgroup {name} --json --", sizes.join(","));
        let mut command = lab.command(&words);
        command.arg("sh").arg("-c").arg("echo $$ > \"$1\"; exec \"$2\"").arg("sh");
        command.arg(group.0.join("cgroup.procs")).arg(std::env::current_exe().unwrap());
        command.env(LOAD, format!("{number} {}", path.display()));
        let ended = AtomicBool::new(false);
        let (output, held) = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut held = Vec::new();
                while !ended.load(Ordering::Relaxed) {
                    held.push(group.cached());
                    std::thread::sleep(Duration::from_millis(100));
                }
                held
            });
            let output = command.output().unwrap();
            ended.store(true, Ordering::Relaxed);
            (output, watcher.join().unwrap())
        });
        assert!(output.status.success(), "{output:?}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((found["lost"].as_u64(), found["left_out"].as_u64()), (Some(0), Some(0)));
        // The rest of the limit is the process's and the kernel's. At first the memory fills.
        let full = &held[held.len() / 2..];
        let mean = full.iter().sum::<u64>() / full.len() as u64;
        let held = ((mean + (1 << 19)) >> 20).clamp(*SIZES.start(), *SIZES.end()) << 20;
        let simulated = found["models"].as_array().unwrap();
        let simulated = simulated.iter().find(|model| model["memory_bytes"] == held).unwrap();
        let ratio = simulated["of_kernel_misses"].as_f64().unwrap();
        let load = if reads > 0 { format!("{reads} random reads") } else { format!("read {passes} times") };
        println!("\nseen: misses of {model} over the kernel's, {size} MiB {load}: {ratio:.3} of 1.000");
        assert!((0.95..=1.05).contains(&ratio), "load {number}, {} MiB: {found}", held >> 20);
    }
}

fn a_shadow_ends_with_ctrl_c_and_prints() {
    let lab = Lab::new();
    let mut child = lab.begin("shadow --memory 1M,2M --on s3-fifo", Stdio::piped());
    // It says when it has begun.
    let mut begun = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut begun).unwrap();
    assert!(begun.contains("observing"), "{begun}");
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(text.contains("the kernel had") && text.contains("2 MiB") && text.contains("s3-fifo"), "{text}");
}

fn a_shadow_refuses_what_a_live_stream_cannot_tell() {
    let lab = Lab::new();
    lab.refuses("shadow --memory 1G --on opt --for 1", 2, &["needs the future", "replay FILE --on opt"]);
    lab.refuses("shadow --memory 1M --sample 1/100 --for 1", 2, &["fewer than 100 simulated pages"]);
    lab.refuses("shadow --memory 1G --cgroup no-such-cgroup --for 1", 2, &["no cgroup 'no-such-cgroup'"]);
}
