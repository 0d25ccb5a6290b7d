//! The consoles of guests as files: what `--keep` leaves.

use std::path::PathBuf;

use anyhow::Result;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Run, TargetSpec};

use crate::failure::usage;
use crate::file;
use crate::output::remark;

/// The log that a guest's console is kept as.
const LOG: &str = "console";

/// Refuses to keep consoles where no target has one.
///
/// # Errors
/// A sentence.
pub fn wanted(targets: &[TargetSpec]) -> Result<()> {
    match targets.iter().any(|target| matches!(target.kind, TargetKind::Kernel(_))) {
        true => Ok(()),
        false => Err(usage(
            "--keep: only guests have a console\nhint: add one, such as --on kernel:PATH".to_owned(),
        )),
    }
}

/// Writes the console of every repetition of `runs` to `RUN-REPETITION.console` in the working folder, and says so.
///
/// # Errors
/// When a file cannot be written.
pub fn keep(runs: &[&Run]) -> Result<()> {
    for run in runs {
        for repetition in &run.repetitions {
            for (_, text) in repetition.observations.logs.iter().filter(|(name, _)| name == LOG) {
                let path = PathBuf::from(format!("{}-{}.console", run.header.name, repetition.number));
                file::write(&path, |out| Ok(out.write_all(text.as_bytes())?))?;
                remark!("console kept in {}", path.display());
            }
        }
    }
    Ok(())
}
