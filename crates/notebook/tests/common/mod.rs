//! What the tests of the notebook share.

#![allow(dead_code, reason = "no test file uses everything")]

use std::path::PathBuf;

use pagelab_experiment::experiments::Paging;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::{Column, PageSet, PageSnapshot, Table, Unit, Values};
use pagelab_experiment::{Experiment, Observation, RunHeader, Setting, TargetSpec};

/// The time at which every test run begins.
pub const NOW: &str = "2024-05-06T07:08:09Z";

/// A run of this name (empty: to be named).
pub fn header(name: &str) -> RunHeader {
    RunHeader {
        name: name.into(),
        batch: "batch".into(),
        experiment: Experiment::Mapanon(Paging::default()),
        target: "host,memory=64M".parse::<TargetSpec>().unwrap(),
        setting: Setting { swappiness: Some(60), ..Setting::default() },
        conditions: Vec::new(),
        deterministic: false,
        started: NOW.into(),
        pagelab: "0.1.0".into(),
    }
}

/// A metric, a table and a page map of `pages` pages.
pub fn some(pages: u32) -> Vec<Observation> {
    let numbers = |step: f64| Values::Number((0..200).map(|n| Some(f64::from(n) * step)).collect());
    vec![
        Observation::Metric(metrics::TIME_ELAPSED.figure(Some(1e9))),
        Observation::Metric(metrics::TIME_STALLED.figure(None)),
        Observation::Table(Table {
            name: "windows".into(),
            columns: vec![
                Column { name: "reference".into(), unit: Some(Unit::Count), values: numbers(10.0) },
                Column { name: "access.mean".into(), unit: Some(Unit::Nanoseconds), values: numbers(0.5) },
            ],
        }),
        Observation::Pages(PageSnapshot {
            reference: 10,
            pages,
            present: PageSet::from_flags((0..pages).map(|p| p % 3 == 0)),
            swapped: PageSet::from_flags((0..pages).map(|p| p % 3 == 1)),
            count: (0..pages).collect(),
            last: (0..pages).rev().collect(),
        }),
    ]
}

/// A folder that goes with the test, and a notebook's path in it.
pub fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pagelab.db");
    (folder, path)
}
