//! `mapanon` and `mapfile` on the running kernel.
//!
//! In this order, so that the harness neither disturbs nor is disturbed:
//!
//! 1. The beginning of the stream is generated, all buffers are allocated, the clock is calibrated,
//!    the file (if any) is written and dropped from the page cache, and everything is locked in
//!    memory.
//! 2. The memory cgroup is joined: what follows is charged to it, what came before is not.
//! 3. The region is mapped and, unless it is a file, every page is written once.
//! 4. The references are made in 240 windows. Between two windows, on nobody's time, the cheap
//!    figures are read; at 16 points (start, end, 14 between) the page map too; and the stream is
//!    generated on, a million references at a time (`feed`). After a reading the caches are cold,
//!    which is in the times of the next references: so where no reference faulted readings take a
//!    hundredth of the time at most. The same where a file is mapped: the disk reads ahead while
//!    nobody references, and what is read in a pause is in no reference's time.
//! 5. The region is unmapped, and only then the observations are made and sent.
//! 6. Where the setting asks for it, the load is made once more to count operations, once more for
//!    a machine that counts instructions, and once more to sample where the kernel is.
//!
//! Anonymous memory is advised `MADV_NOHUGEPAGE` unless the setting says otherwise: the experiment
//! is about base pages. Under `thp=always` nothing is advised, under `thp=madvise` `MADV_HUGEPAGE`;
//! so of sizes of which one is `madvise`. How far huge pages then cover the mapping is in the
//! figures (`huge`). A file is mapped shared with the kernel's own read-ahead and fault-around;
//! shared memory (shmem) has fault-around too. Huge pages that are set aside (hugetlb) are there
//! before the worker starts, by a setting of the run.
//!
//! Elapsed time, faults, context switches and the windows' times cover the references alone: what
//! happens between windows and the classification of references in doubt is not in the elapsed
//! time. The latter is in the processor time (`classification.cost` says how much for each fault).
//! `time.wall`, the kernel's counters, the swap traffic and the stalled time cover the run from the
//! first reference to the last, pauses included.

mod compressed;
pub mod counted;
mod evictions;
mod feed;
mod output;
mod plan;
mod seen;

use std::fs::File;

use pagelab_experiment::build::{note, warn};
use pagelab_experiment::experiments::{Backing, Paging};
use pagelab_experiment::observation::Level;
use pagelab_experiment::setting::{Mode, Thp};
use pagelab_experiment::{Failure, Observation, Recorder, Result, Setting, warnings};
use pagelab_kernel::content::Filler;
use pagelab_kernel::files::ResidentSet;
use pagelab_kernel::marks;
use pagelab_kernel::pagemap::{Snapshot, SnapshotReader};
use pagelab_kernel::region::{self, HugePages, Region};
use pagelab_reference::rng::Rng;
use rustix::mm::{MlockAllFlags, mlockall};

use self::compressed::{Compressed, Flow};
use self::counted::Counted;
use self::evictions::Evictions;
pub(super) use self::feed::unmade;
use self::feed::{Feed, Marked};
use self::output::Output;
use self::plan::Plan;
use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;
use crate::harness::timer::{Timer, timer};
use crate::harness::timing::{Tally, Timed};
use crate::harness::{content, huge, marker, phase, profiled};

/// References between two checks of whether to go on, where nothing is timed.
const BARE: usize = 20_000;

/// From the beginning of one reading of cheap figures to the next there is so many times what it
/// took, where nothing faults or a file is read.
const APART: u64 = 100;

/// What is read at the end of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    timed: Timed,
    /// Pages read from swap and written to it, since boot; those of the window before where this
    /// one was not read.
    swap: Option<(u64, u64)>,
    present: Option<u64>,
}

/// Everything seen in a run, as raw as it was read.
struct RawResult {
    tally: Tally,
    /// Whether it is known which hits were interrupted.
    interruptions: bool,
    /// Of how many references one is timed.
    every: u32,
    /// Of the region.
    pages: u32,
    /// From the first reference to the last, pauses included, ns.
    wall: u64,
    windows: Vec<Window>,
    snapshots: Vec<Snapshot>,
    swap_before: Option<(u64, u64)>,
}

/// One performance: what, on which backing, and where.
struct Task<'a> {
    paging: &'a Paging,
    backing: Backing,
    setting: &'a Setting,
    context: &'a ExecutionContext,
    filler: Filler,
    timer: &'a dyn Timer,
}

