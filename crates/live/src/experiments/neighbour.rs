//! `neighbour` on the running kernel.
//!
//! Inside the run's cgroup, which has the limit, two are made: the worker joins the victim's, a
//! child that it forks the neighbour's. They are removed with the run's. The victim's mapping is
//! made once; before each situation it is touched once from first to last, and the neighbour has
//! gone round its own once. The victim's references are not timed one by one: the figure is the
//! thread's processor time, in which the neighbour's turns on the same processor are not.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use pagelab_experiment::build::{Sheet, metric, metrics};
use pagelab_experiment::experiments::Neighbour;
use pagelab_experiment::experiments::neighbour::{METRICS, SITUATIONS, Task};
use pagelab_experiment::{Failure, Recorder, Result, Setting, metrics, tables};
use pagelab_kernel::affinity::allowed;
use pagelab_kernel::cgroup::Group;
use pagelab_kernel::region::{self, Region, page_size};
use pagelab_kernel::rusage;

use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::family::{Barrier, Family};
use crate::harness::measurement::Harness;
use crate::harness::profiled;
use crate::harness::scans::Scans;
use crate::harness::timing::bare;
use crate::harness::touch::Write;

/// References between two checks of whether to go on.
const BLOCK: usize = 20_000;
/// Pages that the kernel charges to a cgroup in advance on each CPU (MEMCG_CHARGE_BATCH in
/// include/linux/memcontrol.h): what is charged to the same pages differs by so much.
const BATCH: usize = 64;
/// How often it is seen how far the neighbour is.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A cgroup inside the run's.
struct Inner(PathBuf);

impl Inner {
    fn make(parent: &Path, name: &str) -> Result<Self> {
        let path = parent.join(name);
        fs::create_dir(&path).map_err(failed(&format!("making the cgroup {}", path.display())))?;
        Ok(Self(path))
    }

    fn write(&self, file: &str, bytes: u64) -> Result<()> {
        let path = self.0.join(file);
        fs::write(&path, bytes.to_string()).map_err(failed(&format!("writing {bytes} to {}", path.display())))
    }

    fn group(&self) -> Group<'_> {
        Group::new(&self.0)
    }

    /// What it counts of itself.
    fn counts(&self) -> Counts {
        let refaults = self.group().refaults();
        let (major, low) = (self.group().stat("pgmajfault"), self.group().counted("memory.events", "low"));
        Counts { major, refaults, low }
    }
}

/// What a cgroup counts of itself, since it was made.
#[derive(Clone, Copy, Default)]
struct Counts {
    major: Option<u64>,
    refaults: Option<u64>,
    low: Option<u64>,
}

/// What a situation showed.
struct NeighbourResult {
    cost: f64,
    major: u64,
    row: [Option<f64>; 8],
    refaults: Option<f64>,
}

/// The victim, and what is at hand.
struct Situations<'a> {
    parameters: &'a Neighbour,
    region: Region,
    victim: Inner,
    neighbour: Inner,
    /// What the neighbour reads, if it reads a file.
    file: Option<File>,
    /// How often the neighbour wrote or read a page, since it was begun.
    written: Barrier,
}

/// Performs `parameters`; see the module's comment.
///
/// # Errors
/// Without a limit, and when the kernel refuses.
pub fn perform(
    parameters: &Neighbour,
    setting: &Setting,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let Some(shared) = context.cgroup.as_deref() else {
        return Err(Failure::unsupported(
            "neighbour needs a memory limit for both loads",
            "give --memory SIZE",
        ));
    };
    let mut harness = Harness::open(context, recorder)?;
    let mut scans = Scans::open(context);
    fs::write(shared.join("cgroup.subtree_control"), "+memory")
        .map_err(failed(&format!("handing memory on in {}", shared.display())))?;
    let (victim, neighbour) = (Inner::make(shared, "victim")?, Inner::make(shared, "neighbour")?);
    let stream = parameters.pattern.stream(parameters.pages, parameters.references, parameters.seed);
    let stream = stream.map_err(|e| Failure::parameters("the reference stream", &e))?;
    // Written before the worker joins the victim's cgroup, which is not charged for it.
    let file = (parameters.task == Task::ReadFile)
        .then(|| context.write_scratch("neighbour", parameters.neighbour as usize, recorder))
        .transpose()?;
    victim.group().join().map_err(failed("joining the victim's cgroup"))?;
    let pages = stream.pages() as usize;
    let region = Region::base_pages(pages).map_err(failed(&format!("mapping {pages} pages")))?;
    // A child with the mapping would make each of the victim's writes a copy, and the old pages,
    // which nothing references, would stay charged to the victim.
    region.keep_apart().map_err(failed("madvise(MADV_DONTFORK)"))?;
    region.populate(|done, of| recorder.progress("populate", done, of));
    let written = Barrier::new(1).map_err(failed("mapping a page"))?;
    let situations = Situations { parameters, region, victim, neighbour, file, written };
    harness.begin();
    let (all, protected) = situations.all(stream.references(), &mut scans, recorder)?;
    let measured = harness.finish();
    measured.record(recorder)?;
    let mut sheet = Sheet::new(tables::situations::TABLE);
    for (situation, seen) in SITUATIONS.iter().zip(&all) {
        sheet.named([situation], seen.row);
    }
    sheet.record(recorder)?;
    scans.record(recorder)?;
    for (names, seen) in METRICS.iter().zip(&all) {
        metric(recorder, names[0], Some(seen.cost))?;
        metric(recorder, names[1], Some(seen.major as f64))?;
        metric(recorder, names[2], seen.refaults)?;
    }
    metric(recorder, metrics::VICTIM_PROTECTED, protected.map(|bytes| bytes as f64))?;
    metrics(recorder, measured.scans())?;
    measured.note_scope(recorder)?;
    profiled::repeat(setting, context, recorder, |recorder| {
        situations.all(stream.references(), &mut Scans::closed(), recorder).map(drop)
    })
}

