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
pub const SAME: &[&str] = &[
    environment::PAGE_SIZE,
    environment::CPU_MODEL,
    environment::CPU_COUNT,
    environment::MEMORY_TOTAL,
    environment::CLOCK_SOURCE,
    environment::GUEST_QEMU,
];

/// Entries that must agree unless the user asked for the difference, with the word that the name of a condition
/// which asks for it contains. A kernel chooses them itself, by its version and by how much memory it finds.
pub const SAME_UNLESS_ASKED: &[(&str, &str)] = &[
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
    let asked = |word: &str| is_asked(baseline, word) || is_asked(other, word);
    let unasked = SAME_UNLESS_ASKED.iter().filter(|(_, word)| !asked(word)).map(|(key, _)| key);
    for key in SAME.iter().chain(unasked) {
        if let (Some(a), Some(b)) = (entry(baseline, key), entry(other, key))
            && a != b
        {
            list.push(Caveat::Environment(key, a.to_owned(), b.to_owned()));
        }
    }
    // Figures of a deterministic run, and counts of instructions, do not depend on the time of the
    // run.
    let counted = counts_instructions(baseline) && counts_instructions(other);
    let varies = matches!(test, Test::Ranks | Test::Pairs) && !counted;
    if varies && baseline.header.batch != other.header.batch {
        list.push(Caveat::NotInterleaved);
    }
    list.extend([baseline, other].into_iter().flat_map(of_run));
    if lines.iter().any(|line| metrics::TIME_ELAPSED == *line.name) {
        list.extend([baseline, other].into_iter().filter_map(drift_of));
    }
    list
}

/// An entry of the run's environment, from the first complete repetition that has it.
pub fn entry<'a>(run: &'a Run, key: &str) -> Option<&'a str> {
    run.done().find_map(|r| r.observations.environment.get(key)).map(String::as_str)
}

/// Whether the user requested a condition whose name contains `word`.
pub fn is_asked(run: &Run, word: &str) -> bool {
    run.header.conditions.iter().any(|c| c.origin == Origin::Asked && c.name.contains(word))
}

/// The caveats that apply to every comparison with this run.
pub fn of_run(run: &Run) -> Vec<Caveat> {
    let most = |key: &str| {
        run.done()
            .filter_map(move |r| r.observations.environment.get(key)?.parse::<f64>().ok())
            .fold(f64::NAN, f64::max)
    };
    let (steal, load, processors) =
        (most(environment::STEAL_SHARE), most(environment::LOAD_1MIN), most(environment::CPU_COUNT));
    let name = &run.header.name;
    let mut list = Vec::new();
    if let Some(reason) =
        entry(run, environment::CLOCK_VERDICT).and_then(|word| word.strip_prefix("suspect: "))
    {
        list.push(Caveat::Clock(name.clone(), reason.to_owned()));
    }
    if steal > STEAL {
        list.push(Caveat::Steal(name.clone(), steal));
    }
    if load > processors {
        list.push(Caveat::Busy(name.clone(), load, processors));
    }
    list
}

/// The caveat about every comparison of this run's elapsed time: a drift over the repetitions.
pub fn drift_of(run: &Run) -> Option<Caveat> {
    let (_, p) = drift(&run.values(metrics::TIME_ELAPSED))?;
    // One test among many: stricter than 5%.
    (p < 0.01).then(|| Caveat::Drift(run.header.name.clone(), metrics::TIME_ELAPSED.name.to_owned()))
}
