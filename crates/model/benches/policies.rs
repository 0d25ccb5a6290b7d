//! The policies on one stream, and the curve of all LRU sizes beside one size of LRU.
//!
//! `cargo bench -p pagelab-model --bench policies`

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pagelab_model::mrc::lru::LruCurve;
use pagelab_model::policy::{PolicyKind, opt_misses};
use pagelab_model::replay::replay;
use pagelab_reference::Pattern;

const PAGES: u64 = 1 << 18;
const REFERENCES: u64 = 1 << 20;
const FRAMES: u32 = 1 << 15;

fn policies(criterion: &mut Criterion) {
    let stream = Pattern::Zipf(0.9).stream(PAGES, REFERENCES, 1).expect("the pattern fits");
    let mut group = criterion.benchmark_group("replay");
    group.throughput(Throughput::Elements(REFERENCES)).sample_size(10);
    for one in PolicyKind::catalogue() {
        let kind: PolicyKind =
            one.form.replace("TAU", "100000").parse().expect("the catalogue's names parse");
        group.bench_with_input(BenchmarkId::from_parameter(&kind), &kind, |bencher, kind| {
            bencher.iter(|| black_box(replay(&stream, kind, FRAMES)));
        });
    }
    group.bench_function("every size of lru", |bencher| bencher.iter(|| black_box(LruCurve::of(&stream))));
    group.bench_function("opt_misses", |bencher| bencher.iter(|| black_box(opt_misses(&stream, FRAMES))));
    group.finish();
}

criterion_group!(benches, policies);
criterion_main!(benches);
