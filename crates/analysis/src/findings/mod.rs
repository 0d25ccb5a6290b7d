//! What runs say by themselves and together: the findings of each experiment, then what several runs say
//! beside one another, then what spoils them.

mod clock;
pub(crate) mod mapping;
mod memory;
mod processes;
mod programs;
mod reads;
mod shortage;
mod streams;

use pagelab_experiment::experiments::Command;
use pagelab_experiment::observation::{Level as NoteLevel, Table};
use pagelab_experiment::{FailureKind, MetricId, Outcome, Run, TableId};

pub use self::clock::verdict as clock_verdict;
use crate::comparison::{Comparison, against_first};
use crate::finding::{Evidence, Figure, Finding, Severity, What};
use crate::groups;
use crate::ladder::{self, Level};

/// Runs and everything that they say.
#[derive(Clone, Debug)]
pub struct Assessment<'a> {
    /// The runs.
    pub runs: Vec<&'a Run>,
    /// What they say, the results first.
    pub findings: Vec<Finding>,
    /// Every run of an experiment against the first one of it.
    pub comparisons: Vec<Comparison>,
    /// What an access costs at each level of the memory hierarchy, where several experiments say it.
    pub ladder: Vec<Level>,
}

/// Everything that `runs` say.
pub fn assess<'a>(runs: &[&'a Run]) -> Assessment<'a> {
    let mut findings: Vec<Finding> = runs.iter().filter_map(|run| of_run(run)).collect();
    findings.extend(mapping::past_the_limit(runs));
    findings.extend(runs.iter().filter_map(|run| mapping::huge_pages(run)));
    findings.extend(runs.iter().filter_map(|run| mapping::writeback(run)));
    findings.extend(runs.iter().filter_map(|run| mapping::zswap(run)));
    findings.extend(runs.iter().filter_map(|run| mapping::regret(run)));
    findings.extend(runs.iter().filter_map(|run| mapping::evictions(run)));
    findings.extend(groups(runs).iter().filter_map(|group| programs::on_models(group)));
    findings.extend(spoiling(runs));
    let ladder = if groups(runs).len() > 1 { ladder::of_runs(runs) } else { Vec::new() };
    Assessment { runs: runs.to_vec(), findings, comparisons: compared(runs), ladder }
}

/// What a sweep over memory found, and what spoils its runs; they are not compared pair by pair. That a program was
/// killed or stopped under a limit is what a sweep is to find out, and spoils nothing where it found something.
pub fn assess_sweep<'a>(runs: &[&'a Run], found: Option<Finding>) -> Assessment<'a> {
    let expected = |finding: &Finding| match &finding.what {
        What::NotPerformed { outcome: Outcome::Failed(failure), .. } => {
            matches!(failure.kind, FailureKind::OutOfMemory { .. } | FailureKind::TimedOut { .. })
        }
        _ => false,
    };
    let whole = found.is_some();
    let spoiling = spoiling(runs).into_iter().filter(|finding| !(whole && expected(finding)));
    let findings = found.into_iter().chain(spoiling).collect();
    Assessment { runs: runs.to_vec(), findings, comparisons: Vec::new(), ladder: Vec::new() }
}

/// What finds the main finding of a run, by its metrics, its tables or its parameters. The last
/// serves every experiment.
const FINDERS: [fn(&Run) -> Option<Finding>; 23] = [
    mapping::access_time,
    reads::read_time,
    processes::fork_rate,
    processes::scaling,
    reads::file_reads,
    reads::sequential_reads,
    reads::first_answer,
    reads::latencies,
    reads::operations,
    reads::neighbour,
    memory::bandwidth,
    memory::merging,
    memory::tiers,
    shortage::kills,
    shortage::reclaimed,
    shortage::huge_pages,
    clock::agreement,
    processes::program,
    processes::recording,
    programs::recorded,
    streams::misses,
    streams::working_set,
    declared,
];

/// The main finding of one run; `None` when no repetition was wholly performed.
pub fn of_run(run: &Run) -> Option<Finding> {
    FINDERS.iter().find_map(|find| find(run))
}

/// The primary and the headline metrics that the experiment declares.
fn declared(run: &Run) -> Option<Finding> {
    let experiment = run.header.experiment.declaration();
    let mut list = vec![Figure::of(run, experiment.primary()?)?];
    list.extend(figures(run, experiment.headline()));
    Some(Finding::new(run, What::Declared, list, vec![Evidence::Metrics]))
}

/// How much what spoils a run matters at most.
pub fn severity(run: &Run) -> Severity {
    let failed = run.repetitions.iter().any(|r| r.outcome != Outcome::Done);
    let warned =
        run.repetitions.iter().flat_map(|r| &r.observations.notes).any(|n| n.level == NoteLevel::Warning);
    match (failed, warned) {
        (true, _) => Severity::Failure,
        (_, true) => Severity::Warning,
        _ => Severity::Info,
    }
}

/// Every run of an experiment against the first one of it.
fn compared(runs: &[&Run]) -> Vec<Comparison> {
    let performed: Vec<&Run> = runs.iter().copied().filter(|run| run.done().next().is_some()).collect();
    // A program on models, which take no time, is compared in a table of its own.
    let timed = |group: &&Vec<&Run>| {
        let program = group[0].header.experiment.parameters::<Command>().is_some();
        !program || !group.iter().any(|run| crate::is_deterministic(run))
    };
    groups(&performed).iter().filter(timed).flat_map(|group| against_first(group, &[])).collect()
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
    let mut warnings: Vec<(&Run, &str, Vec<String>)> = Vec::new();
    for &run in runs {
        for note in run.repetitions.iter().flat_map(|r| &r.observations.notes) {
            if note.level != NoteLevel::Warning {
                continue;
            }
            let name = &run.header.name;
            match warnings.iter_mut().find(|(_, text, _)| *text == note.text) {
                Some((_, _, names)) if names.contains(name) => {}
                Some((_, _, names)) => names.push(name.clone()),
                None => warnings.push((run, &note.text, vec![name.clone()])),
            }
        }
    }
    list.extend(warnings.into_iter().map(|(run, text, runs)| {
        let what = What::Warning { text: text.to_owned(), runs };
        let found = Finding::new(run, what, Vec::new(), vec![Evidence::Note]);
        Finding { severity: Severity::Warning, ..found }
    }));
    list
}

/// Those of these metrics that the run measured.
fn figures(run: &Run, metrics: &[MetricId]) -> Vec<Figure> {
    metrics.iter().filter_map(|&metric| Figure::of(run, metric)).collect()
}

/// The first one of this table.
fn table(run: &Run, table: TableId) -> Option<&Table> {
    run.done().find_map(|r| r.observations.table(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runs::run;
    use pagelab_experiment::{Experiment, metrics};

    /// Of an experiment that has no finding of its own.
    #[test]
    fn declared_metrics_are_a_finding_the_primary_first() {
        let figures: crate::test_runs::Figures =
            &[("ksm.sharing", &[9.0]), ("faults.major", &[1.0]), ("ksm.cpu", &[5.0])];
        let ksm = run("k", Experiment::Ksm(Default::default()), "host", figures);
        let names: Vec<String> = declared(&ksm).unwrap().figures.into_iter().map(|f| f.name).collect();
        assert_eq!(names, [metrics::KSM_CPU, metrics::KSM_SHARING].map(|metric| metric.name));
        let without = run("k", Experiment::Ksm(Default::default()), "host", &figures[..2]);
        assert_eq!(declared(&without), None, "nothing without the primary one");
    }
}
