//! `faultscale` on the running kernel: memory management against the number of workers (Dillon 2011).
//!
//! For each number of workers a crew is made: threads of one fresh process, or processes. All begin
//! at once, work until they are told to stop, and say what they did (`work`). Then the same crew's
//! like works again for a fifth of a second while the kernel's lock events are taken (`locks`), so
//! that the taking does not disturb the timing. `build` compiles instead (`build`). With `--beside`
//! each crew works a second time, beside a thread of the same address space (`beside`), and the
//! lock events are taken there.

mod beside;
mod build;
mod crew;
mod locks;
mod work;

use pagelab_experiment::environment::WORKER_MAPPINGS;
use std::fs::File;
use std::time::Duration;

use pagelab_experiment::build::{Figure, Sheet, metrics, note, throughputs};
use pagelab_experiment::experiments::{Beside, Faultscale, Work};
use pagelab_experiment::observation::{Histogram, Level};
use pagelab_experiment::{MetricId, Observation, Recorder, Result, metrics, tables};
use pagelab_kernel::perf;
use pagelab_kernel::rusage::Usage;

use self::crew::crew;
use self::locks::Waits;
use crate::harness::context::ExecutionContext;
use crate::harness::environment;
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;
use crate::harness::microstates::Whose;
use crate::harness::processor;

/// How long lock events are taken for each number of workers.
const TAKING: Duration = Duration::from_millis(200);
/// Rows of the table of locks for each number of workers.
const LOCKS: usize = 12;

/// The distribution of the operations' times.
const OPERATION: &str = "operation";

/// What so many workers did.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) workers: u32,
    pub(crate) operations: f64,
    pub(crate) elapsed: Duration,
    pub(crate) used: Usage,
    /// The times of one operation in sixteen; `None` of a build.
    pub(crate) times: Option<Histogram>,
    /// How often the workers slept in their operations; counted where there is `--beside`.
    pub(crate) waits: f64,
    /// Calls of the thread beside them a second.
    pub(crate) calls: f64,
    /// Mappings of pagelab's own in a worker process; `None` of a build.
    pub(crate) mappings: Option<u64>,
}

impl Point {
    /// Operations a second.
    fn throughput(&self) -> f64 {
        self.operations / self.elapsed.as_secs_f64()
    }

    /// That of the times, ns.
    fn quantile(&self, q: f64) -> Option<f64> {
        self.times.as_ref()?.quantile(q).map(|time| time as f64)
    }
}

/// Performs the sweep over workers; see the module's comment.
///
/// # Errors
/// When the kernel refuses memory, threads or processes, or a compiler is missing.
pub fn perform(
    faultscale: &Faultscale,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    let file = match faultscale.work {
        Work::File => {
            Some(context.write_scratch("faultscale", faultscale.pages.max(1) as usize, recorder)?)
        }
        _ => None,
    };
    context.join()?;
    if let Some(file) = &file {
        cached(file).map_err(failed("reading the file into the cache"))?;
    }
    harness.watch_tasks();
    harness.begin();
    let mut points = Vec::new();
    let mut besides = Vec::new();
    let mut waits = Vec::new();
    let with = faultscale.beside != Beside::None;
    let mut refused = None;
    for (n, &workers) in faultscale.workers.iter().enumerate() {
        recorder.progress("workers", n as u64, faultscale.workers.len() as u64);
        let workers = workers.clamp(1, 4096);
        let point = match faultscale.work {
            Work::Build => build::build(faultscale, workers, context, recorder)?,
            _ => {
                let time = Duration::from_secs_f64(faultscale.seconds.clamp(0.01, 3600.0));
                let mut crew = |beside| {
                    let who = (workers, beside);
                    crew(faultscale, who, file.as_ref(), time, context, recorder, || harness.poll())
                };
                let alone = crew(false)?;
                if with {
                    besides.push(crew(true)?);
                }
                alone
            }
        };
        points.push(point);
        match locks::Taking::start() {
            Ok(mut taking) => {
                let again = match faultscale.work {
                    Work::Build => build::sample(faultscale, workers, context, recorder, || taking.poll())?,
                    _ => {
                        let who = (workers, with);
                        crew(faultscale, who, file.as_ref(), TAKING, context, recorder, || taking.poll())?
                    }
                };
                waits.push(taking.finish(workers, u32::from(with), again.elapsed));
            }
            Err(error) => refused = Some(error),
        }
        harness.poll();
    }
    let mut measured = harness.finish();
    measured.record(recorder)?;
    if let Some(error) = refused {
        note(recorder, Level::Info, format!("lock waits are missing ({error}): {}", perf::REMEDY))?;
    }
    let mappings = points.iter().find_map(|point| point.mappings).map(|count| count.to_string());
    recorder.observe(Observation::Environment(environment::entries([(WORKER_MAPPINGS, mappings)])))?;
    // Children and compilers are too short to be parted one by one.
    let short = matches!(faultscale.work, Work::Fork | Work::Build);
    let share = measured.user_share().filter(|_| short);
    let times = |used: &Usage| match short {
        true => processor::figures_by(used, share),
        false => processor::figures(used),
    };
    report(&points, if with { &[] } else { &waits }, times, recorder)?;
    locked(&waits, recorder)?;
    if with {
        beside(&points, &besides, &waits, recorder)?;
    }
    let lock = waits.last().map(Waits::share);
    measured.states(Whose::Descendants, lock, recorder)
}

