//! The Grafana dashboard asks only for metrics that are served.

use std::collections::BTreeSet;
use std::path::Path;

use pagelab_counters::{Root, Selection, Tree, openmetrics};

#[test]
fn every_metric_of_the_dashboard_is_served() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dashboard =
        std::fs::read_to_string(crate_folder.join("../../docs/src/how-to/grafana-dashboard.json")).unwrap();
    let machine = Root::new(crate_folder.join("tests/fixtures/linux-6.18-cgroup1"));
    let served = openmetrics::render(Tree::new(machine).read(&Selection::all()).samples());
    let served: BTreeSet<&str> = served
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let asked: BTreeSet<&str> = dashboard
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("pagelab_"))
        .collect();
    assert!(asked.len() > 20);
    let missing: Vec<_> = asked.difference(&served).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
