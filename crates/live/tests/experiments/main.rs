//! Every experiment but those on one mapping, end to end on the running kernel: a worker process, a
//! memory limit where one can be had, real loads. Its own main, because a worker process is this
//! program again. One test alone: `cargo test -p pagelab-live --test experiments -- NAME`.

mod addressing;
mod clock;
mod command;
mod faultscale;
mod fileread;
mod forkstorm;
mod latency;
mod restore;
mod vmtest;

use std::process::ExitCode;

use pagelab_experiment::environment;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::setting::Limit;
use pagelab_experiment::{
    Experiment, Failure, Observation, Observations, Recorder, RecorderError, Request, Setting, Size, Target,
};
use pagelab_live::{Host, worker};
use pagelab_testing::run_in_turn;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(worker::ARGUMENT) => return pagelab_live::worker_main(),
        Some(pagelab_live::experiments::forkstorm::copy::NOTHING) => return ExitCode::SUCCESS,
        _ => {}
    }
    run_in_turn(
        [
            addressing::tests(),
            clock::tests(),
            command::tests(),
            faultscale::tests(),
            fileread::tests(),
            forkstorm::tests(),
            latency::tests(),
            restore::tests(),
            vmtest::tests(),
        ]
        .concat(),
    )
}

/// Keeps everything in memory.
#[derive(Default)]
struct Memory {
    seen: Observations,
    /// Wants to end as soon as this phase is on.
    interrupt_in: Option<&'static str>,
    phase: String,
}

impl Recorder for Memory {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        self.seen.add(observation);
        Ok(())
    }

    fn progress(&mut self, phase: &str, done: u64, total: u64) {
        assert!(done <= total, "{phase} {done} of {total}");
        phase.clone_into(&mut self.phase);
    }

    fn interrupted(&self) -> bool {
        self.interrupt_in == Some(self.phase.as_str())
    }
}

/// What an experiment on the host shows.
fn perform(experiment: Experiment, setting: &Setting) -> Result<Observations, Failure> {
    let (seen, performed) = perform_anyway(experiment, setting);
    performed.map(|()| seen)
}

/// The same, also of one that fails.
fn perform_anyway(experiment: Experiment, setting: &Setting) -> (Observations, Result<(), Failure>) {
    let mut memory = Memory::default();
    let plan = Host::new().plan(&Request::new(experiment, setting.clone())).map_err(Failure::from);
    let performed = plan.and_then(|mut plan| plan.perform(&mut memory));
    for entry in memory.seen.environment.keys() {
        assert!(environment::help(entry).is_some(), "{entry} is not in the catalogue");
    }
    for table in &memory.seen.tables {
        let lengths: Vec<usize> = table.columns.iter().map(|c| rows(&c.values)).collect();
        assert!(lengths.windows(2).all(|w| w[0] == w[1]), "{}: {lengths:?}", table.name);
    }
    (memory.seen, performed)
}

fn rows(values: &pagelab_experiment::observation::Values) -> usize {
    match values {
        pagelab_experiment::observation::Values::Number(numbers) => numbers.len(),
        pagelab_experiment::observation::Values::Text(texts) => texts.len(),
    }
}

/// A column of a table, with every value there.
fn column(seen: &Observations, table: &str, name: &str) -> Vec<f64> {
    let numbers = seen.table_named(table).unwrap_or_else(|| panic!("no table {table}")).numbers_named(name);
    let numbers = numbers.unwrap_or_else(|| panic!("no column {name}"));
    numbers
        .iter()
        .map(|v| v.unwrap_or_else(|| panic!("{table}.{name} is not measured: {numbers:?}")))
        .collect()
}

/// The figure of this name, which must have been measured.
fn figure(seen: &Observations, name: &str) -> f64 {
    seen.metric_named(name).unwrap_or_else(|| panic!("{name} is not measured"))
}

fn limit(bytes: u64) -> Setting {
    Setting { memory: Some(Limit::Of(Size::Bytes(bytes))), ..Setting::default() }
}

/// That a table has this column in this unit.
fn has_column(seen: &Observations, table: &str, name: &str, unit: Unit) {
    let columns = &seen.table_named(table).unwrap().columns;
    assert!(columns.iter().any(|c| c.name == name && c.unit == Some(unit)), "{table}.{name}");
}
