//! The Grafana dashboard and the alert rules ask only for metrics that are served.

use std::collections::BTreeSet;
use std::path::Path;

use pagelab_counters::{Root, Selection, Tree, openmetrics};

#[test]
fn every_metric_of_the_dashboard_is_served() {
    all_are_served("grafana-dashboard.json", &["linux-6.18-cgroup1"], 20);
}

#[test]
fn every_metric_of_the_alerts_is_served() {
    // Pressure is of cgroups of version 2 alone.
    all_are_served("prometheus-alerts.yml", &["linux-6.18-cgroup1", "adapted-cgroup2"], 9);
}

fn all_are_served(file: &str, machines: &[&str], more_than: usize) {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(crate_folder.join("../../docs/src/how-to").join(file)).unwrap();
    let of = |machine: &&str| {
        let root = Root::new(crate_folder.join("tests/fixtures").join(machine));
        openmetrics::render(Tree::new(root).read(&Selection::all()).samples())
    };
    let served: String = machines.iter().map(of).collect();
    let served: BTreeSet<&str> = served
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let asked: BTreeSet<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("pagelab_"))
        .collect();
    assert!(asked.len() > more_than, "{asked:?}");
    let missing: Vec<_> = asked.difference(&served).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
