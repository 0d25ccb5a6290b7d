//! Where in the system an experiment is performed: its limit, its scratch file, and what is known
//! of both.

use pagelab_experiment::environment::MEMORY_LIMIT;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Once;

use pagelab_experiment::{Failure, Recorder, Result};
use pagelab_kernel::cgroup::Group;
use pagelab_kernel::content::Filler;
use pagelab_kernel::hierarchy;
use pagelab_kernel::mappings::forbid_huge_pages;
use pagelab_kernel::region;
use pagelab_kernel::root::Root;
use serde::{Deserialize, Serialize};

use crate::harness::environment::Entries;
use crate::harness::failure::failed;

/// Where an experiment is performed. Everything absent: the whole machine, as in a guest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExecutionContext {
    /// The file that experiments write, map and read.
    pub scratch: Option<PathBuf>,
    /// The cgroup that bounds the load; joined with [`ExecutionContext::join`] before the load
    /// begins.
    pub cgroup: Option<PathBuf>,
    /// The cgroup's `memory.stat`.
    pub memory_stat: Option<PathBuf>,
    /// The `memory.pressure` of the cgroup, or of one of version 2 with the same tasks.
    pub memory_pressure: Option<PathBuf>,
    /// The number of this repetition, where it decides the moment at which measurements begin.
    #[serde(default)]
    pub repetition: Option<u32>,
    /// The number of the run's own zram device.
    #[serde(default)]
    pub zram: Option<u32>,
    /// The disk on which to tell the addresses of a load that the machine traces.
    #[serde(default)]
    pub tracing_disk: Option<PathBuf>,
    /// Whether it is traced, 0 or 1: what is handed on is as long either way, and so is what that
    /// takes.
    #[serde(default)]
    pub traced: u8,
    /// The folder that is the root of what the user's programs see, in a guest that has brought
    /// some.
    #[serde(default)]
    pub root: Option<Root>,
    /// What whoever made the place knows about it: environment entries that go before the
    /// machine's own, such as `memory.limit` and `swap.kind`.
    pub environment: Entries,
}

/// The memory cgroup outside of a load's limit.
pub(crate) struct Outside(Option<PathBuf>);

impl Outside {
    /// Moves the calling process into it, so that a large result is not charged to the limit. A
    /// process that may not move stays where it is.
    pub(crate) fn enter(&self) {
        if let Some(path) = &self.0 {
            let _ = Group::new(path).join();
        }
    }
}

impl ExecutionContext {
    /// Moves the calling process into the place's cgroup: what it allocates from now on is bounded,
    /// what it has already is not.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn join(&self) -> Result<()> {
        static OWN_MEMORY: Once = Once::new();
        let observer = self.memory_pressure.as_deref().and_then(Path::parent);
        let cgroup = self.cgroup.as_deref();
        if cgroup.is_some() {
            // Without this advice khugepaged may collapse it later, and charge it to the limit.
            OWN_MEMORY.call_once(|| drop(forbid_huge_pages()));
        }
        for path in cgroup.into_iter().chain(observer.filter(|path| cgroup.is_some_and(|own| own != *path))) {
            Group::new(path)
                .join()
                .map_err(|e| Failure::system(format!("joining the cgroup {}", path.display()), &e))?;
        }
        Ok(())
    }

    /// The memory cgroup that the calling process is in, to go back to with [`Outside::enter`] when
    /// the load is over; none if the load has no cgroup.
    pub(crate) fn outside(&self) -> Outside {
        Outside(self.cgroup.as_ref().and_then(|_| hierarchy::memory_of(std::process::id())))
    }

    /// The cgroup that bounds the load.
    pub(crate) fn group(&self) -> Option<Group<'_>> {
        self.cgroup.as_deref().map(Group::new)
    }

    /// The path of the scratch file, which `experiment` cannot do without.
    ///
    /// # Errors
    /// When there is nowhere to write one.
    pub(crate) fn scratch(&self, experiment: &str) -> Result<&Path> {
        self.scratch.as_deref().ok_or_else(|| {
            Failure::unsupported(
                format!("{experiment} has nowhere to write its file"),
                "give the target a folder for scratch files",
            )
        })
    }

    /// The scratch file, made of `pages` pages as they usually are, on disk and out of the page
    /// cache.
    ///
    /// # Errors
    /// When there is nowhere to write it, or the disk is full.
    pub(crate) fn write_scratch(
        &self,
        experiment: &str,
        pages: usize,
        recorder: &mut dyn Recorder,
    ) -> Result<File> {
        self.write_filled(experiment, pages, &Filler::default(), recorder)
    }

    /// The same of pages that `filler` fills.
    ///
    /// # Errors
    /// When there is nowhere to write it, or the disk is full.
    pub(crate) fn write_filled(
        &self,
        experiment: &str,
        pages: usize,
        filler: &Filler,
        recorder: &mut dyn Recorder,
    ) -> Result<File> {
        let path = self.scratch(experiment)?;
        let written =
            region::write_file(path, pages, filler, |done, of| recorder.progress("write", done, of));
        written.map_err(failed(&format!("writing {pages} pages to {}", path.display())))
    }

    /// The limit in force, bytes.
    pub fn limit(&self) -> Option<u64> {
        self.environment.get(MEMORY_LIMIT).and_then(|limit| limit.parse().ok())
    }
}
