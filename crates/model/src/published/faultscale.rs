//! `faultscale` under a VM token.

use pagelab_experiment::catalogue::metric;
use pagelab_experiment::experiments::{Faultscale, Work};
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Failure, Observation, Recorder};

use super::sheet::{Sheet, unsupported};
use crate::locks::{ALONE, Token};

/// Zero-fill faults by so many workers.
pub(super) fn perform(
    name: &str,
    token: &Token,
    faultscale: &Faultscale,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let greatest = faultscale.workers.iter().copied().max().unwrap_or(1);
    if faultscale.work != Work::Anon || greatest > 48 {
        return Err(unsupported(
            name,
            "faultscale with anonymous memory on up to 48 processors".into(),
            "use --work anon and --workers up to 48".into(),
        ));
    }
    let rates = token.throughput(greatest);
    let seconds = faultscale.seconds;
    let mut columns = Sheet::new(&[
        ("workers", Unit::Count),
        ("throughput", Unit::PerSecond),
        ("time.elapsed", Unit::Nanoseconds),
        ("faults.minor", Unit::Count),
        ("lock.wait", Unit::Share),
    ]);
    let mut points = Vec::new();
    for &workers in &faultscale.workers {
        let rate = rates[workers as usize];
        points.push((workers, rate * ALONE));
        let waiting = 1.0 - rate / f64::from(workers.max(1));
        columns.row(&[f64::from(workers), rate * ALONE, seconds * 1e9, rate * ALONE * seconds, waiting]);
    }
    recorder.observe(columns.table("faultscale"))?;
    let best = points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    for (name, value) in [
        ("time.elapsed", Some(seconds * 1e9 * points.len() as f64)),
        ("faults.minor", Some(points.iter().map(|p| p.1 * seconds).sum())),
        ("throughput.first", points.first().map(|p| p.1)),
        ("throughput.best", best.map(|p| p.1)),
        ("throughput.best.workers", best.map(|p| f64::from(p.0))),
        ("throughput.last", points.last().map(|p| p.1)),
    ] {
        recorder.observe(Observation::Metric(metric(name, value)))?;
    }
    Ok(())
}
