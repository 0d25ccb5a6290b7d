//! The same trace, policy and size on libCacheSim and here, in turns, one thread each.
//!
//! ```text
//! cargo bench -p pagelab-model --bench against_libcachesim -- write PATTERN PAGES REFERENCES FILE
//! cargo bench -p pagelab-model --bench against_libcachesim -- misses CACHESIM
//! cargo bench -p pagelab-model --bench against_libcachesim -- misses-2025 CACHESIM
//! cargo bench -p pagelab-model --bench against_libcachesim -- CACHESIM TRACE ROUNDS FRAMES...
//! ```
//!
//! The first form writes a trace in the format of both (oracleGeneral). The second prints the misses that libCacheSim
//! counts on the generated patterns, which src/policy/patterns.csv holds; the third those of other policies that a version of May
//! 2025 counts. The fourth, for each policy and
//! size, runs in turns: libCacheSim's `cachesim` (a program the reader builds), the same work here from
//! the file on (reading, numbering the pages, replaying), and the replay alone from dense page numbers.
//! It prints medians of the rounds in nanoseconds a request with the least and the greatest, the
//! ratios of the medians, and whether the miss ratios agree to the digits that cachesim prints.
//!
//! libCacheSim's own time is what it reports as throughput, which leaves out starting the program;
//! ours is a clock around the work.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use pagelab_model::mrc::lru::LruCurve;
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::{Replayed, replay};
use pagelab_reference::trace::{Options, load};
use pagelab_reference::{Pattern, Stream};

/// Name here and there.
const POLICIES: [(&str, &str); 7] = [
    ("fifo", "fifo"),
    ("lru", "lru"),
    ("clock", "clock"),
    ("sieve", "sieve"),
    ("s3-fifo", "s3fifo"),
    ("2q", "2q"),
    ("arc", "arc"),
];

/// Name here and there of the policies whose misses src/policy/patterns_2025.csv holds.
const COUNTED_2025: [(&str, &str); 1] = [("gclock:max=3,start=0", "clock")];

/// Those whose misses src/policy/patterns.csv holds; the parameters are those of libCacheSim's definitions.
const COUNTED: [(&str, &str); 10] = [
    ("fifo", "fifo"),
    ("lru", "lru"),
    ("clock", "clock"),
    ("sieve", "sieve"),
    ("s3-fifo:fill=small", "s3fifo"),
    ("2q", "2q"),
    ("arc", "arc"),
    ("lfu", "lfu"),
    ("slru", "slru"),
    ("opt", "belady"),
];

/// Times of one kind of run, in nanoseconds a request.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn median(&mut self) -> f64 {
        self.0.sort_by(f64::total_cmp);
        let n = self.0.len();
        (self.0[n / 2] + self.0[(n - 1) / 2]) / 2.0
    }

    fn show(&mut self) -> String {
        let median = self.median();
        format!("{median:6.1} ({:.1} to {:.1})", self.0[0], self.0[self.0.len() - 1])
    }
}

fn stream_of(trace: &Path) -> Stream {
    load(trace, &Options::default(), |_| {}).unwrap_or_else(|e| panic!("{e}")).stream
}

fn replay_one(stream: &Stream, kind: &PolicyKind, frames: u32) -> Replayed {
    replay(stream, kind, frames)
}

