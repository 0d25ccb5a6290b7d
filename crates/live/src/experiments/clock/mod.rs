//! `clock` on the running kernel: is time true on this machine (McDougall 2007)?
//!
//! Sleeps of one step each are timed by every clock at once; what the clocks say is held against each
//! other (`sources`). The processors' time stamp counters are held against each other, pair by pair
//! (`skew`), and, where asked for, this machine's clock against another's (`reference`). The rules
//! by which time is called suspect are in `verdict`.

pub mod reference;
mod skew;
mod sources;
mod verdict;

use std::time::Duration;

use pagelab_experiment::build::{Sheet, metric, note, warn};
use pagelab_experiment::experiments::Clock as Parameters;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Recorder, Result, metrics, tables, warnings};

use self::reference::Reference;
use self::sources::{Reading, SOURCES, Source};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;

/// The longest sleep between two checks of the user's wish to end.
const NAP: Duration = Duration::from_millis(50);

/// Everything that the verdict is made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockReadings {
    /// The step asked for, ns.
    step: u64,
    /// For each step what each source says it lasted, ns, in the order of [`SOURCES`].
    steps: Vec<Vec<Option<f64>>>,
    /// ns that one set of readings took, at most.
    width: f64,
    /// Readings earlier than the one before, of each source.
    backwards: Vec<u64>,
    /// The pairs of processors.
    pairs: Vec<skew::Pair>,
    /// Drift against the other machine and what it may be wrong by, both as a share.
    reference: Option<(f64, f64)>,
}

/// Performs the test.
///
/// # Errors
/// When the other machine's clock does not answer.
pub fn perform(clock: &Parameters, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    let address = clock.reference.as_deref();
    let doing = format!("asking the clock at {}", address.unwrap_or_default());
    let reference = address.map(Reference::at).transpose().map_err(failed(&doing))?;
    let before = reference.as_ref().map(Reference::compare).transpose().map_err(failed(&doing))?;
    harness.begin();
    let mut found = ClockReadings { step: clock.step.saturating_mul(1_000_000), ..ClockReadings::default() };
    let mut readings = vec![Reading::take()];
    for step in 0..clock.steps {
        recorder.progress("steps", u64::from(step), u64::from(clock.steps));
        sleep(Duration::from_millis(clock.step), recorder)?;
        readings.push(Reading::take());
    }
    let (first, last) = (&readings[0], &readings[readings.len() - 1]);
    let ticks_a_second = last.ticks_a_second(first);
    found.width = readings.iter().map(|r| r.width as f64).fold(0.0, f64::max);
    found.steps = readings.windows(2).map(|pair| pair[0].until(&pair[1], ticks_a_second)).collect();
    let whole = first.until(last, ticks_a_second);
    let measured = harness.finish();
    measured.record(recorder)?;
    let after = reference.as_ref().map(Reference::compare).transpose().map_err(failed(&doing))?;
    let drift = before.zip(after).map(|(before, after)| before.drift(&after));
    found.reference = drift.transpose().map_err(failed(&doing))?;
    recorder.progress("processors", 0, 1);
    found.pairs = skew::every_pair(ticks_a_second, recorder)?;
    report(&mut found, &whole, measured.stolen, recorder)
}

/// Sleeps for `step`, in naps, to a deadline.
fn sleep(step: Duration, recorder: &mut dyn Recorder) -> Result<()> {
    // By the kernel's own timer and in one go where the step is short: it is the sleep that is tested.
    let mut left = step;
    while left > Duration::ZERO {
        let nap = if step <= Duration::from_millis(1000) { left } else { left.min(NAP) };
        std::thread::sleep(nap);
        left -= nap;
        recorder.check()?;
    }
    Ok(())
}

fn report(
    found: &mut ClockReadings,
    whole: &[Option<f64>],
    stolen: Option<f64>,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let mut steps = Sheet::new(tables::clock::TABLE);
    for (n, step) in found.steps.iter().enumerate() {
        let at = |index: usize| step[index];
        steps.row([Some(n as f64 + 1.0), at(0), at(1), at(2), at(3), at(4), at(5)]);
    }
    steps.record(recorder)?;
    let mut clocks = Sheet::new(tables::clocks::TABLE);
    let raw = whole[Source::Raw as usize];
    let mut worst_drift: Option<f64> = None;
    for (index, source) in SOURCES.iter().enumerate() {
        let quality = source.quality();
        let drift = whole[index].zip(raw).map(|(clock, raw)| clock / raw - 1.0);
        let drift = drift.filter(|_| !matches!(source, Source::Tsc));
        // Raw is the measure, and the RTC's seconds are too coarse.
        if let (Some(drift), false) = (drift, matches!(source, Source::Raw | Source::Rtc)) {
            worst_drift = Some(worst_drift.unwrap_or(0.0).max(drift.abs()));
        }
        found.backwards.push(quality.as_ref().map_or(0, |q| q.backwards));
        clocks.named(
            [source.name()],
            [
                quality.as_ref().map(|q| q.cost),
                source.resolution(),
                quality.as_ref().and_then(|q| q.smallest),
                drift,
                quality.as_ref().map(|q| q.backwards as f64),
            ],
        );
    }
    clocks.record(recorder)?;
    skew::report(&found.pairs, recorder)?;
    let verdict = verdict::of(found);
    let greatest = |of: fn(&skew::Pair) -> Option<f64>| {
        found
            .pairs
            .iter()
            .map(of)
            .try_fold(0.0, |a: f64, b| b.map(|b| a.max(b)))
            .filter(|_| !found.pairs.is_empty())
    };
    metric(recorder, metrics::CLOCK_AGREEMENT, Some(if verdict.reasons.is_empty() { 1.0 } else { 0.0 }))?;
    metric(recorder, metrics::CLOCK_STEP_WORST, verdict.worst_step)?;
    metric(recorder, metrics::CLOCK_DRIFT_WORST, worst_drift)?;
    metric(recorder, metrics::CLOCK_SKEW_WORST, greatest(skew::Pair::proven))?;
    metric(recorder, metrics::CLOCK_SKEW_BOUND, greatest(skew::Pair::bound))?;
    metric(recorder, metrics::CLOCK_JUMPS, Some(verdict.jumps as f64))?;
    metric(recorder, metrics::CLOCK_STEAL, stolen)?;
    if let Some((drift, error)) = found.reference {
        metric(recorder, metrics::CLOCK_REFERENCE_DRIFT, Some(drift))?;
        metric(recorder, metrics::CLOCK_REFERENCE_ERROR, Some(error))?;
    }
    for reason in &verdict.reasons {
        warn(recorder, warnings::CLOCKS, format!("{}: {reason}", warnings::CLOCKS.0))?;
    }
    for absent in verdict::absent(found) {
        note(recorder, Level::Info, absent)?;
    }
    Ok(())
}
