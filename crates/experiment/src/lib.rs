//! The vocabulary that every other crate shares: what an experiment is, what it is done to, and
//! what is seen.
//!
//! - An [`Experiment`] is what is done, with typed parameters and no platform code.
//! - A [`TargetSpec`] names what it is done to; a [`Target`] does it.
//! - An [`Observation`] is what was seen; a [`Recorder`] takes observations as they come.
//! - A [`Run`] is one experiment on one target under one [`Setting`], with its repetitions.
//!
//! [`build`] has the builders of observations that all targets share. Nothing here measures or prints.

mod as_text;
pub mod build;
pub mod catalogue;
pub mod counters;
pub mod declaration;
pub mod environment;
pub mod experiments;
pub mod failure;
pub mod glossary;
pub mod memory;
pub mod metrics;
pub mod observation;
pub mod packed;
pub mod plan;
pub mod record;
pub mod recorder;
pub mod setting;
pub mod size;
pub mod sizes;
pub mod tables;
pub mod target;
pub mod unit;
pub mod warnings;
pub mod words;

pub use experiments::Experiment;
pub use failure::{Failure, FailureKind, RecorderError, Result};
pub use metrics::MetricId;
pub use observation::{Observation, Observations};
pub use plan::{Condition, Origin, Performer, Plan, Request, Unsupported, What};
pub use record::{Outcome, Repetition, Run, RunHeader};
pub use recorder::Recorder;
pub use setting::Setting;
pub use size::Size;
pub use sizes::Sizes;
pub use tables::{ColumnId, TableId};
pub use target::{Target, TargetSpec};
