//! What packing a recording takes: nanoseconds of processor time a run, least of rounds, and bytes a run.
//!
//! `cargo bench -p pagelab-reference --bench packing -- [RECORDING]`: its runs, in blocks as it is written; else seeded ones.

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use pagelab_reference::trace::recorded::{self, Ending, Heading, RUNS, Run, Writer};
use pagelab_reference::trace::{Options, Reader};

/// Runs that are packed.
const MOST: usize = 20_000_000;
const ROUNDS: usize = 5;

/// Processor time of this thread, which other load lengthens least; else the time since the first call.
fn clock() -> Duration {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok());
    spent.map_or_else(|| BEGUN.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

/// As a program has them: fetches of some pages, between which there are a load or a store or two.
fn seeded() -> Vec<Run> {
    let mut state = 1u64;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let run = |n: usize| match n % 3 {
        0 => (0x5_5555_5000 + draw(8), recorded::FETCH, 1 + draw(12)),
        1 => (0x7_ffff_f000 + draw(2), recorded::STORE, 1 + draw(2)),
        _ => (0x5_5556_0000 + draw(1000), recorded::LOAD, 1 + draw(3)),
    };
    (0..MOST).map(run).collect()
}

fn of(path: &Path) -> (Heading, Vec<Run>) {
    let (heading, _) = recorded::ends(path).expect("it can be read").expect("a whole recording");
    let options = Options { page_size: heading.unit, ..Options::default() };
    let mut reader = Reader::open(path, &options).expect("it can be read");
    let mut runs = Vec::new();
    while let Some(run) = reader.run(u64::MAX).expect("it is whole") {
        runs.push(run);
        if runs.len() == MOST {
            break;
        }
    }
    (heading, runs)
}

fn main() {
    let file = std::env::args().skip(1).find(|word| word != "--bench");
    let (heading, runs) = file.map_or_else(
        || {
            let kinds = ["load", "store", "fetch"].map(str::to_owned).to_vec();
            let heading =
                Heading { program: Vec::new(), recorder: String::new(), unit: 4096, kinds, reduced: None };
            (heading, seeded())
        },
        |file| of(Path::new(&file)),
    );
    let mut least = f64::INFINITY;
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let begun = clock();
        let mut writer = Writer::new(io::sink(), &heading).expect("a sink takes all");
        for block in runs.chunks(RUNS - 1) {
            writer.block(0, 0, block.iter().copied()).expect("a sink takes all");
        }
        bytes = black_box(writer.finish(Ending::default())).expect("a sink takes all").1;
        least = least.min((clock() - begun).as_nanos() as f64 / runs.len() as f64);
    }
    println!("{} runs: {least:.2} ns a run, {:.3} bytes a run", runs.len(), bytes as f64 / runs.len() as f64);
}
