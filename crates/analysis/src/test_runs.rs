//! Runs made up for the tests of this crate.

use pagelab_experiment::observation::Observations;
use pagelab_experiment::{Experiment, MetricId, Outcome, Repetition, Run, RunHeader, Setting};

/// Metrics by name, a value for each repetition.
pub type Figures<'a> = &'a [(&'a str, &'a [f64])];

fn declared(name: &str) -> MetricId {
    MetricId::find(name).expect("a declared metric")
}

/// A run on `target` whose repetitions measured these figures.
pub fn run(name: &str, experiment: Experiment, target: &str, metrics: Figures) -> Run {
    let count = metrics.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let repetition = |n: usize| Repetition {
        number: n as u32 + 1,
        started: String::new(),
        outcome: Outcome::Done,
        observations: Observations {
            metrics: metrics
                .iter()
                .map(|(name, values)| declared(name).figure(values.get(n).copied()))
                .collect(),
            ..Observations::default()
        },
    };
    Run {
        id: 1,
        header: RunHeader {
            name: name.into(),
            batch: "b".into(),
            experiment,
            target: target.parse().expect("a target"),
            setting: Setting::default(),
            conditions: Vec::new(),
            deterministic: target.starts_with("model:"),
            started: String::new(),
            pagelab: String::new(),
        },
        repetitions: (0..count).map(repetition).collect(),
    }
}