impl Situations<'_> {
    /// All of them, and the bytes that protect the victim.
    fn all(
        &self,
        stream: &[u32],
        scans: &mut Scans,
        recorder: &mut dyn Recorder,
    ) -> Result<(Vec<NeighbourResult>, Option<u64>)> {
        let stock = (allowed().map_err(failed("asking for CPUs"))?.len() * BATCH * page_size()) as u64;
        let mut all = Vec::new();
        let mut protected = None;
        for situation in SITUATIONS {
            let (low, min) = match situation {
                "low" => (protected, None),
                "min" => (None, protected),
                _ => (None, None),
            };
            self.victim.write("memory.low", low.unwrap_or(0))?;
            self.victim.write("memory.min", min.unwrap_or(0))?;
            all.push(self.perform(situation, stream, scans, recorder)?);
            if situation == "alone" {
                protected = self.victim.group().charged().map(|bytes| bytes + stock);
            }
        }
        Ok((all, protected))
    }

    fn perform(
        &self,
        situation: &str,
        stream: &[u32],
        scans: &mut Scans,
        recorder: &mut dyn Recorder,
    ) -> Result<NeighbourResult> {
        if let Some(file) = &self.file {
            region::forget(file).map_err(failed("dropping the neighbour's file from the page cache"))?;
        }
        let all: Vec<u32> = (0..self.region.pages() as u32).collect();
        bare::<Write>(&self.region, &all);
        let neighbour = match situation {
            "alone" => None,
            _ => Some(self.begin(situation, recorder)?),
        };
        scans.begin();
        let (before, written) = (self.victim.counts(), self.written[0].load(Relaxed));
        let start = rusage::thread_up_to_date();
        let (mut done, mut time) = (0, 0);
        for part in stream.chunks(BLOCK) {
            let begun = rusage::thread_time();
            bare::<Write>(&self.region, part);
            time += rusage::thread_time() - begun;
            done += part.len() as u64;
            recorder.progress(situation, done, stream.len() as u64);
            recorder.check()?;
        }
        let used = rusage::thread_up_to_date() - start;
        let (after, end) = (self.victim.counts(), self.written[0].load(Relaxed));
        scans.end(situation);
        let charged =
            [&self.victim, &self.neighbour].map(|group| group.group().charged().map(|bytes| bytes as f64));
        drop(neighbour);
        let grown = |of: fn(&Counts) -> Option<u64>| {
            of(&before).zip(of(&after)).map(|(before, after)| after.saturating_sub(before) as f64)
        };
        let refaults = grown(|counts| counts.refaults);
        let cost = time as f64 / stream.len() as f64;
        let row = [
            Some(used.major as f64),
            grown(|counts| counts.major),
            Some(used.minor as f64),
            refaults,
            charged[0],
            charged[1],
            Some((end - written) as f64),
            grown(|counts| counts.low),
        ];
        Ok(NeighbourResult { cost, major: used.major, row, refaults })
    }

    /// Starts the neighbour, and waits until it has written or read each of its pages once.
    fn begin(&self, situation: &str, recorder: &mut dyn Recorder) -> Result<Family> {
        let pages = self.parameters.neighbour;
        self.written[0].store(0, Relaxed);
        let mut family = Family::default();
        let started = family.fork(|| self.disturb().map_or(1, |()| 0));
        started.map_err(failed("starting the neighbour"))?;
        loop {
            let written = self.written[0].load(Relaxed);
            if written >= pages {
                return Ok(family);
            }
            recorder.progress(&format!("{situation}: the neighbour begins"), written.min(pages), pages);
            recorder.check()?;
            match family.poll() {
                Ok(0) | Err(_) => {
                    let why = std::io::Error::other("it ended before it had written or read its pages");
                    return Err(failed("the neighbour")(why));
                }
                Ok(_) => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// What the neighbour does until it is ended.
    fn disturb(&self) -> std::io::Result<()> {
        self.neighbour.group().join()?;
        if let Some(file) = &self.file {
            return self.read_again_and_again(file);
        }
        let region = Region::base_pages(self.parameters.neighbour as usize)?;
        region.populate(|_, _| {});
        loop {
            for page in 0..region.pages() as u32 {
                bare::<Write>(&region, &[page]);
                self.written[0].fetch_add(1, Relaxed);
            }
        }
    }

    fn read_again_and_again(&self, file: &File) -> std::io::Result<()> {
        let mut page = vec![0; page_size()];
        loop {
            for number in 0..self.parameters.neighbour {
                file.read_exact_at(&mut page, number * page_size() as u64)?;
                self.written[0].fetch_add(1, Relaxed);
            }
        }
    }
}
