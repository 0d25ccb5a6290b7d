//! `vmtest` on the running kernel: throughput against active virtual memory (Irlam 1990).
//!
//! For each size, in this order: the processes are forked and make their segments; when all are
//! ready the counters are read and all begin at once. Each reads the first byte of every page of its
//! segment in turn, until it has made its passes or the time is up, and notes what it consumed. The
//! parent sleeps, and wakes `switch-rate` times a second to ask who has ended, as Irlam's does.
//!
//! After every lap of some hundred thousand reads a process waits for the others: see `laps`.
//!
//! Each read waits for the one before it, as on a machine that executes in order.
//!
//! A process whose segment is smaller than `process-size` makes as many more passes, so that each
//! makes the same number of reads. A size that took less than a quarter of a second is timed again,
//! five times at most, and the fastest kept (Irlam gives the smallest of his times too).
//!
//! Parent and children are kept to `cpus` processors: with one, as on Irlam's machine, the reads a
//! second at two sizes compare whatever the number of processes.

mod laps;
mod process;

use pagelab_experiment::environment::WORKER_MAPPINGS;
use std::fs::File;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use pagelab_experiment::build::{Sheet, metrics, speeds};
use pagelab_experiment::experiments::{Mapping, PagesOf, Vmtest};
use pagelab_experiment::{Failure, Observation, Recorder, Result, metrics, tables};
use pagelab_kernel::affinity::Pinned;
use pagelab_kernel::region::{Region, page_size};
use pagelab_kernel::rusage::Usage;

use self::laps::{END, Laps};
use self::process::{Order, Slot};
use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::environment;
use crate::harness::failure::failed;
use crate::harness::family::{Barrier, Family};
use crate::harness::measurement::Harness;
use crate::harness::microstates::Whose;
use crate::harness::processor;

/// A size is timed again while it took less than this in all, and not more often than this.
const SHORT: Duration = Duration::from_millis(250);
const MAX_PASSES: u32 = 5;

/// What was seen at one size.
#[derive(Clone, Copy, Debug)]
struct Point {
    processes: usize,
    elapsed: u64,
    reads: u64,
    used: Usage,
    swap_in: Option<u64>,
    /// Mappings of pagelab's own in a process.
    mappings: Option<u64>,
}

impl Point {
    /// Reads a second.
    fn speed(&self) -> f64 {
        self.reads as f64 * 1e9 / self.elapsed as f64
    }
}

/// Performs the sweep; see the module's comment.
///
/// # Errors
/// When the kernel refuses memory or processes, or kills one inside the limit.
pub fn perform(vmtest: &Vmtest, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let harness = Harness::open(context, recorder)?;
    let sizes = vmtest.sweep().bytes(page_size() as u64);
    let file = file(vmtest, &sizes, context, recorder)?;
    context.join()?;
    let _processors = Pinned::to(vmtest.cpus as usize).map_err(failed("choosing processors"))?;
    let mut sweep = Sweep { vmtest, context, file: file.as_ref(), harness };
    sweep.harness.watch_tasks();
    sweep.harness.begin();
    let mut points = Vec::with_capacity(sizes.len());
    for (n, &size) in sizes.iter().enumerate() {
        recorder.progress("sizes", n as u64, sizes.len() as u64);
        points.push(sweep.point(size, recorder)?);
        sweep.harness.poll();
    }
    let mut measured = sweep.harness.finish();
    measured.record(recorder)?;
    measured.note_scope(recorder)?;
    let mappings = points.iter().find_map(|point| point.mappings).map(|count| count.to_string());
    recorder.observe(Observation::Environment(environment::entries([(WORKER_MAPPINGS, mappings)])))?;
    report(vmtest, &sizes, &points, recorder)?;
    measured.states(Whose::Descendants, None, recorder)
}

fn report(vmtest: &Vmtest, sizes: &[u64], points: &[Point], recorder: &mut dyn Recorder) -> Result<()> {
    let modelled = [tables::vmtest::TRANSLATION_MEAN, tables::vmtest::WALKS];
    let mut sheet = Sheet::without(tables::vmtest::TABLE, &modelled);
    let first = points.first().map_or(f64::NAN, Point::speed);
    for (&size, point) in sizes.iter().zip(points) {
        let number = |v: u64| Some(v as f64);
        let at_work = point.processes.min(vmtest.cpus as usize) as f64;
        let [user, system] = processor::parts(point.used.user as f64, point.used.system as f64);
        sheet.row([
            number(size),
            number(point.processes as u64),
            Some(point.speed() / first),
            number(point.elapsed),
            user,
            system,
            number(point.used.minor),
            number(point.used.major),
            number(point.reads),
            Some(at_work * point.elapsed as f64 / point.reads as f64),
            Some((point.used.user + point.used.system) as f64 / point.reads as f64),
            point.swap_in.map(|v| v as f64),
        ]);
    }
    sheet.record(recorder)?;
    let sum = |of: fn(&Point) -> u64| Some(points.iter().map(of).sum::<u64>() as f64);
    let swapped: Option<u64> = points.iter().map(|p| p.swap_in).sum();
    let all: Vec<f64> = points.iter().map(Point::speed).collect();
    let mut used = Usage::default();
    points.iter().for_each(|point| used += point.used);
    let [processor, user, system] = processor::figures(&used);
    let figures = [
        (metrics::TIME_ELAPSED, sum(|p| p.elapsed)),
        processor,
        user,
        system,
        (metrics::FAULTS_MINOR, sum(|p| p.used.minor)),
        (metrics::FAULTS_MAJOR, sum(|p| p.used.major)),
        (metrics::SWAP_IN, swapped.map(|v| v as f64)),
    ];
    metrics(recorder, figures.into_iter().chain(speeds(&all)))
}

