//! What becomes of the pages of a mapped file that references write: how much is dirty and under
//! writeback between windows, how long the kernel held the writer up for it (dirty throttling),
//! what fsync(2) takes.
//!
//! Dirty and writeback bytes are the cgroup's (`memory.stat`: `file_dirty` and `file_writeback` of
//! version 2, `dirty` and `writeback` of version 1), else the machine's (`nr_dirty` and
//! `nr_writeback` of /proc/vmstat). Pauses come from the kernel's tracepoint
//! ([`pagelab_kernel::bpf::throttle`]). What was dirtied and written are the growth of `nr_dirtied`
//! and `nr_written`, the whole machine's. Each processor keeps up to 125 of these to itself for a
//! second, unless it is told to give them up (`vm.stat_refresh`, root), as it is before both
//! readings.

use std::fs::File;
use std::path::Path;

use pagelab_experiment::build::{Distribution, Sheet, metrics, note};
use pagelab_experiment::observation::Level;
use pagelab_experiment::tables::writeback;
use pagelab_experiment::{Observation, Recorder, Result, metrics};
use pagelab_kernel::bpf::throttle::{Paused, Throttle};
use pagelab_kernel::files::KernelFile;
use pagelab_kernel::region::page_size;
use pagelab_procfs::value;
use rustix::fs::fsync;

use super::plan::Plan;
use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;

/// The distribution of the times of fsync.
const FSYNC: &str = "fsync";

/// One reading.
#[derive(Clone, Copy, Debug)]
struct Reading {
    reference: u64,
    time: u64,
    dirty: u64,
    writeback: u64,
}

/// Where dirty and writeback bytes are read.
#[derive(Debug)]
struct Source {
    file: KernelFile,
    names: [&'static str; 2],
    /// What a unit of it is.
    bytes: u64,
    whole_machine: bool,
}

impl Source {
    fn open(memory_stat: Option<&Path>) -> Option<Self> {
        let open = |path: &Path, names, bytes, whole_machine| {
            let mut new = Self { file: KernelFile::open(path)?, names, bytes, whole_machine };
            new.read().is_some().then_some(new)
        };
        let vmstat = Path::new("/proc/vmstat");
        memory_stat
            .and_then(|path| {
                open(path, ["file_dirty", "file_writeback"], 1, false)
                    .or_else(|| open(path, ["dirty", "writeback"], 1, false))
            })
            .or_else(|| open(vmstat, ["nr_dirty", "nr_writeback"], page_size() as u64, true))
    }

    /// Dirty and under writeback, bytes.
    fn read(&mut self) -> Option<(u64, u64)> {
        let text = self.file.read()?;
        let of = |name| value(text, name).map(|count| count * self.bytes);
        Some((of(self.names[0])?, of(self.names[1])?))
    }
}

/// Pages that became dirty and that were written since the machine booted.
#[derive(Clone, Copy, Debug)]
struct Flow {
    dirtied: u64,
    written: u64,
}

impl Flow {
    fn read(vmstat: &mut KernelFile) -> Option<Self> {
        // Whoever may not finds them as they are.
        let _ = std::fs::read("/proc/sys/vm/stat_refresh");
        let text = vmstat.read()?;
        Some(Self { dirtied: value(text, "nr_dirtied")?, written: value(text, "nr_written")? })
    }
}

/// The instruments, and what they showed.
#[derive(Debug)]
pub struct Output {
    source: Option<Source>,
    levels: Vec<Reading>,
    vmstat: Option<KernelFile>,
    /// At the start and at the end.
    flows: [Option<Flow>; 2],
    throttle: Result<Throttle, String>,
    before: Paused,
    paused: Paused,
    syncs: usize,
    times: Distribution,
}

impl Output {
    /// Opens and allocates everything, for `syncs` calls of fsync in a run of this plan.
    pub fn open(context: &ExecutionContext, plan: &Plan, syncs: u32) -> Self {
        Self {
            source: Source::open(context.memory_stat.as_deref()),
            levels: Vec::with_capacity(plan.windows() + 1),
            vmstat: KernelFile::open(Path::new("/proc/vmstat")),
            flows: [None; 2],
            throttle: Throttle::start().map_err(|error| error.to_string()),
            before: Paused::default(),
            paused: Paused::default(),
            syncs: (syncs as usize).min(plan.windows()),
            times: Distribution::new(),
        }
    }

    /// The first reading, before all others: it waits for the processors.
    pub fn begin(&mut self) {
        self.flows[0] = self.vmstat.as_mut().and_then(Flow::read);
        self.sample(0, 0);
        self.before = self.paused();
    }

    /// The last reading, after all others.
    pub fn end(&mut self) {
        self.flows[1] = self.vmstat.as_mut().and_then(Flow::read);
    }