/// Performs `paging` in this process; see the module's comment.
///
/// # Errors
/// When the stream cannot be generated or the kernel refuses something that cannot be done without.
pub fn perform(
    paging: &Paging,
    backing: Backing,
    setting: &Setting,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let filler = content::filler(&paging.content).map_err(failed(&format!("reading {}", paging.content)))?;
    let timer = timer(paging).map_err(failed("calibrating"))?;
    Task { paging, backing, setting, context, filler, timer: &*timer }.run(recorder)
}

/// The most bytes that the stream of `paging` takes at once: what makes it, and a part of it.
pub fn stream_bytes(paging: &Paging) -> u64 {
    let references = usize::try_from(paging.references).unwrap_or(usize::MAX);
    paging.pattern.memory(paging.pages, paging.references).saturating_add(feed::bytes(&Plan::new(references)))
}

impl Task<'_> {
    fn run(&self, recorder: &mut dyn Recorder) -> Result<()> {
        let harness = Harness::open(self.context, recorder)?;
        recorder.progress("prepare", 0, 1);
        let plan = Plan::new(self.paging.references as usize);
        let mut feed = Feed::new(self.paging, &plan)?;
        let pages = feed.pages() as usize;
        let file = self.file(pages, recorder)?;
        let every = self.every()?;
        let costs = self.timer.costs(every).map_err(failed("calibrating"))?;
        phase::wait(self.context.repetition);
        let fault = self.timer.fault_cost().map_err(failed("calibrating"))?;
        recorder.observe(Observation::Environment(self.timer.entries(&costs)))?;
        let sampling = (every, Rng::new(self.paging.seed));
        let mut measuring = Measuring::new(&plan, sampling, self, pages, file.as_ref(), harness)?;
        if let Err(error) = mlockall(MlockAllFlags::CURRENT) {
            note(
                recorder,
                Level::Info,
                format!(
                    "pagelab cannot lock its own memory ({error}), so it may be paged too; run as root or \
                    raise the limit of locked memory (ulimit -l)"
                ),
            )?;
        }

        let outside = self.context.outside();
        self.context.join()?;
        measuring.others = measuring.resident.as_mut().and_then(ResidentSet::read);
        let allowed = self.backing == Backing::Anonymous && self.huge_pages() != HugePages::Forbidden;
        let before = huge::Before::read(allowed);
        let through_zswap = Flow::read(self.context);
        let region = self.map(pages, file.as_ref(), recorder)?;
        let populated = before.populated(&region);
        self.warm(&region);
        measuring.run(&region, &mut feed, recorder)?;
        drop(feed);
        let Measuring { seen, harness, mut output, evictions, .. } = measuring;
        let measured = harness.finish();
        if let Some((output, _)) = &mut output {
            output.end();
        }
        let compressed = Compressed::read(self.context, through_zswap);
        let huge = populated.referenced(&region);
        drop(region);
        // Before anything is told: whoever takes it works on the same processor.
        if let (1, Some(device)) = (self.context.traced, &self.context.tracing_disk) {
            self.marked(file.as_ref(), recorder)?;
            marker::tell(device)?;
        }
        // A guest's are counted by the host.
        let counted = self.context.repetition.is_none().then(|| Counted::new(self.paging)).transpose()?;
        seen::report(&seen, &measured, fault, &plan, self.paging, counted, recorder)?;
        if self.backing == Backing::File {
            seen::note_pauses(&seen, recorder)?;
        }
        if let Some((output, _)) = output {
            output.report(recorder)?;
        }
        if let Some(evictions) = evictions {
            // The log can be larger than the limit.
            outside.enter();
            evictions.report(recorder)?;
            self.context.join()?;
        }
        compressed.report(recorder)?;
        if self.backing != Backing::File {
            huge.report(recorder)?;
        }
        profiled::repeat(self.setting, self.context, recorder, |recorder| self.bare(file.as_ref(), recorder))
    }

    /// Of how many references one is timed.
    fn every(&self) -> Result<u32> {
        u32::try_from(self.paging.sample).map_err(|e| Failure::parameters("--sample", &e))
    }

    /// Touches the pages that are touched before the references start.
    fn warm(&self, region: &Region) {
        self.paging.warming(region.pages() as u32).for_each(|page| self.timer.bare(region, &[page]));
    }

    /// The load alone, from mapping to unmapping, untimed: for what would disturb the times.
    fn bare(&self, file: Option<&File>, recorder: &mut dyn Recorder) -> Result<()> {
        if let Some(file) = file {
            region::forget(file).map_err(failed("dropping the file from the page cache"))?;
        }
        let mut blocks = Marked::new(self.paging)?;
        let region = self.map(blocks.pages(), file, recorder)?;
        self.warm(&region);
        let (mut done, total) = (0, blocks.left());
        while blocks.left() > 0 {
            for part in blocks.next()?.chunks(BARE) {
                self.timer.bare(&region, part);
                done += part.len() as u64;
                recorder.progress("once more", done, total);
                recorder.check()?;
            }
        }
        Ok(())
    }

    /// The load alone, from mapping to unmapping, between the marks of a machine that counts; of
    /// the stream's making only what comes after its beginning.
    fn marked(&self, file: Option<&File>, recorder: &mut dyn Recorder) -> Result<()> {
        if let Some(file) = file {
            region::forget(file).map_err(failed("dropping the file from the page cache"))?;
        }
        let mut blocks = Marked::new(self.paging)?;
        let (pages, mut left) = (blocks.pages(), blocks.left());
        let mut part = blocks.next()?;
        marker::settle();
        // Of all repetitions at the same moment.
        phase::wait(self.context.repetition.map(|_| 0));
        marks::begin();
        let region = self.map(pages, file, &mut marker::Silent(recorder))?;
        self.warm(&region);
        loop {
            self.timer.bare(&region, part);
            left -= part.len() as u64;
            if left == 0 {
                break;
            }
            part = blocks.next()?;
        }
        drop(region);
        marks::end();
        Ok(())
    }

    /// The file to map, on disk and out of the page cache; `None` where memory is mapped.
    fn file(&self, pages: usize, recorder: &mut dyn Recorder) -> Result<Option<File>> {
        if self.backing != Backing::File {
            return Ok(None);
        }
        self.context.write_filled("mapfile", pages, &self.filler, recorder).map(Some)
    }

    /// Maps the region and, if it is memory, populates it.
    fn map(&self, pages: usize, file: Option<&File>, recorder: &mut dyn Recorder) -> Result<Region> {
        let doing = format!("mapping {pages} pages");
        if let Some(file) = file {
            return Region::file(file, pages).map_err(failed(&doing));
        }
        let region = match self.backing {
            Backing::Shmem => Region::shared(pages),
            Backing::Hugetlb => Region::huge(pages),
            Backing::Anonymous | Backing::File => Region::anonymous(pages),
        };
        let region = region.map_err(failed(&doing))?;
        let huge = self.huge_pages();
        // A kernel without huge pages refuses to forbid them, and all is well.
        if let (Err(error), HugePages::Wanted) = (region.advise(huge), huge) {
            let refused = warnings::NO_HUGE_PAGES;
            warn(recorder, refused, format!("{}: {error}", refused.0))?;
        }
        if huge != HugePages::Forbidden {
            // So that the kernel merges it with no neighbour, and what it says of it is of it
            // alone.
            let _ = region.keep_apart();
        }
        region.populate_with(&self.filler, |done, of| recorder.progress("populate", done, of));
        Ok(region)
    }

    /// What the kernel is told about huge pages.
    fn huge_pages(&self) -> HugePages {
        let named = |mode| self.setting.thp.iter().flat_map(Thp::modes).any(|named| named == mode);
        match (named(Mode::Madvise), named(Mode::Always)) {
            (true, _) => HugePages::Wanted,
            (false, true) => HugePages::System,
            (false, false) => HugePages::Forbidden,
        }
    }
}

