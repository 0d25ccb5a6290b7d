//! What timing costs: the timing loop against the bare loop over the same stream, on pages that are
//! present.
//!
//! `bare` and `timed` are nanoseconds for one reference by each loop; `beyond` is their difference,
//! from both loops in turn (bare, timed, timed, bare), so that a drift of the machine meets both.
//! Goal: `beyond` under 30 ns. Streams: the default one (`smooth-sin`, 24,576 pages, 2,000,000
//! references) and `uniform` over the same pages, where most references miss the caches: there a
//! reference may take as long as a fault, so that the fault counters are read, and that is included.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pagelab_live::clock::Clock;
use pagelab_live::paging::calibrate::threshold;
use pagelab_live::paging::timing::{Tally, bare, references};
use pagelab_live::paging::touch::{Page, Touch, Word, Write};
use pagelab_live::region::{HugePages, Region};
use pagelab_reference::Pattern;

const PAGES: u64 = 24_576;
const REFERENCES: u64 = 2_000_000;

fn of_touch<T: Touch, C: Clock>(criterion: &mut Criterion, clock: &C, touch: &str, pattern: &Pattern) {
    let stream = pattern.stream(PAGES, REFERENCES, 1).expect("a stream");
    let region = Region::anonymous(PAGES as usize).expect("memory");
    let _ = region.advise(HugePages::Forbidden);
    region.populate(|_, _| {});
    let mut tally = Tally::new(threshold(clock).expect("memory"));
    let once_bare = || {
        let start = Instant::now();
        bare::<T>(&region, stream.references());
        start.elapsed()
    };
    let mut once_timed = || {
        let start = Instant::now();
        references::<T, C>(clock, &region, stream.references(), &mut tally);
        start.elapsed()
    };
    let mut group = criterion.benchmark_group(format!("{pattern}/{touch}"));
    group.throughput(Throughput::Elements(REFERENCES)).sample_size(10);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    group.bench_function("bare", |b| b.iter_custom(|n| (0..n).map(|_| once_bare()).sum()));
    group.bench_function("timed", |b| b.iter_custom(|n| (0..n).map(|_| once_timed()).sum()));
    group.bench_function("beyond", |b| {
        b.iter_custom(|n| {
            let (mut timed, mut bare) = (Duration::ZERO, Duration::ZERO);
            for i in 0..n {
                if i % 2 == 0 {
                    bare += once_bare();
                    timed += once_timed();
                } else {
                    timed += once_timed();
                    bare += once_bare();
                }
            }
            timed.saturating_sub(bare)
        });
    });
    group.finish();
}

fn of_clock<C: Clock>(criterion: &mut Criterion, clock: &C) {
    println!(
        "clock {}: {:.1} ns a reading, threshold {} ns",
        C::NAME,
        clock.cost(),
        threshold(clock).expect("memory")
    );
    for pattern in [Pattern::SmoothSin, Pattern::Uniform] {
        of_touch::<Page, C>(criterion, clock, "page", &pattern);
        of_touch::<Word, C>(criterion, clock, "word", &pattern);
        of_touch::<Write, C>(criterion, clock, "write", &pattern);
    }
}

fn harness(criterion: &mut Criterion) {
    #[cfg(target_arch = "x86_64")]
    if let Some(tsc) = pagelab_live::clock::Tsc::calibrated() {
        return of_clock(criterion, &tsc);
    }
    of_clock(criterion, &pagelab_live::clock::Monotonic);
}

criterion_group!(benches, harness);
criterion_main!(benches);
