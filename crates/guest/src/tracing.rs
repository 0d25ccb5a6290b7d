//! What the tracer does in the machine of one repetition, and what becomes of it when the load has been performed.

use std::fs::File;
use std::path::PathBuf;

use pagelab_experiment::experiments::Load;
use pagelab_experiment::{Experiment, Failure, Recorder, Result};
use pagelab_kernel::lifetime::in_memory;
use pagelab_live::harness::tracer;

use crate::image::Image;
use crate::machine;
use crate::options::{Options, Trace};
use crate::recording::Recording;
use crate::traced;

/// The tracer of one machine.
pub struct Tracing {
    plugin: File,
    words: String,
    work: Work,
}

enum Work {
    /// It counts into this file.
    Count(Trace, File),
    /// It writes references.
    Record(Recording),
}

/// The file for the references of `experiment`.
pub fn path(image: &Image, options: &Options, experiment: &Experiment) -> PathBuf {
    let image = image.path.file_name().unwrap_or_default().to_string_lossy();
    options.to.clone().unwrap_or_else(|| format!("{}-{image}.trace", experiment.name()).into())
}

impl Tracing {
    /// Makes what the tracer of a machine needs.
    ///
    /// # Errors
    /// When the tracer is not there, or the file for references is there already.
    pub fn start(trace: Trace, image: &Image, options: &Options, experiment: &Experiment) -> Result<Self> {
        let missing = || {
            Failure::unsupported(
                "the tracer, libpagelab_tracer.so, is not next to pagelab",
                "'make install' installs both; PAGELAB_TRACER names another place",
            )
        };
        let qemu = machine::program(image.machine);
        let version = machine::version(qemu).unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
        let preparing = |e: std::io::Error| Failure::system("preparing the tracer", &e);
        let plugin = tracer::plugin(&tracer::find_tracer().ok_or_else(missing)?, major).map_err(preparing)?;
        let (words, work) = match trace {
            Trace::On => {
                let program = format!("pagelab run {experiment} --on kernel:{}", image.path.display());
                let program = program.split(' ').map(str::to_owned).collect();
                let to = path(image, options, experiment);
                let recording = Recording::start(&to, program, format!("{qemu} version {version}"))?;
                (format!("ring={},machine=on", recording.ring()), Work::Record(recording))
            }
            Trace::Functions | Trace::Cache | Trace::Restored => {
                let counts = in_memory("pagelab-counts").map_err(preparing)?;
                let program = matches!(experiment.declaration().load(), Load::Program(_));
                let more = match (trace, program) {
                    (Trace::Cache, _) => ",caches=on",
                    (_, true) => ",pages=on",
                    _ => "",
                };
                (format!("count={}{more}", tracer::path(&counts)), Work::Count(trace, counts))
            }
        };
        Ok(Self { plugin, words, work })
    }

    /// The plugin, and what it is told.
    pub fn tracer(&self) -> (&File, &str) {
        (&self.plugin, &self.words)
    }

    /// Records what it has seen; `told`: what the guest tells of its addresses.
    ///
    /// # Errors
    /// When it saw nothing, or that cannot be read or kept.
    pub fn finish(self, told: &File, recorder: &mut dyn Recorder) -> Result<()> {
        match self.work {
            Work::Count(trace, counts) => traced::report(trace, &counts, told, recorder),
            Work::Record(recording) => recording.finish(&traced::told_mappings(told)?, recorder),
        }
    }
}
