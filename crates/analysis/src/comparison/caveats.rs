//! What spoils a comparison.

use pagelab_experiment::environment;
use pagelab_experiment::metrics;
use pagelab_experiment::setting::names;
use pagelab_experiment::{Origin, Run};

use super::line::{Line, unit_of};
use super::test::Test;
use crate::counts_instructions;
use crate::stats::drift;

/// What spoils a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Caveat {
    /// The experiments differ: the baseline's and the other's command line.
    Experiments(String, String),
    /// One side has its times in instructions; they are left out.
    Units,
    /// The entry of the environment of this name differs: the baseline's and the other's.
    Environment(&'static str, String, String),
    /// The runs were not interleaved.
    NotInterleaved,
    /// The clocks of this run's machine are suspect, for this reason.
    Clock(String, String),
    /// In this run a share of the processors' time was stolen.
    Steal(String, f64),
    /// The machine was busy when this run began: load average and processors.
    Busy(String, f64, f64),
    /// This metric of this run drifts over the repetitions.
    Drift(String, String),
}

/// The environment's entries that must agree for a comparison to be about the setting alone.
const SAME: &[&str] = &[
    environment::PAGE_SIZE,
    environment::CPU_MODEL,
    environment::CPU_COUNT,
    environment::MEMORY_TOTAL,
    environment::CLOCK_SOURCE,
    environment::GUEST_QEMU,
];

/// Entries that must agree unless the user asked for the difference, with the word that the name of a condition
/// which asks for it contains. A kernel chooses them itself, by its version and by how much memory it finds.
const SAME_UNLESS_ASKED: &[(&str, &str)] = &[
    (environment::THP_ENABLED, names::THP),
    (environment::MGLRU_ENABLED, "lru_gen"),
    (environment::SWAP_COMPRESSOR, "comp_algorithm"),
];

/// A share of stolen time from here on spoils a run.
const STEAL: f64 = 0.02;

pub(super) fn caveats(baseline: &Run, other: &Run, lines: &[Line], test: Test) -> Vec<Caveat> {
    let mut list = Vec::new();
    if baseline.header.experiment != other.header.experiment {
        let text = |run: &Run| run.header.experiment.to_string();
        list.push(Caveat::Experiments(text(baseline), text(other)));
    }
    let units = |run: &Run| unit_of(run, metrics::TIME_ELAPSED.name);
    if let (Some(a), Some(b)) = (units(baseline), units(other))
        && a != b
    {
        list.push(Caveat::Units);
    }
    let asked = |word: &str| {
        let conditions = [baseline, other].into_iter().flat_map(|run| &run.header.conditions);
        conditions.filter(|c| c.origin == Origin::Asked).any(|c| c.name.contains(word))
    };
    let unasked = SAME_UNLESS_ASKED.iter().filter(|(_, word)| !asked(word)).map(|(key, _)| key);
    for key in SAME.iter().chain(unasked) {
        let of = |run: &Run| run.done().find_map(|r| r.observations.environment.get(*key).cloned());
        if let (Some(a), Some(b)) = (of(baseline), of(other))
            && a != b
        {
            list.push(Caveat::Environment(key, a, b));
        }
    }
    // Figures of a deterministic run, and counts of instructions, do not depend on the time of the
    // run.
    let counted = counts_instructions(baseline) && counts_instructions(other);
    let varies = matches!(test, Test::Ranks | Test::Pairs) && !counted;
    if varies && baseline.header.batch != other.header.batch {
        list.push(Caveat::NotInterleaved);
    }
    for run in [baseline, other] {
        let entry = |key: &str| {
            run.done()
                .filter_map(move |r| r.observations.environment.get(key)?.parse::<f64>().ok())
                .fold(f64::NAN, f64::max)
        };
        let (steal, load, processors) =
            (entry(environment::STEAL_SHARE), entry(environment::LOAD_1MIN), entry(environment::CPU_COUNT));
        let name = &run.header.name;
        let clock = run.done().find_map(|r| r.observations.environment.get(environment::CLOCK_VERDICT));
        if let Some(reason) = clock.and_then(|word| word.strip_prefix("suspect: ")) {
            list.push(Caveat::Clock(name.clone(), reason.to_owned()));
        }
        if steal > STEAL {
            list.push(Caveat::Steal(name.clone(), steal));
        }
        if load > processors {
            list.push(Caveat::Busy(name.clone(), load, processors));
        }
    }
    for line in lines {
        for (name, values) in [(&baseline.header.name, &line.baseline), (&other.header.name, &line.other)] {
            // One test among many: stricter than 5%.
            if metrics::TIME_ELAPSED == *line.name && drift(values).is_some_and(|(_, p)| p < 0.01) {
                list.push(Caveat::Drift(name.clone(), line.name.clone()));
            }
        }
    }
    list
}
