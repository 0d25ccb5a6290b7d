//! `latency`: each level beyond the one before it, and huge pages told from base ones.

use pagelab_experiment::experiments::Latency;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Experiment, Setting};
use pagelab_testing::{LIMITS, THP, Test, tests};

use crate::{column, figure, has_column, limit, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        loads_grow_with_the_working_set;
        first_touches_of_huge_pages_are_told_from_those_of_base_pages: THP;
        the_working_sets_stay_within_the_limit: LIMITS;
    }
}

fn latency(sizes: Option<&str>) -> Latency {
    let sizes = sizes.map(|sizes| sizes.parse().unwrap());
    Latency { sizes, loads: 20_000, faults: 2000, ..Latency::default() }
}

fn loads_grow_with_the_working_set() {
    let seen = perform(Experiment::Latency(latency(Some("4K,16K,32M"))), &Setting::default()).unwrap();
    has_column(&seen, "latency", "line.load", Unit::Nanoseconds);
    let lines = column(&seen, "latency", "line.load");
    assert!(lines[0] > 0.1 && lines[2] > 3.0 * lines[1], "32 MiB are in no first-level cache: {lines:?}");
    let pages = seen.table("latency").unwrap().numbers("page.load").unwrap();
    assert_eq!(pages[0], None, "one page is no chain");
    assert!(pages[2] > pages[1], "{pages:?}");
    let fault = figure(&seen, "latency.minor-fault");
    assert!(fault > 20.0 * lines[0], "{fault} {lines:?}");
    assert_eq!(figure(&seen, "faults.major"), 0.0);
}

fn first_touches_of_huge_pages_are_told_from_those_of_base_pages() {
    let with = |thp: &str| {
        let mut setting = Setting::default();
        setting.apply("thp", thp).unwrap();
        perform(Experiment::Latency(latency(Some("16K,4M"))), &setting).unwrap()
    };
    let (always, never) = (with("always"), with("never"));
    let huge = always.metric("latency.huge-fault").unwrap();
    assert!(huge > 5.0 * figure(&always, "latency.minor-fault"), "2 MiB are cleared: {huge}");
    assert_eq!(never.metric("latency.huge-fault"), None);
    assert!(never.notes.iter().any(|note| note.text.contains("base pages where huge ones were asked for")));
}

fn the_working_sets_stay_within_the_limit() {
    let seen = perform(Experiment::Latency(latency(None)), &limit(24 << 20)).unwrap();
    let sizes = column(&seen, "latency", "size");
    assert_eq!(sizes.last(), Some(&f64::from(12 << 20)));
    assert_eq!(figure(&seen, "faults.major"), 0.0);
}
