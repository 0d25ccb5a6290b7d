//! Timestamps for single references: the processor's time stamp counter where the kernel itself
//! trusts it, else `clock_gettime(CLOCK_MONOTONIC)` through the vDSO.
//!
//! The TSC is used when the processor calls it invariant *and* the kernel's clock source is `tsc`:
//! then it ticks at one rate, never stops, and is the same on all processors. Its rate is measured
//! against `CLOCK_MONOTONIC_RAW`, which no time daemon bends.
//!
//! A reading is `lfence; rdtsc`: the fence waits until the loads of the reference are done, so that
//! a load that misses the caches is not still under way when its reference is said to have ended.
//! `rdtscp` would do the same, but emulated processors lack it (QEMU's default one stops with an
//! invalid instruction). It is also what the kernel's own vDSO does.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// A source of timestamps.
pub trait Clock {
    /// Its name in the environment (`clock.source`).
    const NAME: &'static str;
    /// Ticks since some start.
    fn now(&self) -> u64;
    /// Nanoseconds, rounded, from a difference of ticks.
    fn nanoseconds(&self, ticks: u64) -> u64;
}

/// Ticks to nanoseconds as `ticks × multiplier / 2^32`, rounded to nearest, in 128 bits: exact for
/// any difference that fits 64 bits of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    multiplier: u64,
}

impl Conversion {
    /// From a number of ticks and the nanoseconds they took.
    ///
    /// `None` when either is 0 or a tick would be longer than a second.
    pub fn new(ticks: u64, nanoseconds: u64) -> Option<Self> {
        if ticks == 0 || nanoseconds == 0 || nanoseconds / ticks > 1_000_000_000 {
            return None;
        }
        let multiplier = ((u128::from(nanoseconds) << 32) + u128::from(ticks) / 2) / u128::from(ticks);
        u64::try_from(multiplier).ok().filter(|&m| m > 0).map(|multiplier| Self { multiplier })
    }

    /// Converts; saturates at `u64::MAX`.
    #[inline(always)]
    pub fn nanoseconds(self, ticks: u64) -> u64 {
        let product = u128::from(ticks) * u128::from(self.multiplier) + (1 << 31);
        (product >> 32).try_into().unwrap_or(u64::MAX)
    }
}

/// `clock_gettime(CLOCK_MONOTONIC)`: a tick is a nanosecond.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic;

impl Clock for Monotonic {
    const NAME: &'static str = "clock_gettime";

    #[inline(always)]
    fn now(&self) -> u64 {
        nanoseconds_of(ClockId::Monotonic)
    }

    #[inline(always)]
    fn nanoseconds(&self, ticks: u64) -> u64 {
        ticks
    }
}

#[inline(always)]
fn nanoseconds_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The x86 time stamp counter.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Tsc(Conversion);

#[cfg(target_arch = "x86_64")]
impl Clock for Tsc {
    const NAME: &'static str = "tsc";

    #[inline(always)]
    fn now(&self) -> u64 {
        use std::arch::x86_64::{_mm_lfence, _rdtsc};
        // SAFETY: every x86-64 processor has both; user mode may read the TSC, for the kernel that
        // has it as its clock source reads it in user mode itself (vDSO).
        unsafe {
            _mm_lfence();
            _rdtsc()
        }
    }

    #[inline(always)]
    fn nanoseconds(&self, ticks: u64) -> u64 {
        self.0.nanoseconds(ticks)
    }
}

#[cfg(target_arch = "x86_64")]
impl Tsc {
    /// Calibrates over a tenth of a second; `None` where the TSC is not to be trusted.
    pub fn calibrated() -> Option<Self> {
        if !invariant() || kernel_source().as_deref() != Some("tsc") {
            return None;
        }
        let clock = Self(Conversion { multiplier: 1 });
        let (ticks_before, before) = clock.pair();
        std::thread::sleep(std::time::Duration::from_millis(100));
        let (ticks_after, after) = clock.pair();
        Conversion::new(ticks_after.checked_sub(ticks_before)?, after.checked_sub(before)?).map(Self)
    }

    /// A TSC reading and the raw monotonic time halfway through it: the tightest of 32 attempts, so
    /// an interrupt between the readings does no harm.
    fn pair(&self) -> (u64, u64) {
        let attempt = |_| {
            let start = self.now();
            let time = nanoseconds_of(ClockId::MonotonicRaw);
            let width = self.now() - start;
            (width, start + width / 2, time)
        };
        let (_, ticks, time) = (0..32).map(attempt).min().expect("32 attempts");
        (ticks, time)
    }
}

/// Whether CPUID says that the TSC ticks at one rate in all power states.
#[cfg(target_arch = "x86_64")]
fn invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
}

/// The kernel's clock source, where /sys shows it.
pub fn kernel_source() -> Option<String> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn conversion_is_right_to_a_nanosecond_in_a_second(
            khz in 1_000u64..10_000_000, ticks in 0u64..10_000_000_000,
        ) {
            // One second of ticks at this rate.
            let conversion = Conversion::new(khz * 1000, 1_000_000_000).unwrap();
            let exact = u128::from(ticks) * 1_000_000 / u128::from(khz);
            let got = u128::from(conversion.nanoseconds(ticks));
            // The multiplier is rounded to 2^-33 ns a tick.
            let allowed = 1 + u128::from(ticks >> 32);
            prop_assert!(got.abs_diff(exact) <= allowed, "{} against {}", got, exact);
        }

        #[test]
        fn conversion_never_panics_and_keeps_order(ticks: u64, rate in 1u64..u64::MAX, a: u64, b: u64) {
            if let Some(conversion) = Conversion::new(ticks, rate) {
                let (low, high) = (a.min(b), a.max(b));
                prop_assert!(conversion.nanoseconds(low) <= conversion.nanoseconds(high));
            }
        }
    }

    #[test]
    fn impossible_rates_are_refused() {
        assert_eq!(Conversion::new(0, 1), None);
        assert_eq!(Conversion::new(1, 0), None);
    }
}