/// Nanoseconds a request and the miss ratio as cachesim printed it.
fn cachesim(program: &str, trace: &Path, policy: &str, frames: u32) -> (f64, String) {
    let output = Command::new(program)
        .arg(trace)
        .args(["oracleGeneral", policy, &frames.to_string(), "--ignore-obj-size", "1", "--num-thread", "1"])
        .current_dir(std::env::temp_dir())
        .output()
        .unwrap_or_else(|e| panic!("cannot run {program}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = |mark: &str| {
        let at = text.rfind(mark).unwrap_or_else(|| panic!("{program} printed no '{mark}': {text}"));
        text[at + mark.len()..].split([' ', ',', '\n']).next().expect("a word").to_owned()
    };
    let mqps: f64 = after("throughput ").parse().expect("a throughput in million requests a second");
    (1e3 / mqps, after("miss ratio "))
}

fn compare(program: &str, trace: &Path, rounds: usize, sizes: &[u32]) {
    let stream = stream_of(trace);
    let n = stream.len() as f64;
    println!(
        "{}: {} requests, {} objects; {rounds} rounds in turns, one thread",
        trace.display(),
        n,
        stream.pages()
    );
    println!("nanoseconds a request: median (least to greatest)");
    println!(
        "policy   frames   libCacheSim              from the file            replay alone             ratios       miss ratios"
    );
    for (ours, theirs) in POLICIES {
        let kind: PolicyKind = ours.parse().expect("a policy");
        for &frames in sizes {
            let (mut there, mut file, mut alone) = (Times::default(), Times::default(), Times::default());
            let mut verdict = String::new();
            for _ in 0..rounds {
                let (time, their_ratio) = cachesim(program, trace, theirs, frames);
                there.0.push(time);
                let start = Instant::now();
                let from_file = replay_one(&stream_of(trace), &kind, frames);
                file.0.push(start.elapsed().as_secs_f64() * 1e9 / n);
                let start = Instant::now();
                let replayed = replay_one(&stream, &kind, frames);
                alone.0.push(start.elapsed().as_secs_f64() * 1e9 / n);
                assert_eq!(from_file, replayed);
                let our_ratio = format!("{:.4}", replayed.miss_ratio().expect("the trace is not empty"));
                let same = if our_ratio == their_ratio { "equal" } else { "DIFFERENT" };
                verdict = format!("{our_ratio} {their_ratio} {same}");
            }
            println!(
                "{ours:8} {frames:7}  {:24} {:24} {:24} {:5.1} {:5.1}  {verdict}",
                there.show(),
                file.show(),
                alone.show(),
                there.median() / file.median(),
                there.median() / alone.median(),
            );
        }
    }
    let (mut curve, mut one) = (Times::default(), Times::default());
    for _ in 0..rounds {
        let start = Instant::now();
        std::hint::black_box(LruCurve::of(&stream));
        curve.0.push(start.elapsed().as_secs_f64() * 1e9 / n);
        let start = Instant::now();
        replay_one(&stream, &PolicyKind::Lru, stream.pages() / 10);
        one.0.push(start.elapsed().as_secs_f64() * 1e9 / n);
    }
    println!(
        "every size of lru {}; one size (a tenth of the objects) {}; ratio {:.2}",
        curve.show(),
        one.show(),
        curve.median() / one.median()
    );
}

/// Writes a stream as oracleGeneral, requests counted from 1.
fn write(stream: &Stream, path: &Path) {
    let mut upcoming = vec![-1i64; stream.pages() as usize];
    let mut bytes = vec![0u8; stream.len() * 24];
    for (i, (&page, record)) in stream.references().iter().zip(bytes.chunks_exact_mut(24)).enumerate().rev() {
        let next = std::mem::replace(&mut upcoming[page as usize], i as i64 + 1);
        record[..4].copy_from_slice(&(i as u32 / 1000).to_le_bytes());
        record[4..12].copy_from_slice(&(u64::from(page) + 1).to_le_bytes());
        record[12..16].copy_from_slice(&4096u32.to_le_bytes());
        record[16..].copy_from_slice(&next.to_le_bytes());
    }
    std::fs::write(path, bytes).unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
}

/// Prints what libCacheSim counts on the generated patterns. It prints four digits of the miss ratio, which is the
/// exact count for 10,000 references.
fn misses(program: &str, counted: &[(&str, &str)], parameters: Option<&str>) {
    const REFERENCES: u32 = 10_000;
    const FRAMES: [u32; 13] = [20, 33, 50, 77, 100, 144, 200, 301, 400, 500, 640, 801, 960];
    // The simulator makes small tables for a trace of this name, else of 128 MiB for each policy and size.
    let folder = std::env::temp_dir().join(format!("pagelab-{}", std::process::id()));
    let file = folder.join("data/trace.oracleGeneral.bin");
    std::fs::create_dir_all(folder.join("data")).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    println!("# pattern,pages,references,seed,policy,frames,misses");
    for pattern in [
        "smooth-sin",
        "smooth-sin-0.6",
        "smooth-sin-random",
        "uniform",
        "zipf:0.6",
        "zipf:0.8",
        "zipf:1",
        "drift",
    ] {
        let parsed: Pattern = pattern.parse().expect("a pattern");
        let stream = parsed.stream(1000, REFERENCES.into(), 1).expect("the pattern fits");
        write(&stream, &file);
        // All at once: a run takes seconds, however short the trace.
        let output = Command::new(program)
            .arg(&file)
            .args([
                "oracleGeneral",
                &counted.iter().map(|(_, theirs)| *theirs).collect::<Vec<_>>().join(","),
                &FRAMES.map(|f| f.to_string()).join(","),
            ])
            .args(["--ignore-obj-size", "1", "--num-thread", "1"])
            .args(parameters.iter().flat_map(|parameters| ["-e", parameters]))
            .current_dir(&folder)
            .output()
            .unwrap_or_else(|e| panic!("cannot run {program}: {e}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // In the order of the policies, then of the sizes.
        let mut found = text.lines().filter_map(|line| {
            let size = line.split_once("cache size")?.1.trim_start().split_once(',')?.0.to_owned();
            let ratio: f64 = line.split_once(" miss ratio ")?.1.split(',').next()?.parse().ok()?;
            Some((size, ratio))
        });
        for (ours, _) in counted {
            for frames in FRAMES {
                let (size, ratio) = found.next().unwrap_or_else(|| panic!("too few results: {text}"));
                assert_eq!(size, frames.to_string(), "{text}");
                println!(
                    "{pattern},1000,{REFERENCES},1,{ours},{frames},{}",
                    (ratio * f64::from(REFERENCES)).round()
                );
            }
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().unwrap_or_else(|e| panic!("'{word}': {e}"));
    match words[..] {
        ["write", pattern, pages, references, file] => {
            let pattern: Pattern = pattern.parse().unwrap_or_else(|e| panic!("{e}"));
            let stream = pattern.stream(number(pages), number(references), 1);
            write(&stream.unwrap_or_else(|e| panic!("{e}")), Path::new(file));
        }
        ["misses", program] => misses(program, &COUNTED, None),
        ["misses-2025", program] => {
            for one in &COUNTED_2025 {
                misses(program, &[*one], (one.1 == "clock").then_some("n-bit-counter=2"));
            }
        }
        [program, trace, rounds, ref sizes @ ..] if !sizes.is_empty() => {
            let sizes: Vec<u32> = sizes.iter().map(|word| number(word) as u32).collect();
            compare(program, Path::new(trace), number(rounds).max(1) as usize, &sizes);
        }
        _ => println!("skipped: needs CACHESIM TRACE ROUNDS FRAMES..., see the top of this file"),
    }
}