    fn paused(&self) -> Paused {
        self.throttle.as_ref().map(Throttle::sample).unwrap_or_default()
    }

    /// Reads what is dirty after this reference, `time` after the start.
    pub fn sample(&mut self, reference: usize, time: u64) {
        let Some((dirty, writeback)) = self.source.as_mut().and_then(Source::read) else { return };
        self.levels.push(Reading { reference: reference as u64, time, dirty, writeback });
    }

    /// Brings the file to the disk where that is due after this window.
    ///
    /// # Errors
    /// Those of fsync.
    pub fn sync(&mut self, file: &File, plan: &Plan, window: usize) -> Result<()> {
        let due = |window: usize| window * self.syncs / plan.windows().max(1);
        if window == plan.windows() {
            // Its own writing is no reference's.
            self.paused = self.paused();
        }
        if due(window) == due(window - 1) {
            return Ok(());
        }
        let begun = Monotonic.now();
        fsync(file).map_err(|error| failed("bringing the file to the disk (fsync)")(error.into()))?;
        self.times.record(Monotonic.now() - begun);
        Ok(())
    }

    /// Gives everything seen to `recorder`.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn report(self, recorder: &mut dyn Recorder) -> Result<()> {
        let grown = |of: fn(&Flow) -> u64| {
            let [before, after] = &self.flows;
            Some((of(after.as_ref()?) - of(before.as_ref()?)) as f64)
        };
        let levels = |of: fn(&Reading) -> u64| self.levels.iter().map(move |level| of(level) as f64);
        let paused = Paused {
            pauses: self.paused.pauses - self.before.pauses,
            time: self.paused.time - self.before.time,
        };
        let counted = |value: u64| self.throttle.is_ok().then_some(value as f64);
        let times = self.times.histogram(FSYNC);
        let measured = times.count() > 0;
        metrics(
            recorder,
            [
                metrics::DIRTY_MAX.over(levels(|level| level.dirty)),
                metrics::WRITEBACK_MAX.over(levels(|level| level.writeback)),
                (metrics::DIRTY_PAUSES, counted(paused.pauses)),
                (metrics::DIRTY_THROTTLED, counted(paused.time)),
                (metrics::PAGES_DIRTIED, grown(|flow| flow.dirtied)),
                (metrics::PAGES_WRITTEN, grown(|flow| flow.written)),
                metrics::FSYNC_P50.of(&times),
                metrics::FSYNC_MAX.of(&times),
            ],
        )?;
        let mut sheet = Sheet::new(writeback::TABLE);
        for level in &self.levels {
            let row = [level.reference, level.time, level.dirty, level.writeback];
            sheet.row(row.map(|number| Some(number as f64)));
        }
        sheet.record(recorder)?;
        if measured {
            recorder.observe(Observation::Histogram(times))?;
        }
        if let Err(why) = &self.throttle {
            note(
                recorder,
                Level::Info,
                format!("pauses for dirty pages (dirty.throttled, dirty.pauses) are missing: {why}"),
            )?;
        }
        if self.source.is_some_and(|source| source.whole_machine) {
            note(
                recorder,
                Level::Info,
                "dirty and writeback bytes are those of the whole machine (/proc/vmstat): only a cgroup \
                with a limit has its own",
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_the_cgroups_where_it_has_them() {
        let folder = tempfile::tempdir().unwrap();
        let stat = folder.path().join("memory.stat");
        let read = |text: &str| {
            std::fs::write(&stat, text).unwrap();
            let mut source = Source::open(Some(&stat)).unwrap();
            (source.read(), source.whole_machine)
        };
        assert_eq!(read("file_dirty 4096\nfile_writeback 8192\n"), (Some((4096, 8192)), false));
        assert_eq!(read("dirty 1\nwriteback 2\ntotal_dirty 3\n"), (Some((1, 2)), false));
        assert!(read("anon 1\n").1, "a kernel whose cgroups do not say");
    }

    #[test]
    fn syncs_are_equally_far_apart_and_the_last_is_at_the_end() {
        let plan = Plan::new(100_000);
        let file = tempfile::tempfile().unwrap();
        for syncs in [0, 1, 7, 240] {
            let mut output = Output::open(&ExecutionContext::default(), &plan, syncs);
            let mut before = 0;
            let mut after = Vec::new();
            for window in 1..=plan.windows() {
                output.sync(&file, &plan, window).unwrap();
                if output.times.count() > before {
                    before = output.times.count();
                    after.push(window);
                }
            }
            assert_eq!(after.len(), syncs as usize);
            assert_eq!(after.last().copied(), (syncs > 0).then_some(plan.windows()));
        }
    }
}
