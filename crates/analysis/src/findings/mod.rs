//! What runs say by themselves and together: the findings of each experiment, then what several runs say
//! beside one another, then what spoils them.

mod clock;
mod mapping;
mod processes;
mod reads;
mod streams;

use pagelab_experiment::observation::{Level, Table, Values};
use pagelab_experiment::{Experiment, Outcome, Run};

pub use self::clock::verdict as clock_verdict;
use crate::comparison::{Comparison, against_first};
use crate::finding::{Evidence, Figure, Finding, Severity, What};
use crate::groups;

/// Runs and everything that they say.
#[derive(Clone, Debug)]
pub struct Assessment<'a> {
    /// The runs.
    pub runs: Vec<&'a Run>,
    /// What they say, the results first.
    pub findings: Vec<Finding>,
    /// Every run of an experiment against the first one of it.
    pub comparisons: Vec<Comparison>,
}

/// Everything that `runs` say.
pub fn assess<'a>(runs: &[&'a Run]) -> Assessment<'a> {
    let mut findings: Vec<Finding> = runs.iter().filter_map(|run| of_run(run)).collect();
    findings.extend(mapping::past_the_limit(runs));
    findings.extend(runs.iter().filter_map(|run| mapping::regret(run)));
    findings.extend(spoiling(runs));
    Assessment { runs: runs.to_vec(), findings, comparisons: compared(runs) }
}

/// What a sweep over memory found, and what spoils its runs; they are not compared pair by pair.
pub fn assess_sweep<'a>(runs: &[&'a Run], found: Option<Finding>) -> Assessment<'a> {
    let findings = found.into_iter().chain(spoiling(runs)).collect();
    Assessment { runs: runs.to_vec(), findings, comparisons: Vec::new() }
}

/// The main finding of one run; `None` when no repetition was wholly performed.
pub fn of_run(run: &Run) -> Option<Finding> {
    match &run.header.experiment {
        Experiment::Mapanon(paging) | Experiment::Mapfile(paging) => mapping::access_time(run, paging),
        Experiment::Vmtest(_) => reads::read_time(run),
        Experiment::Forkstorm(parameters) => processes::fork_rate(run, parameters),
        Experiment::Faultscale(parameters) => processes::scaling(run, parameters),
        Experiment::Fileread(_) => reads::file_reads(run),
        Experiment::Seqread(_) => reads::sequential_reads(run),
        Experiment::Clock(_) => clock::agreement(run),
        Experiment::Command(parameters) => processes::program(run, parameters),
        Experiment::Record(_) => processes::recording(run),
        Experiment::Replay(curve) | Experiment::Mrc(curve) => streams::misses(run, curve),
        Experiment::Wss(of) => streams::working_set(run, of),
    }
}

/// Every run of an experiment against the first one of it.
fn compared(runs: &[&Run]) -> Vec<Comparison> {
    let performed: Vec<&Run> = runs.iter().copied().filter(|run| run.done().next().is_some()).collect();
    groups(&performed).iter().flat_map(|group| against_first(group, &[])).collect()
}

/// The repetitions that do not count, and the warnings of all runs, each once.
fn spoiling(runs: &[&Run]) -> Vec<Finding> {
    let mut list: Vec<Finding> = Vec::new();
    for run in runs {
        for repetition in run.repetitions.iter().filter(|r| r.outcome != Outcome::Done) {
            let what =
                What::NotPerformed { repetition: repetition.number, outcome: repetition.outcome.clone() };
            let found = Finding::new(run, what, Vec::new(), vec![Evidence::Outcome]);
            list.push(Finding { severity: Severity::Failure, ..found });
        }
    }
    for run in runs {
        for note in run.repetitions.iter().flat_map(|r| &r.observations.notes) {
            let what = What::Warning { text: note.text.clone() };
            if note.level == Level::Warning && !list.iter().any(|known| known.what == what) {
                let found = Finding::new(run, what, Vec::new(), vec![Evidence::Note]);
                list.push(Finding { severity: Severity::Warning, ..found });
            }
        }
    }
    list
}

/// The metrics of these names that the run measured.
fn figures(run: &Run, names: &[&str]) -> Vec<Figure> {
    names.iter().filter_map(|name| Figure::of(run, name)).collect()
}

/// The first table of this name.
fn table<'a>(run: &'a Run, name: &str) -> Option<&'a Table> {
    run.done().find_map(|r| r.observations.table(name))
}

/// The names of a table's rows.
pub(crate) fn row_names(table: &Table) -> &[String] {
    match table.columns.first().map(|column| &column.values) {
        Some(Values::Text(names)) => names,
        _ => &[],
    }
}
