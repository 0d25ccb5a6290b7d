//! `faultscale` under a VM token.

use pagelab_experiment::build::{Sheet, metrics, throughputs};
use pagelab_experiment::experiments::{Beside, Faultscale, Work};
use pagelab_experiment::metrics;
use pagelab_experiment::tables::faultscale as table;
use pagelab_experiment::{Failure, Recorder};

use crate::locks::{ALONE, Build, Machine, Token};
use crate::parameter::{Parameter, Parts};
use crate::parameter_table;

/// A machine whose VM system has one lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Locked {
    faults: Token,
    builds: Token,
    /// Zero-fill faults per second of a single process.
    alone: f64,
    processors: u32,
    /// buildkernel without modules: seconds of serial and of parallel work, and its phases.
    kernel: Build,
}

const RATES: &str = "35,000 faults per second of a single process; the commits give the ceilings: 225,000 under one \
                     token, 900,000 when the page queues were divided";
const BUILDS: &str = "the builds of the study";

const PARAMETERS: &[Parameter<Locked>] = parameter_table! {
    whole "processors" "" [1.0, 1024.0] "CPUs of the machine", documented("Dillon 2011: monster"), (processors);
    number "alone" "/s" [1.0, 1e9] "zero-fill faults of a single process",
        documented("DragonFly commit 027193eb61"), (alone);
    number "held" "" [0.0, 0.99] "share of a zero-fill fault under the lock", derived(RATES), (faults.held);
    number "slowing" "" [0.0, 1.0] "increase of the hold time per waiter, as a share", fitted(BUILDS), (faults.slowing);
    number "build-held" "" [0.0, 0.99] "share of a build's work under the lock", fitted(BUILDS), (builds.held);
    number "build-slowing" "" [0.0, 1.0] "increase of a build's hold time per waiter, as a share",
        fitted(BUILDS), (builds.slowing);
    number "serial" "s" [0.0, 100000.0] "buildkernel, serial work", documented("Dillon 2011"), (kernel.serial);
    number "parallel" "s" [0.0, 100000.0] "buildkernel, parallel work",
        derived("277 s user time and the work's own system time, minus 45 s"), (kernel.parallel);
    whole "phases" "" [1.0, 1000.0] "phases of each kind (serial, parallel) in a build",
        assumed("a large number matters only with several builds"), (kernel.phases);
};

impl Locked {
    pub(super) const fn of(faults: Token, builds: Token) -> Self {
        let kernel = Build { serial: 45.0, parallel: 351.0, jobs: 1, phases: 40 };
        Self { faults, builds, alone: ALONE, processors: 48, kernel }
    }

    pub(super) fn parts(&mut self) -> Parts<'_> {
        Parts::default().and(PARAMETERS, self)
    }
}

/// What the model of a token does not honour.
pub(super) fn refuses(locked: &Locked, faultscale: &Faultscale) -> Option<super::Refused> {
    let build = faultscale.work == Work::Build;
    if !matches!(faultscale.work, Work::Anon | Work::Build) {
        return super::refused(
            "work",
            "models zero-fill faults and builds",
            "use --work anon or --work build",
        );
    }
    if faultscale.beside != Beside::None {
        return super::refused(
            "beside",
            "models no address spaces, only a token for all",
            "leave --beside out",
        );
    }
    if build && faultscale.cmd.is_some() {
        return super::refused("cmd", "builds a kernel", "leave --cmd out");
    }
    if build && faultscale.sources != Faultscale::default().sources {
        return super::refused("sources", "builds a kernel", "leave --sources out");
    }
    let greatest = faultscale.workers.iter().copied().max().unwrap_or(1);
    let processors = locked.processors;
    // Jobs of a build share the CPUs; the queue of the lock has one process per CPU.
    (!build && greatest > processors).then(|| {
        ("workers", format!("models {processors} processors"), format!("use --workers up to {processors}"))
    })
}

/// Zero-fill faults by so many workers, or a kernel built by so many jobs.
pub(super) fn perform(
    locked: &Locked,
    faultscale: &Faultscale,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    match faultscale.work {
        Work::Build => build(locked, faultscale, recorder),
        _ => zero_fill(locked, faultscale, recorder),
    }
}

/// An operation is one build.
fn build(locked: &Locked, faultscale: &Faultscale, recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let (processors, kernel) = (locked.processors, locked.kernel);
    let machine = Machine { processors, speed: 1.0, throughput: locked.builds.throughput(processors) };
    let absent = [
        table::TIME_USER,
        table::TIME_SYSTEM,
        table::FAULTS_MINOR,
        table::OPERATION_P50,
        table::OPERATION_P99,
    ];
    let mut sheet = Sheet::without(table::TABLE, &absent);
    let mut points = Vec::new();
    let mut elapsed = 0.0;
    for &workers in &faultscale.workers {
        let outcome = Build { jobs: workers, ..kernel }.run(&machine, faultscale.copies);
        let rate = f64::from(faultscale.copies) / outcome.real;
        let waiting = outcome.waited / (outcome.waited + kernel.serial + kernel.parallel);
        points.push((workers, rate));
        elapsed += outcome.real * 1e9;
        sheet.row([f64::from(workers), rate, outcome.real * 1e9, waiting].map(Some));
    }
    sheet.record(recorder)?;
    metrics(recorder, [(metrics::TIME_ELAPSED, Some(elapsed))].into_iter().chain(throughputs(&points)))
}

/// Zero-fill faults by so many workers.
fn zero_fill(locked: &Locked, faultscale: &Faultscale, recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let greatest = faultscale.workers.iter().copied().max().unwrap_or(1);
    let (rates, alone) = (locked.faults.throughput(greatest), locked.alone);
    let seconds = faultscale.seconds;
    let absent = [table::TIME_USER, table::TIME_SYSTEM, table::OPERATION_P50, table::OPERATION_P99];
    let mut sheet = Sheet::without(table::TABLE, &absent);
    let mut points = Vec::new();
    for &workers in &faultscale.workers {
        let rate = rates[workers as usize];
        points.push((workers, rate * alone));
        let waiting = 1.0 - rate / f64::from(workers.max(1));
        let row = [f64::from(workers), rate * alone, seconds * 1e9, rate * alone * seconds, waiting];
        sheet.row(row.map(Some));
    }
    sheet.record(recorder)?;
    let figures = [
        (metrics::TIME_ELAPSED, Some(seconds * 1e9 * points.len() as f64)),
        (metrics::FAULTS_MINOR, Some(points.iter().map(|p| p.1 * seconds).sum())),
    ];
    metrics(recorder, figures.into_iter().chain(throughputs(&points)))
}
