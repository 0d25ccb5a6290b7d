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

use pagelab_experiment::observation::{Level as NoteLevel, Table};
use pagelab_experiment::{Experiment, FailureKind, Outcome, Run};

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

/// The main finding of one run; `None` when no repetition was wholly performed.
pub fn of_run(run: &Run) -> Option<Finding> {
    match &run.header.experiment {
        Experiment::Mapanon(paging) | Experiment::Mapfile(paging) => mapping::access_time(run, paging),
        Experiment::Vmtest(_) => reads::read_time(run),
        Experiment::Forkstorm(parameters) => processes::fork_rate(run, parameters),
        Experiment::Faultscale(parameters) => processes::scaling(run, parameters),
        Experiment::Fileread(_) => reads::file_reads(run),
        Experiment::Seqread(_) => reads::sequential_reads(run),
        Experiment::Latency(_) => reads::latencies(run),
        Experiment::Unmap(_) | Experiment::Mremap(_) | Experiment::Populate(_) => reads::operations(run),
        Experiment::Neighbour(_) => reads::neighbour(run),
        Experiment::Bandwidth(_) => memory::bandwidth(run),
        Experiment::Ksm(_) => memory::merging(run),
        Experiment::Tier(_) => memory::tiers(run),
        Experiment::Oom(_) => shortage::kills(run),
        Experiment::Reclaim(reclaim) => shortage::reclaimed(run, reclaim.by),
        Experiment::Fragment(_) => shortage::huge_pages(run),
        Experiment::Clock(_) => clock::agreement(run),
        Experiment::Command(parameters) => processes::program(run, parameters),
        Experiment::Record(_) => processes::recording(run),
        Experiment::Trace(tracing) => programs::recorded(run, tracing),
        Experiment::Replay(curve) | Experiment::Mrc(curve) => streams::misses(run, curve),
        Experiment::Wss(of) => streams::working_set(run, of),
    }
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
        let program = matches!(group[0].header.experiment, Experiment::Command(_));
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

/// The metrics of these names that the run measured.
fn figures(run: &Run, names: &[&str]) -> Vec<Figure> {
    names.iter().filter_map(|name| Figure::of(run, name)).collect()
}

/// The first table of this name.
fn table<'a>(run: &'a Run, name: &str) -> Option<&'a Table> {
    run.done().find_map(|r| r.observations.table(name))
}
