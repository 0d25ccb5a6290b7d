//! `faultscale` under a VM token.

use pagelab_experiment::build::{Sheet, metrics, throughputs};
use pagelab_experiment::catalogue::name;
use pagelab_experiment::experiments::{Faultscale, Work};
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Failure, Recorder};

use crate::locks::{ALONE, Token};

/// Processors of the modelled machine.
const PROCESSORS: u32 = 48;

/// What the model of a token does not honour.
pub(super) fn refuses(faultscale: &Faultscale) -> Option<super::Refused> {
    if faultscale.work != Work::Anon {
        return Some(("work", "models zero-fill faults", "use --work anon"));
    }
    let greatest = faultscale.workers.iter().copied().max().unwrap_or(1);
    (greatest > PROCESSORS).then_some(("workers", "models 48 processors", "use --workers up to 48"))
}

/// Zero-fill faults by so many workers.
pub(super) fn perform(
    token: &Token,
    faultscale: &Faultscale,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let greatest = faultscale.workers.iter().copied().max().unwrap_or(1);
    let rates = token.throughput(greatest);
    let seconds = faultscale.seconds;
    let columns = [
        ("workers", Unit::Count),
        ("throughput", Unit::PerSecond),
        ("time.elapsed", Unit::Nanoseconds),
        ("faults.minor", Unit::Count),
        ("lock.wait", Unit::Share),
    ];
    let mut sheet = Sheet::new("faultscale", &columns);
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
        (name::TIME_ELAPSED, Some(seconds * 1e9 * points.len() as f64)),
        (name::FAULTS_MINOR, Some(points.iter().map(|p| p.1 * seconds).sum())),
    ];
    metrics(recorder, figures.into_iter().chain(throughputs(&points)))
}
