//! What is asked of a study, and what its code gives.

use std::sync::LazyLock;

use pagelab_analysis::figure::{Bars, Plot, Table};
use pagelab_experiment::Run;
use pagelab_model::parameter::{Declared, Form, Parts, Value};

use crate::book::{At, ModelFigure};
use crate::study::Parameter;

/// What can be asked of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Every random choice of a model follows from this.
    pub seed: u64,
    /// The rows to fit parameters with, by number from 1, where a study fits any
    /// (`dillon-2011`); the others are held out and predicted. None: the study's own choice.
    pub fit: Option<Vec<usize>>,
    /// Runs on a kernel that runs, the oldest first: a study takes the newest of each of its experiments.
    pub here: Vec<Run>,
    /// Whether to make the runs that only tables and plots of the study need.
    pub in_full: bool,
    /// The model as it is, or with something changed.
    pub change: Change,
    /// Values for the study's parameters, by name and in the parameter's unit.
    pub set: Vec<(String, f64)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, fit: None, here: Vec::new(), in_full: true, change: Change::None, set: Vec::new() }
    }
}

/// A change of a study's model.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The model as it is.
    None,
    /// An ablation of the study's file of claims.
    Without(String),
    /// Another value of one of its assumptions.
    With(String, f64),
    /// So many times one of its fitted constants.
    Scaled(&'static str, f64),
}

impl Options {
    /// Whether this ablation is asked for.
    pub(crate) fn without(&self, ablation: &str) -> bool {
        matches!(&self.change, Change::Without(name) if name == ablation)
    }

    /// Sets the parameters of a model to the requested values.
    pub(crate) fn apply(&self, mut parts: Parts) {
        for (name, value) in &self.set {
            parts.set(name, Value::Number(*value));
        }
        match &self.change {
            Change::None | Change::Without(_) => {}
            Change::With(name, value) => {
                parts.set(name, Value::Number(*value));
            }
            Change::Scaled(name, factor) => {
                let declared = parts.declared().into_iter().find(|declared| declared.name == *name);
                if let Some(value) = declared.and_then(|declared| scaled(&declared, *factor)) {
                    parts.set(name, Value::Number(value));
                }
            }
        }
    }

    /// The options without any change.
    pub(crate) fn unchanged(&self) -> Self {
        Self { change: Change::None, set: Vec::new(), ..self.clone() }
    }
}

/// A parameter's value times `factor`; a count changes by at least one.
fn scaled(declared: &Declared, factor: f64) -> Option<f64> {
    let usual = declared.value.number()?;
    let found = usual * factor;
    if declared.form != Form::Whole || found == usual {
        return Some(found);
    }
    let step = (found - usual).abs().round().max(1.0);
    Some(if found < usual { (usual - step).max(0.0) } else { usual + step })
}

/// A run of a model, made when its result is first needed. The sensitivity to a fitted constant needs
/// the runs of few claims.
pub(crate) type Later<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// Defers `run` until its result is needed.
pub(crate) fn later<T>(run: impl FnOnce() -> T + Send + 'static) -> Later<T> {
    LazyLock::new(Box::new(run))
}

/// What a model says to each claim.
pub(crate) type Answers = Box<dyn Fn(At) -> Option<ModelFigure>>;

/// What a study shows besides its claims.
pub(crate) struct Shown {
    pub parameters: Vec<Parameter>,
    pub here: Table,
    pub tables: Vec<Table>,
    pub bars: Vec<Bars>,
    pub plots: Vec<Plot>,
    /// How many of the plots the page opens with.
    pub opening: usize,
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use pagelab_model::parameter::Parameter;
    use pagelab_model::parameter_table;

    use super::*;

    const COUNT: &[Parameter<Count>] = parameter_table! {
        whole "c" "" [0.0, 1000.0] "a count", assumed("so"), (0);
    };

    struct Count(u32);

    #[test]
    fn a_count_changes_by_one_at_least() {
        let count = |factor: f64, usual: u32| {
            let mut count = Count(usual);
            let change = Change::Scaled("c", factor);
            Options { change, ..Options::default() }.apply(Parts::default().and(COUNT, &mut count));
            count.0
        };
        assert_eq!((count(0.9, 33), count(1.1, 33)), (30, 36));
        assert_eq!((count(0.9, 4), count(1.1, 4), count(1.0, 4)), (3, 5, 4));
    }
}
