//! `clock` in a guest whose virtual processors move between cores.

use pagelab_experiment::catalogue::metric;
use pagelab_experiment::experiments::Clock;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Failure, Observation, Recorder};

use super::sheet::Sheet;
use crate::clocks::Guest;

/// What the model of a guest's clock does not honour.
pub(super) fn refuses(clock: &Clock) -> Option<super::Refused> {
    if clock.step != 1000 {
        return Some(("step", "models steps of a second", "use --step 1000"));
    }
    clock.reference.is_some().then_some(("reference", "has no network", "leave --reference out"))
}

/// Sleeps of a second, by the wall clock and by the counter.
pub(super) fn perform(guest: &Guest, clock: &Clock, recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let mut sheet = Sheet::new(&[
        ("step", Unit::Count),
        ("realtime", Unit::Nanoseconds),
        ("monotonic", Unit::Nanoseconds),
    ]);
    let (mut jumps, mut worst, mut wall, mut counter) = (0, 0.0f64, 0.0, 0.0);
    for (n, step) in guest.steps(clock.steps, 1).iter().enumerate() {
        sheet.row(&[n as f64 + 1.0, step.wall * 1e9, step.counter * 1e9]);
        jumps += step.suspicions(0.0).len();
        worst = worst.max((step.wall - step.counter).abs() * 1e9);
        wall += step.wall;
        counter += step.counter;
    }
    recorder.observe(sheet.table("clock"))?;
    for (figure, value) in [
        ("clock.true", Some(f64::from(u8::from(jumps == 0)))),
        ("clock.step.worst", Some(worst)),
        ("clock.drift.worst", (counter > 0.0).then(|| (wall / counter - 1.0).abs())),
        ("clock.jumps", Some(jumps as f64)),
    ] {
        recorder.observe(Observation::Metric(metric(figure, value)))?;
    }
    Ok(())
}