/// The file whose parts the processes map, on disk and out of the cache; `None` where they map none.
fn file(
    vmtest: &Vmtest,
    sizes: &[u64],
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<Option<File>> {
    if vmtest.mapping != Mapping::File {
        return Ok(None);
    }
    let pages = sizes.last().map_or(0, |bytes| *bytes as usize / page_size());
    context.write_scratch("vmtest", pages, recorder).map(Some)
}

struct Sweep<'a> {
    vmtest: &'a Vmtest,
    context: &'a ExecutionContext,
    file: Option<&'a File>,
    harness: Harness,
}

impl Sweep<'_> {
    fn point(&mut self, size: u64, recorder: &mut dyn Recorder) -> Result<Point> {
        let page = page_size() as u64;
        let (processes, pages) = self.vmtest.processes(size, page);
        let reads = self.vmtest.reads(pages, page);
        let (processes, pages) = (processes as usize, pages as usize);
        let order = Order { reads, mapping: self.vmtest.mapping, pages_of: self.vmtest.pages_of, pages };
        let barrier = Barrier::new(process::cells(processes)).map_err(failed("making shared memory"))?;
        let laps = Laps::new(processes).map_err(failed("making shared memory"))?;
        let common = match self.vmtest.mapping {
            Mapping::Shared => Some(self.shared(pages)?),
            _ => None,
        };
        let mut family = Family::default();
        for index in 0..processes {
            let work = || order.perform(index, &barrier, &laps, common.as_ref(), self.file);
            family.fork(work).map_err(failed(&format!("forking process {} of {processes}", index + 1)))?;
        }
        let made = self
            .wait(&mut family, recorder, None, || barrier[process::READY].load(Acquire) == processes as u64);
        if barrier[process::REFUSED].load(Acquire) > 0 {
            return Err(Failure::unsupported(
                format!("the kernel refused a segment of {pages} pages of kind {}", self.vmtest.pages_of),
                "use --pages-of 4k, or set huge pages aside: --set /proc/sys/vm/nr_hugepages=N",
            ));
        }
        made?;
        let mut best: Option<Point> = None;
        let begun = Instant::now();
        for round in 1..=MAX_PASSES {
            laps.reset();
            let point = self.round((round, &laps), processes, &barrier, &mut family, recorder)?;
            if best.is_none_or(|best| point.speed() > best.speed()) {
                best = Some(point);
            }
            if begun.elapsed() > SHORT {
                break;
            }
        }
        laps.begin(END);
        let deadline = Instant::now() + Duration::from_secs(10);
        while family.poll().map_err(|lost| lost.error(self.context))? > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(best.expect("at least one round"))
    }

    /// The segment that all processes share, every page written.
    fn shared(&self, pages: usize) -> Result<Region> {
        if self.vmtest.pages_of == PagesOf::Hugetlb {
            return Err(Failure::unsupported(
                "a shared segment is not made of hugetlb pages",
                "use --mapping private",
            ));
        }
        let region = Region::shared(pages).map_err(failed("mapping the shared segment"))?;
        let _ = region.advise(process::advice(self.vmtest.pages_of));
        region.populate(|_, _| {});
        Ok(region)
    }

    /// One timing of all processes at once.
    fn round(
        &mut self,
        (round, laps): (u32, &Laps),
        processes: usize,
        barrier: &Barrier,
        family: &mut Family,
        recorder: &mut dyn Recorder,
    ) -> Result<Point> {
        barrier[process::DONE].store(0, Release);
        barrier[process::STOP].store(0, Release);
        let swap_before = self.harness.swap();
        let start = Monotonic.now();
        laps.begin(round);
        let limit = Duration::from_secs_f64(self.vmtest.seconds.clamp(0.001, 3600.0));
        self.wait(family, recorder, Some((barrier, limit)), || {
            barrier[process::DONE].load(Acquire) == processes as u64
        })?;
        let swap_after = self.harness.swap();
        let mut point = Point {
            processes,
            elapsed: 1,
            reads: 0,
            used: Usage::default(),
            swap_in: swap_before.zip(swap_after).map(|(a, b)| b.0.saturating_sub(a.0)),
            mappings: Some(barrier[process::MAPPINGS].load(Acquire)).filter(|&count| count > 0),
        };
        for index in 0..processes {
            let slot = Slot::read(barrier, index);
            point.reads += slot.reads;
            point.used += slot.used;
            point.elapsed = point.elapsed.max(slot.ended.saturating_sub(start));
        }
        Ok(point)
    }

    /// Sleeps until `done`, waking `switch-rate` times a second; tells the processes to stop when
    /// their time is up.
    fn wait(
        &self,
        family: &mut Family,
        recorder: &mut dyn Recorder,
        limit: Option<(&Barrier, Duration)>,
        done: impl Fn() -> bool,
    ) -> Result<()> {
        let nap = Duration::from_secs(1) / self.vmtest.switch_rate.clamp(1, 100_000);
        let begun = Instant::now();
        while !done() {
            // A waking less often than ten times a second would not see the user's wish to end.
            std::thread::sleep(nap.min(Duration::from_millis(100)));
            family.poll().map_err(|lost| lost.error(self.context))?;
            recorder.check()?;
            if let Some((barrier, limit)) = limit
                && begun.elapsed() >= limit
            {
                barrier[process::STOP].store(1, Release);
            }
        }
        Ok(())
    }
}
