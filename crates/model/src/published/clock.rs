//! `clock` in a guest whose virtual processors move between cores.

use pagelab_experiment::build::{Sheet, metrics};
use pagelab_experiment::experiments::Clock;
use pagelab_experiment::metrics;
use pagelab_experiment::tables::clock as table;
use pagelab_experiment::{Failure, Recorder};

use crate::clocks::Guest;
use crate::parameter::Seed;

/// What the model of a guest's clock does not honour.
pub(super) fn refuses(clock: &Clock) -> Option<super::Refused> {
    if clock.step != 1000 {
        return super::refused("step", "models only steps of one second", "use --step 1000");
    }
    clock.reference.is_some().then(|| super::refusal("reference", "has no network", "leave --reference out"))
}

/// Sleeps of a second, by the wall clock and by the counter.
pub(super) fn perform(
    guest: &Guest,
    seed: Seed,
    clock: &Clock,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let absent = [table::RAW, table::BOOT, table::TSC, table::RTC];
    let mut sheet = Sheet::without(table::TABLE, &absent);
    let (mut jumps, mut worst, mut wall, mut counter) = (0, 0.0f64, 0.0, 0.0);
    for (n, step) in guest.steps(clock.steps, seed.0).iter().enumerate() {
        sheet.row([n as f64 + 1.0, step.wall * 1e9, step.counter * 1e9].map(Some));
        jumps += step.suspicions(0.0).len();
        worst = worst.max((step.wall - step.counter).abs() * 1e9);
        wall += step.wall;
        counter += step.counter;
    }
    sheet.record(recorder)?;
    let figures = [
        (metrics::CLOCK_AGREEMENT, Some(f64::from(u8::from(jumps == 0)))),
        (metrics::CLOCK_STEP_WORST, Some(worst)),
        (metrics::CLOCK_DRIFT_WORST, (counter > 0.0).then(|| (wall / counter - 1.0).abs())),
        (metrics::CLOCK_JUMPS, Some(jumps as f64)),
    ];
    metrics(recorder, figures)
}
