//! What packing a recording takes: nanoseconds of processor time a word of the tracer's and a reference, least of rounds, and bytes
//! a reference.
//!
//! `cargo bench -p pagelab-reference --bench packing`: a seeded walk over blocks, whose loads and stores are mostly to the page
//! that they were to before.

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use pagelab_reference::trace::recorded::{Ending, FETCH, Heading, LOAD, STORE, Writer};
use pagelab_ring::WORDS;
use pagelab_ring::words::{define, execute, fetched, go, key, replace};

/// Buffers that are packed.
const BUFFERS: usize = 40;
const ROUNDS: usize = 5;
/// Blocks in a buffer.
const BLOCKS: u32 = 400;

/// Processor time of this thread, which other load lengthens least; else the time since the first call.
fn clock() -> Duration {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok());
    spent.map_or_else(|| BEGUN.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

/// A buffer: each block follows the one before it and has two loads and a store; then a block anywhere, a load of it that is another
/// one every second time, and those that follow it.
fn buffer() -> Vec<u32> {
    let mut state = 1u64;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut words = Vec::with_capacity(WORDS);
    for block in 0..BLOCKS {
        words.push(define(1));
        words.extend(fetched(key(0x5_5555_5000 + u64::from(block / 16), FETCH), 6));
        words.push(execute(block));
        words.extend(replace(0, key(0x5_5556_0000 + draw(1000), LOAD)));
        words.extend(replace(1, key(0x7_ffff_f000 + draw(2), STORE)));
        words.extend(replace(2, key(0x5_5556_0000 + draw(1000), LOAD)));
    }
    while words.len() < WORDS - 8 {
        words.push(execute(draw(u64::from(BLOCKS) / 2) as u32));
        if draw(2) == 0 {
            words.extend(replace(0, key(0x5_5556_0000 + draw(1000), LOAD)));
        }
        words.push(go(1 + draw(8) as u32));
    }
    words
}

fn main() {
    let kinds = ["load", "store", "fetch"].map(str::to_owned).to_vec();
    let heading = Heading {
        program: Vec::new(),
        recorder: String::new(),
        unit: 4096,
        kinds,
        reduced: None,
        window: None,
    };
    let words = buffer();
    let mut least = Duration::MAX;
    let (mut references, mut bytes) = (0, 0);
    for _ in 0..ROUNDS {
        let begun = clock();
        let mut writer = Writer::new(io::sink(), &heading).expect("a sink takes all");
        for _ in 0..BUFFERS {
            writer.executed(0, 0, &words, |unit| _ = black_box(unit)).expect("they mean something");
        }
        let (ending, written) = writer.finish(Ending::default()).expect("a sink takes all");
        least = least.min(clock() - begun);
        (references, bytes) = (ending.references(), written);
    }
    let nanoseconds = least.as_nanos() as f64;
    println!(
        "{references} references: {:.2} ns a word, {:.3} ns a reference, {:.4} bytes a reference",
        nanoseconds / (BUFFERS * words.len()) as f64,
        nanoseconds / references as f64,
        bytes as f64 / references as f64
    );
}