/// What is at hand during a run.
struct Measuring<'a> {
    timer: &'a dyn Timer,
    /// Of how many references one is timed, and which.
    sampling: (u32, Rng),
    plan: &'a Plan,
    harness: Harness,
    resident: Option<ResidentSet>,
    /// Pages that this process had mapped before the region; they are locked, so they stay.
    others: Option<u64>,
    reader: SnapshotReader,
    /// Whether what is read from a disk goes on in pauses.
    reads_ahead: bool,
    /// What becomes of what is written, and the file, where references write one.
    output: Option<(Output, &'a File)>,
    /// The log of evictions, with `--evictions`.
    evictions: Option<Evictions>,
    seen: RawResult,
}

impl<'a> Measuring<'a> {
    /// Opens and allocates everything.
    fn new(
        plan: &'a Plan,
        sampling: (u32, Rng),
        task: &Task<'a>,
        pages: usize,
        file: Option<&'a File>,
        harness: Harness,
    ) -> Result<Self> {
        let written = file.filter(|_| !task.paging.write_share().is_none());
        let output = written.map(|file| (Output::open(task.context, plan, task.paging.syncs), file));
        let evictions =
            task.paging.evictions.then(|| Evictions::new(task.paging, pages, file)).transpose()?;
        let faulted = evictions.as_ref().map(Evictions::interval);
        Ok(Self {
            output,
            evictions,
            timer: task.timer,
            plan,
            harness,
            // Huge pages that are set aside are not among the process's resident ones.
            resident: ResidentSet::open().filter(|_| task.backing != Backing::Hugetlb),
            others: None,
            reader: match task.backing {
                Backing::Anonymous | Backing::Hugetlb => {
                    SnapshotReader::anonymous().map_err(failed("opening /proc/self/pagemap"))?
                }
                // Of a page of tmpfs that is in swap the page table says nothing.
                Backing::Shmem | Backing::File => SnapshotReader::file(),
            },
            reads_ahead: task.backing == Backing::File,
            seen: RawResult {
                tally: faulted.map_or_else(Tally::default, Tally::naming_faults),
                interruptions: task.timer.knows_interruptions(),
                every: sampling.0,
                pages: pages as u32,
                wall: 0,
                windows: Vec::with_capacity(plan.windows()),
                snapshots: vec![Snapshot::new(pages); plan.snapshots()],
                swap_before: None,
            },
            sampling,
        })
    }

