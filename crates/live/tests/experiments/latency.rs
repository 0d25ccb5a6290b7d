//! `latency`: a row per working set, and huge pages told from base ones.

use pagelab_experiment::experiments::Latency;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Experiment, Setting};
use pagelab_testing::{LIMITS, THP, Test, tests};

use crate::{column, figure, has_column, limit, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        loads_are_timed_by_working_set;
        first_touches_of_huge_and_base_pages_are_separate: THP;
        the_working_sets_stay_within_the_limit: LIMITS;
    }
}

fn latency(sizes: Option<&str>) -> Latency {
    let sizes = sizes.map(|sizes| sizes.parse().unwrap());
    Latency { sizes, loads: 20_000, faults: 2000, ..Latency::default() }
}

fn loads_are_timed_by_working_set() {
    let seen = perform(Experiment::Latency(latency(Some("4K,16K,32M"))), &Setting::default()).unwrap();
    has_column(&seen, "latency", "line.load", Unit::Nanoseconds);
    let lines = column(&seen, "latency", "line.load");
    assert!(lines.iter().all(|&load| load > 0.1), "{lines:?}");
    let pages = seen.table_named("latency").unwrap().numbers_named("page.load").unwrap();
    assert_eq!(pages[0], None, "one page is no chain");
    assert!(pages[1].is_some() && pages[2].is_some(), "{pages:?}");
    assert!(figure(&seen, "latency.minor-fault") > 0.0);
    assert_eq!(figure(&seen, "faults.major"), 0.0);
}

fn first_touches_of_huge_and_base_pages_are_separate() {
    let with = |thp: &str| {
        let mut setting = Setting::default();
        setting.apply("thp", thp).unwrap();
        perform(Experiment::Latency(latency(Some("16K,4M"))), &setting).unwrap()
    };
    let (always, never) = (with("always"), with("never"));
    assert!(figure(&always, "latency.huge-fault") > 0.0);
    assert_eq!(never.metric_named("latency.huge-fault"), None);
    assert!(never.notes.iter().any(|note| note.text.contains("base pages where huge ones were asked for")));
}

fn the_working_sets_stay_within_the_limit() {
    let seen = perform(Experiment::Latency(latency(None)), &limit(24 << 20)).unwrap();
    let sizes = column(&seen, "latency", "size");
    assert_eq!(sizes.last(), Some(&f64::from(12 << 20)));
    assert_eq!(figure(&seen, "faults.major"), 0.0);
}
