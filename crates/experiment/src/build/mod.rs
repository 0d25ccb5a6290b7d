//! The builders of observations, shared by every target: tables, windows, distributions, and the figures
//! that are derived from them. A live run and a modelled one derive a figure by the same function, so the
//! two compare.

mod access;
mod curve;
mod distribution;
mod estimate;
mod evictions;
mod faultscale;
mod fileread;
mod latency;
mod sheet;
mod vmtest;
mod windows;

use crate::failure::Failure;
use crate::metrics::MetricId;
pub use crate::metrics::median;
use crate::observation::{Level, Note, Observation};
use crate::recorder::Recorder;
use crate::warnings::Warning;

pub use access::{HIT, KINDS, MAJOR, MINOR, access_metrics};
pub use curve::{Point, curve, page_size_of};
pub use distribution::{Distribution, merged};
pub use estimate::{Estimate, estimate, left_out};
pub use evictions::{EvictionLog, Evictor};
pub use faultscale::throughputs;
pub use fileread::{ReadCosts, case_names};
pub use latency::{Geometry, Loads, SHARED_CACHE, latencies, loads};
pub use sheet::Sheet;
pub use vmtest::speeds;
pub use windows::{Window, Windows};

/// A figure of a metric; `None`: not measured.
pub type Figure = (MetricId, Option<f64>);

/// Records a figure; `None`: not measured.
///
/// # Errors
/// When it cannot be kept.
pub fn metric(recorder: &mut dyn Recorder, metric: MetricId, value: Option<f64>) -> Result<(), Failure> {
    Ok(recorder.observe(Observation::Metric(metric.figure(value)))?)
}

/// Records several figures.
///
/// # Errors
/// When they cannot be kept.
pub fn metrics(
    recorder: &mut dyn Recorder,
    figures: impl IntoIterator<Item = Figure>,
) -> Result<(), Failure> {
    figures.into_iter().try_for_each(|(of, value)| metric(recorder, of, value))
}

/// Records a remark.
///
/// # Errors
/// When it cannot be kept.
pub fn note(recorder: &mut dyn Recorder, level: Level, text: impl Into<String>) -> Result<(), Failure> {
    Ok(recorder.observe(Observation::Note(Note { level, text: text.into() }))?)
}

/// Records a warning in words that contain those of its declaration.
///
/// # Errors
/// When it cannot be kept.
pub fn warn(recorder: &mut dyn Recorder, (words, _): Warning, text: String) -> Result<(), Failure> {
    debug_assert!(text.contains(words), "{text}");
    note(recorder, Level::Warning, text)
}