    /// Makes the references, window by window.
    fn run(&mut self, region: &Region, feed: &mut Feed, recorder: &mut dyn Recorder) -> Result<()> {
        let Self { timer, sampling: (every, rng), plan, harness, resident, others, .. } = self;
        let (reader, reads_ahead, seen) = (&mut self.reader, self.reads_ahead, &mut self.seen);
        let (output, evictions) = (&mut self.output, &mut self.evictions);
        let mut taken = 0;
        let mut snapshot = |window: usize, reader: &mut SnapshotReader, seen: &mut RawResult| -> Result<()> {
            if plan.snapshot_after(window) {
                reader.read(region, &mut seen.snapshots[taken]).map_err(failed("reading the page map"))?;
                taken += 1;
            }
            Ok(())
        };
        snapshot(0, reader, seen)?;
        if let Some(evictions) = evictions {
            evictions.begin(&seen.snapshots[0], region);
        }
        if let Some((output, _)) = output {
            output.begin();
        }
        harness.begin();
        seen.swap_before = harness.swap_before();
        let begun = Monotonic.now();
        let (mut swap, mut next) = (seen.swap_before, 0);
        for window in 1..=plan.windows() {
            let part = feed.window(plan, window)?;
            let tally = &mut seen.tally;
            let timed = match (&mut *evictions, *every) {
                (Some(evictions), _) => {
                    let (mut timed, mut rest) = (Timed::default(), part);
                    while !rest.is_empty() {
                        let (made, later) = rest.split_at(evictions.left().min(rest.len()));
                        timed.add(&timer.references(region, made, tally));
                        let last = window == plan.windows() && later.is_empty();
                        let faulted = tally.faulted.as_deref().unwrap_or_default();
                        evictions.made(made, faulted, last, reader, region)?;
                        tally.faulted.iter_mut().for_each(Vec::clear);
                        rest = later;
                    }
                    timed
                }
                (None, 1) => timer.references(region, part, tally),
                (None, every) => timer.sampled(region, part, (every, rng), tally),
            };
            seen.wall = Monotonic.now() - begun;
            let faulted = timed.usage.minor + timed.usage.major > 0 && !reads_ahead;
            let mut present = None;
            if faulted || seen.wall >= next || plan.snapshot_after(window) {
                present = resident.as_mut().and_then(ResidentSet::read);
                swap = harness.swap();
                if let Some((output, _)) = output {
                    output.sample(plan.end(window), seen.wall);
                }
                recorder.progress("references", plan.end(window) as u64, plan.references() as u64);
                next = seen.wall + APART * (Monotonic.now() - begun - seen.wall);
            }
            seen.windows.push(Window {
                timed,
                swap,
                present: present.zip(*others).map(|(all, others)| all.saturating_sub(others)),
            });
            snapshot(window, reader, seen)?;
            if let Some((output, file)) = output {
                output.sync(file, plan, window)?;
            }
            recorder.check()?;
        }
        Ok(())
    }
}
