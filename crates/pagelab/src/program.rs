//! The recording of a program that models play beside the kernel: read where there is one, else made first.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, anyhow};
use pagelab_experiment::experiments::Load;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, TargetSpec, words};
use pagelab_live::harness::tracer::{Selection, Streams};
use pagelab_reference::trace::recorded;
use pagelab_report::text;

use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::output::remark;
use crate::tracing::{self, Order};

/// Loads, stores and fetches, of pages of 4096 bytes.
const SELECTION: Selection = Selection { shift: 12, kinds: 0b111 };

/// What is to be recorded, or was.
pub struct Recording {
    program: Vec<OsString>,
    path: PathBuf,
    allow_failure: bool,
}

impl Recording {
    /// What `experiment` needs on `targets`: of `command` on a model a recording, whose file it names from now on.
    ///
    /// # Errors
    /// When a recording is named and no model plays it.
    pub fn wanted(experiment: &mut Experiment, targets: &[TargetSpec]) -> Result<Option<Self>> {
        let mut command = match experiment.declaration().load() {
            Load::Program(command) => command.clone(),
            _ => return Ok(None),
        };
        if !targets.iter().any(|target| matches!(target.kind, TargetKind::Model(_))) {
            return match command.trace {
                Some(_) => Err(usage(
                    "--trace: only simulators use a recording\nhint: add one, such as --on model:lru",
                )),
                None => Ok(None),
            };
        }
        let program = words::unescaped_all(&command.program);
        let usual = || program.first().map(|name| tracing::usual_path(name));
        let Some(path) = command.trace.clone().or_else(usual) else { return Ok(None) };
        command.trace = Some(path.clone());
        let allow_failure = command.allow_failure;
        *experiment = Experiment::Command(command);
        Ok(Some(Self { program, path, allow_failure }))
    }

    /// Makes the recording where it is not there.
    ///
    /// # Errors
    /// When what is there is another program's or older than its files, and when the program cannot be recorded or fails.
    pub fn make(&self, context: &Context) -> Result<()> {
        let path = &self.path;
        if path.exists() {
            self.check()?;
            if !context.quiet {
                remark!("simulators use the existing recording {}", path.display());
            }
            return Ok(());
        }
        if !context.quiet {
            remark!(
                "recording {} under QEMU into {}, once",
                self.program[0].to_string_lossy(),
                path.display()
            );
        }
        let order = Order {
            program: &self.program,
            path,
            force: false,
            selection: SELECTION,
            streams: Streams::Nothing,
            window: None,
        };
        let recorded = tracing::record(&order)?;
        let failed = !recorded.status.success() && !self.allow_failure;
        if recorded.interrupted || failed {
            // It is not of the whole program.
            let _ = std::fs::remove_file(path);
        }
        if recorded.interrupted {
            return Err(CommandError::Stopped.into());
        }
        if failed {
            return Err(anyhow!(
                "{} ended with {} while it was recorded (its input is empty)\nhint: --allow-failure accepts that",
                self.program[0].to_string_lossy(),
                recorded.ending.status
            ));
        }
        if !context.quiet {
            remark!(
                "{}: {} references to {} pages, {} in {}",
                path.display(),
                text::count(recorded.ending.references() as f64),
                text::count(recorded.units as f64),
                text::bytes(recorded.bytes as f64),
                text::duration(recorded.elapsed.as_nanos() as f64)
            );
        }
        Ok(())
    }

    /// Whether the recording that is there is of this program, and newer than the files that it names.
    fn check(&self) -> Result<()> {
        let path = &self.path;
        let shown = path.display();
        let remedy = "name another file with --trace: pagelab records it if it does not exist";
        let ends = recorded::ends(path).with_context(|| format!("{shown}"))?;
        let Some((heading, _)) = ends else {
            return Err(anyhow!("{shown} is not a complete recording of pagelab trace\nhint: {remedy}"));
        };
        if heading.program != tracing::words_of(&self.program) {
            return Err(anyhow!("{shown} is a recording of '{}'\nhint: {remedy}", heading.program.join(" ")));
        }
        let changed = |path: &Path| -> Option<SystemTime> { std::fs::metadata(path).ok()?.modified().ok() };
        let recorded = changed(path);
        let newer =
            self.program.iter().find(|word| changed(Path::new(word)).is_some_and(|at| Some(at) > recorded));
        match newer {
            Some(file) => Err(anyhow!(
                "{} was changed after {shown} was recorded\nhint: {remedy}",
                file.to_string_lossy()
            )),
            None => Ok(()),
        }
    }
}
