//! Runs as they are kept: one experiment on one target under one setting, with its repetitions.

use serde::{Deserialize, Serialize};

use crate::experiments::Experiment;
use crate::failure::Failure;
use crate::metrics::MetricId;
use crate::observation::Observations;
use crate::plan::Condition;
use crate::setting::Setting;
use crate::target::TargetSpec;

/// What identifies a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// The run's name, unique in its notebook.
    pub name: String,
    /// Groups the runs of one command, which were interleaved: any text, the same for all of them.
    pub batch: String,
    /// What was done.
    pub experiment: Experiment,
    /// What it was done to.
    pub target: TargetSpec,
    /// Under which conditions: those that were in force.
    pub setting: Setting,
    /// Every condition in force and where it came from; empty in notebooks of before they were
    /// kept.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// Whether every repetition gives the same figures.
    #[serde(default)]
    pub deterministic: bool,
    /// When the run began: RFC 3339, UTC.
    pub started: String,
    /// The version of pagelab that performed it.
    pub pagelab: String,
}

impl RunHeader {
    /// The name of the run's series: experiment, target and conditions. It is the same for every
    /// kernel image and every version of pagelab.
    pub fn series(&self) -> String {
        let setting = self.setting.to_string();
        let comma = if setting.is_empty() { "" } else { ", " };
        format!("{:#} on {}{comma}{setting}", self.experiment, self.target.machine())
    }
}

/// How a repetition ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "kebab-case")]
pub enum Outcome {
    /// Wholly performed.
    Done,
    /// Ended by the user.
    Interrupted,
    /// Could not be performed; why.
    Failed(Failure),
    /// Never reported an end: pagelab or the machine was killed.
    Torn,
}

/// One performance of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Its number within the run, from 1.
    pub number: u32,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What was seen.
    pub observations: Observations,
}

/// A run with everything that was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The notebook's number for it.
    pub id: i64,
    /// What identifies it.
    pub header: RunHeader,
    /// The repetitions, in order.
    pub repetitions: Vec<Repetition>,
}

impl Run {
    /// The repetitions that were wholly performed: those that count.
    pub fn done(&self) -> impl Iterator<Item = &Repetition> {
        self.repetitions.iter().filter(|r| r.outcome == Outcome::Done)
    }

    /// The values of a metric over the repetitions that count, in order; unmeasured ones left out.
    pub fn values(&self, metric: MetricId) -> Vec<f64> {
        self.values_named(metric.name)
    }

    /// The same by a stored name, which need not be a declared one.
    pub fn values_named(&self, name: &str) -> Vec<f64> {
        self.done().filter_map(|r| r.observations.metric_named(name)).collect()
    }
}
