//! Each policy from 1 to 100 % of the pages: no size may take much longer than another.
//!
//! `cargo bench -p pagelab-model --bench sizes`

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::replay;
use pagelab_reference::Pattern;

const PAGES: u32 = 20_000;
const REFERENCES: u64 = 200_000;
const PERCENT: [u32; 8] = [1, 5, 20, 50, 70, 90, 99, 100];

fn sizes(criterion: &mut Criterion) {
    let stream = Pattern::Zipf(0.8).stream(PAGES.into(), REFERENCES, 1).expect("the pattern fits");
    for one in PolicyKind::catalogue() {
        let kind: PolicyKind = one.form.replace("TAU", "10000").parse().expect("the catalogue's names parse");
        let mut group = criterion.benchmark_group(one.form.split(':').next().unwrap_or(one.form));
        group.throughput(Throughput::Elements(REFERENCES)).sample_size(10);
        group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(300));
        for percent in PERCENT {
            let frames = PAGES * percent / 100;
            group.bench_with_input(BenchmarkId::from_parameter(percent), &frames, |bencher, &frames| {
                bencher.iter(|| black_box(replay(&stream, &kind, frames)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, sizes);
criterion_main!(benches);