fn report(
    points: &[Point],
    waits: &[Waits],
    times: impl Fn(&Usage) -> [Figure; 3],
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let mut sheet = Sheet::new(tables::faultscale::TABLE);
    for point in points {
        let wait = waits.iter().find(|w| w.workers == point.workers).map(Waits::share);
        let [_, (_, user), (_, system)] = times(&point.used);
        sheet.row([
            Some(f64::from(point.workers)),
            Some(point.throughput()),
            Some(point.elapsed.as_nanos() as f64),
            user,
            system,
            Some(point.used.minor as f64),
            wait,
            point.quantile(0.5),
            point.quantile(0.99),
        ]);
    }
    sheet.record(recorder)?;
    let sum = |of: fn(&Point) -> f64| Some(points.iter().map(of).sum::<f64>());
    let all: Vec<(u32, f64)> = points.iter().map(|p| (p.workers, p.throughput())).collect();
    let mut used = Usage::default();
    points.iter().for_each(|point| used += point.used);
    let [processor, user, system] = times(&used);
    let figures = [
        (metrics::TIME_ELAPSED, sum(|p| p.elapsed.as_nanos() as f64)),
        processor,
        user,
        system,
        (metrics::FAULTS_MINOR, sum(|p| p.used.minor as f64)),
    ];
    metrics(recorder, figures.into_iter().chain(throughputs(&all)))?;
    let last = points.last();
    let timed = |metric: MetricId| (metric, last.and_then(|point| metric.of(point.times.as_ref()?).1));
    metrics(recorder, [metrics::OPERATION_P50, metrics::OPERATION_P99].map(timed))?;
    if let Some(times) = last.and_then(|point| point.times.clone()).filter(|times| times.count() > 0) {
        recorder.observe(Observation::Histogram(times))?;
    }
    Ok(())
}

/// The table `locks`.
fn locked(waits: &[Waits], recorder: &mut dyn Recorder) -> Result<()> {
    if !waits.is_empty() {
        let mut sheet = Sheet::new(tables::locks::TABLE);
        for wait in waits {
            for (name, count, time) in wait.rows.iter().take(LOCKS) {
                sheet.named(
                    [name],
                    [
                        Some(f64::from(wait.workers)),
                        Some(*count as f64),
                        Some(*time as f64),
                        Some(*time as f64 / wait.wall),
                    ],
                );
            }
        }
        sheet.record(recorder)?;
    }
    Ok(())
}

/// The table `beside`: each number of workers alone and beside the other thread, and the figures of
/// the most.
fn beside(alone: &[Point], besides: &[Point], waits: &[Waits], recorder: &mut dyn Recorder) -> Result<()> {
    let slept = |point: &Point| (point.operations > 0.0).then(|| point.waits * 1e6 / point.operations);
    let mut sheet = Sheet::new(tables::beside::TABLE);
    for (alone, beside) in alone.iter().zip(besides) {
        let wait = waits.iter().find(|w| w.workers == alone.workers).map(Waits::share);
        let none = (None, None);
        for (what, point, (calls, wait)) in
            [("alone", alone, none), ("beside", beside, (Some(beside.calls), wait))]
        {
            let name = format!("{} {what}", point.workers);
            let (p50, p99) = (point.quantile(0.5), point.quantile(0.99));
            sheet.named([&name], [Some(point.throughput()), p50, p99, slept(point), calls, wait]);
        }
    }
    sheet.record(recorder)?;
    let last = besides.last();
    let of = |figure: &dyn Fn(&Point) -> Option<f64>| last.and_then(figure);
    metrics(
        recorder,
        [
            (metrics::BESIDE_THROUGHPUT, of(&|point| Some(point.throughput()))),
            (metrics::BESIDE_P50, of(&|point| metrics::BESIDE_P50.of(point.times.as_ref()?).1)),
            (metrics::BESIDE_P99, of(&|point| metrics::BESIDE_P99.of(point.times.as_ref()?).1)),
            (metrics::BESIDE_WAITS, of(&slept)),
            (metrics::BESIDE_CALLS, of(&|point| Some(point.calls))),
        ],
    )
}

/// Reads the whole file, so that it is cached on this process's account.
fn cached(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        match file.read_at(&mut buffer, at)? {
            0 => return Ok(()),
            read => at += read as u64,
        }
    }
}
