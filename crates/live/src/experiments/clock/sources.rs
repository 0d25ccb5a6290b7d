//! The clocks of a machine, read all at once.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_getres, clock_gettime};

/// A clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// CLOCK_REALTIME: the wall clock, which daemons set and bend.
    Realtime,
    /// CLOCK_MONOTONIC: bent, not set; stops in suspend.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: the hardware's, neither bent nor set.
    Raw,
    /// CLOCK_BOOTTIME: the monotonic one that goes on in suspend.
    Boot,
    /// The time stamp counter of the processor that happens to read it.
    Tsc,
    /// The battery-backed clock, in whole seconds.
    Rtc,
}

/// All of them, in the order of every list here.
pub(crate) const SOURCES: [Source; 6] =
    [Source::Realtime, Source::Monotonic, Source::Raw, Source::Boot, Source::Tsc, Source::Rtc];

/// Readings for cost and quality.
const READINGS: u32 = 20_000;
/// Attempts at a set of readings; the quickest is kept.
const ATTEMPTS: u32 = 16;

/// What many readings in a row show.
#[derive(Clone, Debug)]
pub(crate) struct Quality {
    /// ns a reading.
    pub cost: f64,
    /// The smallest difference above 0 between two readings, ns.
    pub smallest: Option<f64>,
    /// Readings earlier than the one before.
    pub backwards: u64,
}

impl Source {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Realtime => "realtime",
            Self::Monotonic => "monotonic",
            Self::Raw => "raw",
            Self::Boot => "boot",
            Self::Tsc => "tsc",
            Self::Rtc => "rtc",
        }
    }

    fn id(self) -> Option<ClockId> {
        match self {
            Self::Realtime => Some(ClockId::Realtime),
            Self::Monotonic => Some(ClockId::Monotonic),
            Self::Raw => Some(ClockId::MonotonicRaw),
            Self::Boot => Some(ClockId::Boottime),
            Self::Tsc | Self::Rtc => None,
        }
    }

    /// The reading now: ns, of the TSC ticks, of the RTC whole seconds as ns.
    #[inline(always)]
    fn now(self) -> Option<i64> {
        if let Some(id) = self.id() {
            let time = clock_gettime(id);
            return Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
        }
        match self {
            Self::Tsc => tsc(),
            _ => rtc(),
        }
    }

    /// What the kernel says its resolution is, ns.
    pub(crate) fn resolution(self) -> Option<f64> {
        match self {
            Self::Rtc => rtc().map(|_| 1e9),
            _ => {
                let time = clock_getres(self.id()?);
                Some((time.tv_sec * 1_000_000_000 + time.tv_nsec) as f64)
            }
        }
    }

    /// Reads it many times in a row; `None` where there is none, and for the RTC, which takes
    /// milliseconds. TSC figures other than the cost are in ticks and left out.
    pub(crate) fn quality(self) -> Option<Quality> {
        if self == Self::Rtc {
            return None;
        }
        self.now()?;
        let (mut backwards, mut smallest) = (0, None::<i64>);
        let start = Source::Raw.now()?;
        let mut last = self.now()?;
        for _ in 0..READINGS {
            let now = self.now()?;
            if now < last {
                backwards += 1;
            } else if now > last && smallest.is_none_or(|least| now - last < least) {
                smallest = Some(now - last);
            }
            last = now;
        }
        let cost = (Source::Raw.now()? - start) as f64 / f64::from(READINGS);
        let smallest = smallest.filter(|_| self != Self::Tsc).map(|v| v as f64);
        Some(Quality { cost, smallest, backwards })
    }
}

/// The time stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn tsc() -> Option<i64> {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has both. That user mode may read the counter is Linux's rule
    // unless a process forbids itself to (PR_SET_TSC), which this program does not.
    unsafe {
        _mm_lfence();
        i64::try_from(_rdtsc()).ok()
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn tsc() -> Option<i64> {
    None
}

fn rtc() -> Option<i64> {
    let mut text = [0; 32];
    let file = File::open("/sys/class/rtc/rtc0/since_epoch").ok()?;
    let length = file.read_at(&mut text, 0).ok()?;
    let seconds: i64 = std::str::from_utf8(&text[..length]).ok()?.trim().parse().ok()?;
    seconds.checked_mul(1_000_000_000)
}

/// Every clock at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    values: [Option<i64>; SOURCES.len()],
    /// ns from the first of the quick clocks to the last.
    pub width: u64,
}

impl Reading {
    /// The quickest of some attempts: an interrupt between two clocks does no harm. The RTC is read
    /// once.
    pub(crate) fn take() -> Self {
        let rtc = rtc();
        let attempt = |_| {
            let start = Source::Raw.now().unwrap_or(0);
            let mut values = SOURCES.map(|source| if source == Source::Rtc { None } else { source.now() });
            let end = Source::Raw.now().unwrap_or(0);
            values[Source::Rtc as usize] = rtc;
            Self { values, width: u64::try_from(end - start).unwrap_or(0) }
        };
        (0..ATTEMPTS).map(attempt).min_by_key(|r| r.width).expect("some attempts")
    }

    /// What each clock says passed from this reading to `later`, ns. The TSC has no rate of its own:
    /// its ticks become ns at `ticks_a_second`, that of the whole test by the raw clock, so the steps
    /// show whether it kept that rate.
    pub(crate) fn until(&self, later: &Self, ticks_a_second: Option<f64>) -> Vec<Option<f64>> {
        let passed = |index: usize| Some((later.values[index]? - self.values[index]?) as f64);
        let mut all: Vec<_> = (0..SOURCES.len()).map(passed).collect();
        let tsc = Source::Tsc as usize;
        all[tsc] = all[tsc].zip(ticks_a_second).map(|(ticks, rate)| ticks * 1e9 / rate);
        all
    }

    /// Ticks of the TSC a second of the raw clock, from `earlier` to this reading.
    pub(crate) fn ticks_a_second(&self, earlier: &Self) -> Option<f64> {
        let passed = |source: Source| Some(self.values[source as usize]? - earlier.values[source as usize]?);
        Some(passed(Source::Tsc)? as f64 * 1e9 / passed(Source::Raw)? as f64)
    }
}
