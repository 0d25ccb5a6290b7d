//! Denning's working set of a stream over time.

use anyhow::Result;
use pagelab_model::mrc::wss::{self, WorkingSetSizes};
use pagelab_reference::trace::Reading;

use crate::cost::Cost;
use crate::{Source, Watch};

/// What the working set of a stream takes beside it.
const WORK: Cost = Cost { page: 8, reference: 0 };

/// Windows, and rows, of a stream where no other number is asked for.
pub const POINTS: usize = 50;

/// The working set of a window of references (without one: a [`POINTS`]th of the stream), noted
/// every `step` (the same); how a trace was read.
///
/// # Errors
/// When the stream cannot be had, or takes too much memory.
pub fn working_set(
    source: &Source,
    window: Option<usize>,
    step: Option<usize>,
    watch: &dyn Watch,
) -> Result<(WorkingSetSizes, Option<Reading>)> {
    let loaded = source.load(&WORK, watch)?;
    let usual = (loaded.references.len() / POINTS).max(1);
    let (window, step) = (window.unwrap_or(usual), step.unwrap_or(usual));
    Ok((wss::working_set(loaded.pages, &loaded.references, window, step), loaded.reading))
}
