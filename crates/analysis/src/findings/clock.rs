//! Findings on the machine's clocks.

use pagelab_experiment::Run;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{metrics, tables};

use super::figures;
use crate::finding::{Evidence, Finding, Severity, What};

/// How far the clocks part.
pub fn agreement(run: &Run) -> Option<Finding> {
    let verdicts = run.values(metrics::CLOCK_AGREEMENT);
    let trusted = !verdicts.is_empty() && verdicts.iter().all(|&v| v == 1.0);
    let names = [
        metrics::CLOCK_STEP_WORST,
        metrics::CLOCK_DRIFT_WORST,
        metrics::CLOCK_SKEW_BOUND,
        metrics::CLOCK_STEAL,
    ];
    let evidence = vec![Evidence::Metrics, Evidence::Table(tables::clock::TABLE)];
    let found = Finding::new(run, What::ClockAgreement { trusted }, figures(run, &names), evidence);
    let severity = if trusted { Severity::Info } else { Severity::Warning };
    (!verdicts.is_empty()).then_some(Finding { severity, ..found })
}

/// What runs of `clock` say in a word for the environment of others (`clock.verdict`).
pub fn verdict(runs: &[Run]) -> String {
    let notes = runs.iter().flat_map(|run| run.done()).flat_map(|r| &r.observations.notes);
    let reason = notes.filter(|n| n.level == Level::Warning).map(|n| n.text.as_str()).next();
    let measured = runs.iter().any(|run| !run.values(metrics::CLOCK_AGREEMENT).is_empty());
    match (measured, reason) {
        (false, _) => "not measured".to_owned(),
        (true, None) => "true".to_owned(),
        (true, Some(reason)) => format!("suspect: {reason}"),
    }
}
