//! `clock`: true on this machine, and found out where it is not.

use std::net::TcpListener;

use pagelab_experiment::experiments::Clock;
use pagelab_experiment::observation::{Level, Unit};
use pagelab_experiment::{Experiment, Setting};
use pagelab_live::experiments::clock::reference::serve;
use pagelab_testing::{Test, tests};

use crate::{column, figure, has_column, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        clock_steps_agree;
        clock_is_held_against_a_reference;
        clock_without_its_reference_is_an_error;
    }
}

fn clock_steps_agree() {
    let seen = perform(Experiment::Clock(Clock::short()), &Setting::default()).unwrap();
    has_column(&seen, "clock", "realtime", Unit::Nanoseconds);
    let raw = column(&seen, "clock", "raw");
    assert_eq!(raw.len(), 4);
    assert!(raw.iter().all(|&ns| ns >= 100e6), "{raw:?}");
    for clock in ["realtime", "monotonic", "boot"] {
        assert!(column(&seen, "clock", clock).iter().all(|&ns| ns >= 99e6), "{clock}");
    }
    let untrue: Vec<_> = seen.notes.iter().filter(|n| n.level == Level::Warning).collect();
    assert_eq!(figure(&seen, "clock.agreement") == 1.0, untrue.is_empty(), "{untrue:?}");
    assert!(["clock.step.worst", "clock.drift.worst"].iter().all(|name| figure(&seen, name) >= 0.0));
    let costs = seen.table_named("clocks").unwrap().numbers_named("cost").unwrap();
    assert!(costs[0].unwrap() > 1.0);
    if cfg!(target_arch = "x86_64") && std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) {
        let (least, most) = (column(&seen, "clock.skew", "least"), column(&seen, "clock.skew", "most"));
        assert!(least.iter().zip(&most).all(|(a, b)| a <= b), "{least:?} {most:?}");
        assert!(figure(&seen, "clock.skew.bound") >= figure(&seen, "clock.skew.worst"));
    }
}

fn clock_is_held_against_a_reference() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reference = Some(listener.local_addr().unwrap().to_string());
    std::thread::spawn(move || serve(&listener));
    let clock = Clock { steps: 2, step: 200, reference };
    let seen = perform(Experiment::Clock(clock), &Setting::default()).unwrap();
    // It is the same clock, so the drift is no more than what the network leaves uncertain.
    assert!(figure(&seen, "clock.reference.drift").abs() <= figure(&seen, "clock.reference.error"));
}

fn clock_without_its_reference_is_an_error() {
    let clock = Clock { reference: Some("127.0.0.1:1".into()), ..Clock::short() };
    let error = perform(Experiment::Clock(clock), &Setting::default()).unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:1"), "{error}");
}
