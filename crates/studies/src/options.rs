//! What is asked of a study, and what its code gives.

use pagelab_analysis::figure::{Bars, Plot, Table};
use pagelab_experiment::Run;

use crate::book::{At, ModelFigure};
use crate::claim::Parameter;

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
    /// The model as it is, or with something changed.
    pub change: Change,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, fit: None, here: Vec::new(), change: Change::None }
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

    /// The value of an assumption: the one asked for, else `usual`.
    pub(crate) fn assumed(&self, assumption: &str, usual: f64) -> f64 {
        match &self.change {
            Change::With(name, value) if name == assumption => *value,
            _ => usual,
        }
    }

    /// The value of a fitted constant: `usual`, or so many times that.
    pub(crate) fn fitted(&self, constant: &str, usual: f64) -> f64 {
        match self.change {
            Change::Scaled(name, factor) if name == constant => usual * factor,
            _ => usual,
        }
    }

    /// The same of a count, which changes by one at least.
    pub(crate) fn fitted_count(&self, constant: &str, usual: u32) -> u32 {
        let found = self.fitted(constant, f64::from(usual));
        let step = (found - f64::from(usual)).abs().round().max(1.0);
        match found.total_cmp(&f64::from(usual)) {
            std::cmp::Ordering::Less => usual.saturating_sub(step as u32),
            std::cmp::Ordering::Equal => usual,
            std::cmp::Ordering::Greater => usual + step as u32,
        }
    }
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
    use super::*;

    #[test]
    fn a_count_changes_by_one_at_least() {
        let count = |factor: f64, usual: u32| {
            let change = Change::Scaled("c", factor);
            Options { change, ..Options::default() }.fitted_count("c", usual)
        };
        assert_eq!((count(0.9, 33), count(1.1, 33)), (30, 36));
        assert_eq!((count(0.9, 4), count(1.1, 4)), (3, 5));
        assert_eq!(Options::default().fitted_count("c", 4), 4);
    }
}
