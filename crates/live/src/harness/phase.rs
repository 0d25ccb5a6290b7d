//! Where between two ticks of the kernel a measurement begins.
//!
//! A tick is work that is in the figures of whatever it interrupts. In a guest everything else is
//! the same each time, so a word more on the kernel's command line, which moves the beginning of a
//! load against the ticks, would look like a change of the kernel. A measurement there begins at a
//! moment that its repetition alone decides: both sides of a comparison begin alike, and what the
//! repetitions of a side differ by shows how much the moment matters.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// The share of a period by which each repetition begins later than the one before: of the golden
/// section, so that few repetitions are spread as evenly as many.
const STEP: f64 = 0.618_033_988_749_894_9;
/// Periods after which a clock that does not move is no longer waited for.
const TIMEOUT_PERIODS: u32 = 8;

fn duration(time: Timespec) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The clock that moves at ticks alone; by how much it is behind then is the machine's affair.
fn tick() -> Duration {
    duration(clock_gettime(ClockId::MonotonicCoarse))
}

fn now() -> Duration {
    duration(clock_gettime(ClockId::Monotonic))
}

/// How long after a tick this repetition begins.
fn offset(repetition: u32, period: Duration) -> Duration {
    period.mul_f64((f64::from(repetition) * STEP).fract())
}

/// Waits, working, for the next tick and then for the repetition's own moment; `None`: no moment is
/// asked for.
pub fn wait(repetition: Option<u32>) {
    let Some(repetition) = repetition else { return };
    let period = duration(clock_getres(ClockId::MonotonicCoarse));
    let (before, begun) = (tick(), now());
    while tick() == before {
        if now() - begun > period * TIMEOUT_PERIODS {
            return;
        }
    }
    let moment = now() + offset(repetition, period);
    while now() < moment {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_spread_over_the_period() {
        let period = Duration::from_millis(4);
        assert_eq!(offset(0, period), Duration::ZERO);
        let mut offsets: Vec<Duration> = (0..8).map(|n| offset(n, period)).collect();
        offsets.sort();
        assert!(offsets.windows(2).all(|pair| pair[1] - pair[0] > period / 20), "{offsets:?}");
        assert!(offsets.iter().all(|offset| *offset < period));
    }

    /// The middle of many, as another process may take the processor at any of them, and of the
    /// same up to ten times where it does so at most of them. Of moments at random the middle is
    /// that near once in 250 times.
    #[test]
    fn a_repetition_begins_at_its_moment() {
        let period = duration(clock_getres(ClockId::MonotonicCoarse));
        for repetition in [0, 1, 2] {
            let mut late: [Duration; 15] = [period; 15];
            let near = (0..10).any(|_| {
                late.fill_with(|| {
                    wait(Some(repetition));
                    let (before, begun) = (tick(), now());
                    while tick() == before {}
                    // Some ticks may be missed: the moment is one of the period.
                    let past = (now() - begun + offset(repetition, period)).as_nanos() % period.as_nanos();
                    Duration::from_nanos(past as u64).min(period - Duration::from_nanos(past as u64))
                });
                late.sort();
                late[7] < period / 10
            });
            assert!(near, "{repetition}: {late:?}");
        }
    }
}
