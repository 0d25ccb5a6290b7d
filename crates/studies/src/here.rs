//! The same experiment on the running kernel, beside the published figures and the model's.
//!
//! A study says which experiments are its own ([`Live`]); whoever asks for the study hands over runs of
//! them. What has not been run is a dash, and the table's title says how to get it.

use pagelab_analysis::figure::{Column, Table};
use pagelab_experiment::observation::{Observations, Table as Seen};
use pagelab_experiment::setting::Limit;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, Run, RunHeader, Setting, Size};

use pagelab_analysis::stats::median;

/// An experiment of a study as the running kernel performs it, in a few seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Its name within the study.
    pub name: &'static str,
    /// What is done.
    pub experiment: Experiment,
    /// Under which limit, if under one.
    pub memory: Option<Size>,
}

impl Live {
    /// Without a limit of memory.
    pub(crate) fn free(name: &'static str, experiment: Experiment) -> Self {
        Self { name, experiment, memory: None }
    }

    /// The setting that it is performed under.
    pub fn setting(&self) -> Setting {
        // Times are wanted, not where the kernel spent them.
        Setting { memory: self.memory.map(Limit::Of), profile: Some(0), ..Setting::default() }
    }

    /// Whether this run is one of it, on a kernel that runs.
    pub fn is(&self, header: &RunHeader) -> bool {
        !matches!(header.target.kind, TargetKind::Model(_))
            && header.experiment == self.experiment
            && header.setting.limit() == self.memory
    }

    /// What the newest of the runs saw.
    pub(crate) fn seen<'a>(&self, runs: &'a [Run]) -> Option<&'a Observations> {
        self.run(runs)?.done().last().map(|repetition| &repetition.observations)
    }

    /// A metric of the newest of the runs.
    pub(crate) fn metric(&self, runs: &[Run], name: &str) -> Option<f64> {
        median(&self.run(runs)?.values(name))
    }

    fn run<'a>(&self, runs: &'a [Run]) -> Option<&'a Run> {
        runs.iter().rfind(|run| self.is(&run.header) && run.done().next().is_some())
    }
}

/// An empty table whose title says which runs fill it, or how to make them.
pub(crate) fn table(
    study: &str,
    live: &[Live],
    runs: &[Run],
    rows_are: &'static str,
    columns: Vec<Column>,
) -> Table {
    let found: Vec<&RunHeader> =
        live.iter().filter_map(|live| live.run(runs)).map(|run| &run.header).collect();
    let command = format!("pagelab reproduce {study} --on host");
    let title = match found.last() {
        None => format!("On this machine: nothing measured yet; {command} does it in seconds"),
        Some(last) => {
            let names: Vec<&str> = found.iter().map(|header| header.name.as_str()).collect();
            let day = last.started.split('T').next().unwrap_or_default();
            let rest =
                if found.len() < live.len() { format!("; the others: {command}") } else { String::new() };
            format!("On this machine: {} on {}, {day}{rest}", names.join(", "), last.target)
        }
    };
    Table::new(title, rows_are, columns)
}

/// Whether any of the runs is one of a study's experiments.
pub fn measured(live: &[Live], runs: &[Run]) -> bool {
    live.iter().any(|live| live.run(runs).is_some())
}

/// The figure of `column` in the row of a seen table whose `key` has this value.
pub(crate) fn at(seen: &Seen, key: &str, value: f64, column: &str) -> Option<f64> {
    let row = seen.numbers(key)?.iter().position(|&found| found == Some(value))?;
    seen.numbers(column)?.get(row).copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::experiments::Clock;

    fn header(target: &str, memory: Option<Size>) -> RunHeader {
        RunHeader {
            name: "clock-1".into(),
            batch: String::new(),
            experiment: Experiment::Clock(Clock::default()),
            target: target.parse().unwrap(),
            setting: Setting { memory: memory.map(Limit::Of), ..Setting::default() },
            conditions: Vec::new(),
            deterministic: false,
            started: "2026-01-02T03:04:05Z".into(),
            pagelab: String::new(),
        }
    }

    #[test]
    fn a_run_counts_on_a_kernel_with_the_same_experiment_and_limit() {
        let live = Live::free("clock", Experiment::Clock(Clock::default()));
        assert!(live.is(&header("host", None)) && live.is(&header("kernel:/boot/vmlinuz", None)));
        assert!(!live.is(&header("model:guest-clock", None)));
        assert!(!live.is(&header("host", Some(Size::Bytes(1 << 20)))));
        let other = Live::free("clock", Experiment::Clock(Clock::short()));
        assert!(!other.is(&header("host", None)));
    }

    #[test]
    fn a_title_says_where_the_figures_are_from_or_how_to_get_them() {
        let live = [Live::free("clock", Experiment::Clock(Clock::default()))];
        let table = table("mcdougall-2007", &live, &[], "step", Vec::new());
        assert!(table.title.contains("pagelab reproduce mcdougall-2007 --on host"), "{}", table.title);
        // A run of which nothing was finished is none.
        let run = Run { id: 1, header: header("host", None), repetitions: Vec::new() };
        assert_eq!(live[0].metric(&[run], "clock.jumps"), None);
    }
}
