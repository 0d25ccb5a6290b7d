//! What looking costs: the default vmstat view and the whole tree of the running machine, and the
//! census of every page where root.

use criterion::{Criterion, criterion_group, criterion_main};
use pagelab_counters::census::Census;
use pagelab_counters::{Root, Selection, Tree, openmetrics, views};

fn reading(c: &mut Criterion) {
    let tree = Tree::live();
    let vmstat = views::vmstat::selection();
    let page_size = tree.root().page_size();
    let before = tree.read(&vmstat);
    c.bench_function("vmstat view", |b| {
        b.iter(|| {
            views::vmstat::Row::between(Some(&before), &tree.read(&vmstat), page_size, None)
                .line(views::vmstat::Layout::default())
        });
    });
    let one = Selection::parse(["vmstat:0:vm:pgfault"]).expect("a selector");
    c.bench_function("one statistic", |b| b.iter(|| tree.read(&one)));
    let all = Selection::all();
    c.bench_function("whole tree", |b| b.iter(|| tree.read(&all)));
    let snapshot = tree.read(&all);
    c.bench_function("OpenMetrics of the whole tree", |b| b.iter(|| openmetrics::render(snapshot.samples())));
    if Census::take(tree.root()).is_ok() {
        let root = Root::live();
        let mut group = c.benchmark_group("census");
        group.sample_size(10);
        group.bench_function("every page", |b| b.iter(|| Census::take(&root)));
    }
}

criterion_group!(benches, reading);
criterion_main!(benches);
