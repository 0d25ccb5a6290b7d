//! `restore`: every touched page comes once, on demand or prefetched, with the snapshot's content.
//!
//! The experiment itself compares each touched page with the snapshot and fails where they differ.

use pagelab_experiment::experiments::Prefetch::{Lru, None as OnDemand, Recorded, Sequential};
use pagelab_experiment::experiments::{Prefetch, Restore};
use pagelab_experiment::{Experiment, Observations, Request, Setting, Target};
use pagelab_live::Host;
use pagelab_testing::{Test, USERFAULT, tests};

use crate::{Memory, column, figure, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        restore_fetches_each_touched_page_once: USERFAULT;
        restore_prefetches_a_changed_recording_partly_in_vain: USERFAULT;
        restore_repeats_a_recorded_program: USERFAULT;
        restore_ends_when_interrupted: USERFAULT;
    }
}

fn restore(prefetch: &[Prefetch], changed: &str) -> Restore {
    let (prefetch, changed) = (prefetch.to_vec(), changed.parse().unwrap());
    Restore { pages: 2000, references: 1500, prefetch, changed, ..Restore::default() }
}

fn performed(restore: Restore) -> Observations {
    perform(Experiment::Restore(restore), &Setting::default()).unwrap()
}

fn restore_fetches_each_touched_page_once() {
    let seen = performed(restore(&[OnDemand, Recorded, Sequential, Lru], "0%"));
    let of = |name| column(&seen, "restore", name);
    let (touched, faults, prefetched, vain) = (of("touched"), of("faults"), of("prefetched"), of("vain"));
    assert!(touched.iter().all(|&pages| pages == touched[0] && pages > 100.0), "{touched:?}");
    for row in 0..4 {
        assert_eq!(faults[row] + prefetched[row] - vain[row], touched[row], "{faults:?} {prefetched:?}");
    }
    assert_eq!((faults[0], prefetched[0]), (touched[0], 0.0));
    assert_eq!(vain[1], 0.0, "the recording is of the same references");
    assert!(prefetched[3] <= (touched[0] / 2.0).ceil() && vain[3] == 0.0, "{prefetched:?} {vain:?}");
    let cached = of("cached.before");
    assert!(cached.iter().all(|&bytes| bytes < 20.0 * 4096.0), "of 2000 pages at most 1%: {cached:?}");
    assert!(figure(&seen, "restore.answer") > 0.0 && figure(&seen, "time.cpu") > 0.0);
}

/// With nothing in common but chance.
fn restore_prefetches_a_changed_recording_partly_in_vain() {
    let restore = Restore { depth: 1, ..restore(&[Recorded], "100%") };
    let seen = performed(Restore { references: 200, ..restore });
    let of = |name| column(&seen, "restore", name)[0];
    assert_eq!(of("faults") + of("prefetched") - of("vain"), of("touched"));
    let share = (of("prefetched") > 0.0).then(|| of("vain") / of("prefetched"));
    assert_eq!(seen.metric_named("restore.vain.recorded"), share);
    assert_eq!(seen.metric_named("restore.answer"), None, "not asked for");
}

fn restore_repeats_a_recorded_program() {
    let trace = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(trace.path(), "7\n3\n7\n11\n3\n0\n").unwrap();
    let pattern = format!("trace:{}", trace.path().display()).parse().unwrap();
    let seen = performed(Restore { pattern, references: 6, pages: 12, ..restore(&[OnDemand], "0%") });
    assert_eq!(column(&seen, "restore", "faults"), [4.0]);
}

fn restore_ends_when_interrupted() {
    let mut memory = Memory { interrupt_in: Some("record"), ..Memory::default() };
    let long = Restore { pages: 20_000, references: 1 << 20, ..restore(&[OnDemand], "0%") };
    let request = Request::new(Experiment::Restore(long), Setting::default());
    let performed = Host::new().plan(&request).unwrap().perform(&mut memory);
    assert!(performed.unwrap_err().is_interrupted());
    assert!(memory.seen.table_named("restore").is_none());
}
