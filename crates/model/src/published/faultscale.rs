//! `faultscale` under a VM token.

use pagelab_experiment::build::{Sheet, metrics, throughputs};
use pagelab_experiment::experiments::{Beside, Faultscale, Work};
use pagelab_experiment::metrics;
use pagelab_experiment::tables::faultscale as table;
use pagelab_experiment::{Failure, Recorder};

use crate::locks::{ALONE, Build, Machine, Token};

/// Processors of the modelled machine.
const PROCESSORS: u32 = 48;

/// buildkernel without modules: seconds of one job alone, and of all jobs together; in so many phases.
const KERNEL: Build = Build { serial: 45.0, parallel: 351.0, jobs: 1, phases: 40 };

/// What the model of a token does not honour.
pub(super) fn refuses(faultscale: &Faultscale) -> Option<super::Refused> {
    let build = faultscale.work == Work::Build;
    if !matches!(faultscale.work, Work::Anon | Work::Build) {
        return Some(("work", "models zero-fill faults and builds", "use --work anon or --work build"));
    }
    if faultscale.beside != Beside::None {
        return Some(("beside", "models no address spaces, only a token for all", "leave --beside out"));
    }
    if build && faultscale.cmd.is_some() {
        return Some(("cmd", "builds a kernel", "leave --cmd out"));
    }
    if build && faultscale.sources != Faultscale::default().sources {
        return Some(("sources", "builds a kernel", "leave --sources out"));
    }
    let greatest = faultscale.workers.iter().copied().max().unwrap_or(1);
    (greatest > PROCESSORS).then_some(("workers", "models 48 processors", "use --workers up to 48"))
}

/// Zero-fill faults by so many workers, or a kernel built by so many jobs.
pub(super) fn perform(
    (faults, builds): (&Token, &Token),
    faultscale: &Faultscale,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    match faultscale.work {
        Work::Build => build(builds, faultscale, recorder),
        _ => zero_fill(faults, faultscale, recorder),
    }
}

/// An operation is one build.
fn build(token: &Token, faultscale: &Faultscale, recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let machine = Machine { processors: PROCESSORS, speed: 1.0, throughput: token.throughput(PROCESSORS) };
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
        let outcome = Build { jobs: workers, ..KERNEL }.run(&machine, faultscale.copies);
        let rate = f64::from(faultscale.copies) / outcome.real;
        let waiting = outcome.waited / (outcome.waited + KERNEL.serial + KERNEL.parallel);
        points.push((workers, rate));
        elapsed += outcome.real * 1e9;
        sheet.row([f64::from(workers), rate, outcome.real * 1e9, waiting].map(Some));
    }
    sheet.record(recorder)?;
    metrics(recorder, [(metrics::TIME_ELAPSED, Some(elapsed))].into_iter().chain(throughputs(&points)))
}

/// Zero-fill faults by so many workers.
fn zero_fill(token: &Token, faultscale: &Faultscale, recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let greatest = faultscale.workers.iter().copied().max().unwrap_or(1);
    let rates = token.throughput(greatest);
    let seconds = faultscale.seconds;
    let absent = [table::TIME_USER, table::TIME_SYSTEM, table::OPERATION_P50, table::OPERATION_P99];
    let mut sheet = Sheet::without(table::TABLE, &absent);
    let mut points = Vec::new();
    for &workers in &faultscale.workers {
        let rate = rates[workers as usize];
        points.push((workers, rate * ALONE));
        let waiting = 1.0 - rate / f64::from(workers.max(1));
        let row = [f64::from(workers), rate * ALONE, seconds * 1e9, rate * ALONE * seconds, waiting];
        sheet.row(row.map(Some));
    }
    sheet.record(recorder)?;
    let figures = [
        (metrics::TIME_ELAPSED, Some(seconds * 1e9 * points.len() as f64)),
        (metrics::FAULTS_MINOR, Some(points.iter().map(|p| p.1 * seconds).sum())),
    ];
    metrics(recorder, figures.into_iter().chain(throughputs(&points)))
}
