//! `faultscale`: every kind of work, as threads and as processes.

use pagelab_experiment::experiments::{Beside, Faultscale, Work, Workers};
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Experiment, Setting};
use pagelab_testing::{CC, Test, tests};

use crate::{column, figure, has_column, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        faultscale_faults_are_counted;
        faultscale_every_work;
        faultscale_builds: CC;
        faultscale_builds_with_a_command;
        faultscale_locks;
        faultscale_beside_another_thread;
    }
}

fn small() -> Faultscale {
    Faultscale { workers: vec![1, 2], seconds: 0.15, pages: 256, ..Faultscale::default() }
}

fn faultscale_faults_are_counted() {
    for as_ in [Workers::Threads, Workers::Processes] {
        let seen =
            perform(Experiment::Faultscale(Faultscale { as_, ..small() }), &Setting::default()).unwrap();
        assert_eq!(column(&seen, "faultscale", "workers"), [1.0, 2.0]);
        let throughput = column(&seen, "faultscale", "throughput");
        assert!(throughput.iter().all(|&t| t > 1000.0), "{throughput:?}");
        let elapsed = column(&seen, "faultscale", "time.elapsed");
        let faults = column(&seen, "faultscale", "faults.minor");
        for ((rate, ns), faults) in throughput.iter().zip(&elapsed).zip(&faults) {
            let operations = rate * ns / 1e9;
            assert!((faults / operations - 1.0).abs() < 0.1, "a fault is a fault: {faults} for {operations}");
        }
        has_column(&seen, "faultscale", "time.system", Unit::Nanoseconds);
        assert!(figure(&seen, "throughput.best") >= figure(&seen, "throughput.first"));
    }
}

fn faultscale_every_work() {
    for work in [Work::File, Work::Map, Work::Fork] {
        for as_ in [Workers::Threads, Workers::Processes] {
            let faultscale = Faultscale { work, as_, ..small() };
            let seen = perform(Experiment::Faultscale(faultscale), &Setting::default()).unwrap();
            let throughput = column(&seen, "faultscale", "throughput");
            assert!(throughput.iter().all(|&t| t > 20.0), "{work} {as_}: {throughput:?}");
            if work == Work::File {
                let faults = column(&seen, "faultscale", "faults.minor")[0];
                let pages = throughput[0] * column(&seen, "faultscale", "time.elapsed")[0] / 1e9;
                assert!(faults > pages / 40.0 && faults < pages * 1.1, "{faults} faults for {pages} pages");
            }
        }
    }
}

fn faultscale_builds() {
    let faultscale = Faultscale { work: Work::Build, sources: 2, copies: 2, ..small() };
    let seen = perform(Experiment::Faultscale(faultscale), &Setting::default()).unwrap();
    assert!(column(&seen, "faultscale", "throughput").iter().all(|&t| t > 0.1));
}

fn faultscale_builds_with_a_command() {
    let cmd = |text: &str| Faultscale { work: Work::Build, cmd: Some(text.into()), ..small() };
    let seen = perform(Experiment::Faultscale(cmd("test {jobs} -le 2")), &Setting::default()).unwrap();
    assert_eq!(column(&seen, "faultscale", "workers"), [1.0, 2.0]);
    assert!(perform(Experiment::Faultscale(cmd("exit {jobs}")), &Setting::default()).is_err());
}

fn faultscale_locks() {
    let faultscale = Faultscale { work: Work::Map, workers: vec![4], ..small() };
    let seen = perform(Experiment::Faultscale(faultscale), &Setting::default()).unwrap();
    match seen.table_named("locks") {
        // Four threads that map and unmap in one address space wait for one another.
        Some(table) => {
            assert!(table.numbers_named("waits").unwrap().iter().flatten().sum::<f64>() > 0.0);
            assert!(figure(&seen, "state.lock") > 0.0);
        }
        None => assert!(seen.notes.iter().any(|n| n.text.contains("lock waits")), "said why not"),
    }
}

fn faultscale_beside_another_thread() {
    for (work, beside) in [(Work::Refill, Beside::Protect), (Work::Anon, Beside::Map)] {
        let faultscale = Faultscale { work, beside, beside_pages: 512, ..small() };
        let seen = perform(Experiment::Faultscale(faultscale), &Setting::default()).unwrap();
        let throughput = column(&seen, "beside", "throughput");
        assert!(throughput.len() == 4 && throughput.iter().all(|&rate| rate > 100.0), "{throughput:?}");
        assert!(figure(&seen, "beside.calls") > 1.0);
        assert_eq!(figure(&seen, "beside.throughput"), throughput[3], "the most workers");
        assert_eq!(figure(&seen, "beside.waits"), column(&seen, "beside", "waits")[3]);
        has_column(&seen, "beside", "p99", Unit::Nanoseconds);
    }
    let alone =
        perform(Experiment::Faultscale(Faultscale { work: Work::Refill, ..small() }), &Setting::default());
    let alone = alone.unwrap();
    assert!(alone.table_named("beside").is_none() && alone.metric_named("beside.throughput").is_none());
    let elapsed = column(&alone, "faultscale", "time.elapsed");
    let faults = column(&alone, "faultscale", "faults.minor");
    let operations = column(&alone, "faultscale", "throughput")[0] * elapsed[0] / 1e9;
    assert!((faults[0] / operations - 1.0).abs() < 0.1, "a fault each: {faults:?} for {operations}");
}
