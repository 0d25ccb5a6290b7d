//! Repeats a load to count kernel functions and to profile the kernel. Both slow the load, so the
//! figures of the repetition are not kept.

use pagelab_experiment::{Recorder, Result, Setting};

use crate::harness::context::ExecutionContext;
use crate::harness::{operations, phase, profile};

/// Runs `load` once more for each of `--functions` and `--profile` that `setting` has.
///
/// # Errors
/// Those of the load, and when nothing can be counted or sampled.
pub fn repeat(
    setting: &Setting,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
    mut load: impl FnMut(&mut dyn Recorder) -> Result<()>,
) -> Result<()> {
    if setting.functions {
        operations::count(true, recorder, &mut load)?;
    }
    match setting.profile.unwrap_or(0) {
        0 => Ok(()),
        frequency => {
            // At the same moment in all repetitions, so that they have the same samples.
            phase::wait(context.repetition.map(|_| 0));
            profile::take(frequency, true, recorder, |_, recorder| load(recorder))
        }
    }
}
