//! What libCacheSim counts on the generated patterns, which src/policy/patterns.csv holds, and for other policies
//! src/policy/patterns_2025.csv. `scripts/goals` compares the speed of both.
//!
//! ```text
//! cargo bench -p pagelab-model --bench against_libcachesim -- misses CACHESIM
//! cargo bench -p pagelab-model --bench against_libcachesim -- misses-2025 CACHESIM
//! ```
//!
//! CACHESIM is libCacheSim's `cachesim`, a program that the reader builds.

use std::path::Path;
use std::process::Command;

use pagelab_reference::{Pattern, Stream};

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
    match &words[..] {
        [form, program] if form == "misses" => misses(program, &COUNTED, None),
        [form, program] if form == "misses-2025" => {
            misses(program, &COUNTED_2025, Some("n-bit-counter=2"));
        }
        _ => println!("skipped: needs misses CACHESIM, see the top of this file"),
    }
}
