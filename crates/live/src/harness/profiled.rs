//! The load once more for what is to be seen of the kernel: with counted functions, and with a
//! profile. Both slow it, so it is not the load whose figures are kept.

use pagelab_experiment::{Recorder, Result, Setting};

use crate::harness::context::ExecutionContext;
use crate::harness::{operations, phase, profile};

/// Performs `load` once for each that `setting` asks for.
///
/// # Errors
/// Those of the load, and when nothing can be counted or sampled.
pub fn look(
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
            // Of all repetitions at the same moment: they have the same samples.
            phase::wait(context.repetition.map(|_| 0));
            profile::take(frequency, true, recorder, |_, recorder| load(recorder))
        }
    }
}
