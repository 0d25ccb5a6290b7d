//! Processor time as figures: exact in sum, and in two parts only where the kernel's ticks met both
//! often enough.
//!
//! The kernel counts what a task runs to the nanosecond, and parts it in user mode and kernel as
//! its ticks, some milliseconds apart, found the task. A program shorter than a tick is in user
//! mode whole, or in the kernel whole: a part that no tick met is not known, and is no 0.

use pagelab_experiment::build::Figure;
use pagelab_experiment::metrics;
use pagelab_kernel::rusage::Usage;
use rustix::time::{ClockId, clock_getres};

/// Ticks below which no parts are given: of ten the standard error of a share is up to 16 points.
const MIN_TICKS: f64 = 10.0;

/// The figures `time.cpu`, `time.user` and `time.system` of what one thread, or several of many
/// ticks each, consumed.
pub(crate) fn figures(used: &Usage) -> [Figure; 3] {
    let (user, system) = (used.user as f64, used.system as f64);
    let [user_part, system_part] = parts(user, system);
    named(used.processor as f64, user_part, system_part)
}

/// The figures `time.cpu`, `faults.minor` and `faults.major` of what was consumed.
pub(crate) fn totals(used: &Usage) -> [Figure; 3] {
    let figure = |of: u64| Some(of as f64);
    [
        (metrics::TIME_CPU, figure(used.processor)),
        (metrics::FAULTS_MINOR, figure(used.minor)),
        (metrics::FAULTS_MAJOR, figure(used.major)),
    ]
}

/// As [`figures`] of descendants too short to be parted one by one: by the share of user mode in the
/// samples of all of them together, which is known where those were enough.
pub(crate) fn figures_by(used: &Usage, user_share: Option<f64>) -> [Figure; 3] {
    let whole = used.processor as f64;
    let [user, system] = user_share.map_or([None; 2], |share| met([whole * share, whole * (1.0 - share)]));
    named(whole, user, system)
}

fn named(whole: f64, user: Option<f64>, system: Option<f64>) -> [Figure; 3] {
    [(metrics::TIME_CPU, Some(whole)), (metrics::TIME_USER, user), (metrics::TIME_SYSTEM, system)]
}

/// Both parts as far as they are known.
pub(crate) fn parts(user: f64, system: f64) -> [Option<f64>; 2] {
    if enough(user + system) { met([user, system]) } else { [None; 2] }
}

fn met(parts: [f64; 2]) -> [Option<f64>; 2] {
    parts.map(|part| Some(part).filter(|&part| part > 0.0))
}

/// Whether so many nanoseconds are of ticks enough.
pub(crate) fn enough(nanoseconds: f64) -> bool {
    nanoseconds >= MIN_TICKS * tick()
}

/// From one tick to the next, ns: the resolution of the clock that the ticks move on.
fn tick() -> f64 {
    let time = clock_getres(ClockId::MonotonicCoarse);
    // Where the kernel does not say, the longest that Linux has.
    if time.tv_nsec > 0 { time.tv_nsec as f64 } else { 1e7 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_without_ticks_are_unknown_not_zero() {
        assert!((1e5..=1e7).contains(&tick()), "{} ns", tick());
        assert_eq!(parts(3.0 * tick(), 0.0), [None; 2], "too few ticks");
        assert_eq!(parts(99.0 * tick(), 0.0), [Some(99.0 * tick()), None]);
        assert_eq!(parts(6.0 * tick(), 6.0 * tick()), [Some(6.0 * tick()); 2]);
        let used = Usage { user: 2000, system: 1000, processor: 3000, ..Usage::default() };
        let values = |figures: [Figure; 3]| figures.map(|(_, value)| value);
        assert_eq!(values(figures(&used)), [Some(3000.0), None, None], "the sum is exact");
        assert_eq!(values(figures_by(&used, Some(0.25))), [Some(3000.0), Some(750.0), Some(2250.0)]);
        assert_eq!(values(figures_by(&used, Some(1.0))), [Some(3000.0), Some(3000.0), None]);
        assert_eq!(values(figures_by(&used, None)), [Some(3000.0), None, None]);
        // A tick fell between the thread's clock and the parts.
        let used = Usage { processor: 2900, ..used };
        assert_eq!(values(figures(&used)), [Some(2900.0), None, None], "the clock is what is exact");
    }
}
