//! `clock`: whether time is true on this machine (Richard McDougall, 2007).
//!
//! Sleeps of one second are timed by every clock there is; the clocks are held against each other, the
//! processors' time stamp counters too, and each reading is timed itself.
//!
//! When a step is called suspect is part of the experiment: the running kernel's steps, a modelled
//! guest's and the published ones are judged by the same rule, [`suspicions`].

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Feature, Footprint, Tasks};
use crate::declaration::declared;
use crate::metrics::{CLOCK_DRIFT_WORST, CLOCK_SKEW_WORST, CLOCK_STEP_WORST, MetricId};
use crate::tables::{TableId, tables};

tables! {
    clock = "clock", "step, as each clock measured it" {
        STEP = "step", Count, "the number of the step, from 1";
        REALTIME = "realtime", Nanoseconds, "CLOCK_REALTIME";
        MONOTONIC = "monotonic", Nanoseconds, "CLOCK_MONOTONIC";
        RAW = "raw", Nanoseconds, "CLOCK_MONOTONIC_RAW";
        BOOT = "boot", Nanoseconds, "CLOCK_BOOTTIME";
        TSC = "tsc", Nanoseconds, "the time stamp counter";
        RTC = "rtc", Nanoseconds, "the real-time clock of the machine";
    }
    clocks = "clocks", "clock" {
        CLOCK = "clock", Text, "the clock";
        COST = "cost", Nanoseconds, "time of a reading";
        RESOLUTION = "resolution", Nanoseconds, "the kernel's figure";
        SMALLEST_STEP = "smallest.step", Nanoseconds, "the smallest difference of two readings";
        DRIFT = "drift", Ratio, "drift from CLOCK_MONOTONIC_RAW";
        BACKWARDS = "backwards", Count, "readings below the one before";
    }
    clock_skew = "clock.skew", "pair of CPUs" {
        FIRST = "first", Count, "one CPU";
        SECOND = "second", Count, "the other CPU";
        LEAST = "least", Nanoseconds, "lower bound of the second one's lead";
        MOST = "most", Nanoseconds, "upper bound of the second one's lead";
    }
}

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Clock {
    /// The number of steps
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub steps: u32,
    /// The length of a step in milliseconds
    #[arg(long, value_name = "MS", default_value = "1000", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub step: u64,
    /// HOST:PORT where another machine runs: pagelab clock serve
    #[arg(long, value_name = "HOST:PORT")]
    pub reference: Option<String>,
}
declared!(Clock);

impl Clock {
    /// The form that goes before a suite: under a second.
    pub fn short() -> Self {
        Self { steps: 4, step: 100, reference: None }
    }
}

/// The greatest bend of a clock by a time daemon, as a share (adjtimex(2)).
pub const BEND: f64 = 500e-6;
/// What readings may differ by for reasons of their own, ns.
const SLACK: f64 = 100_000.0;
/// How late a sleep may end: this many steps, and so many ns more.
const MAX_LATENESS: (f64, f64) = (1.5, 500e6);

/// Why a step is suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// A clock went backwards.
    Backwards,
    /// Two clocks differ by more than a time daemon may bend one.
    Apart,
    /// The sleep ended early.
    Early,
    /// The sleep lasted far too long: time jumped for all clocks at once, or the machine stood still.
    /// (McDougall's guest slept one second and was told 177.)
    Late,
}

/// What is suspect in a sleep of `asked`, which the clocks saw last from `shortest` to `longest`;
/// `slack` more is allowed for the readings between the clocks. All in ns.
pub fn suspicions(shortest: f64, longest: f64, asked: f64, slack: f64) -> Vec<Suspicion> {
    [
        (shortest < 0.0, Suspicion::Backwards),
        (longest - shortest > BEND * shortest.abs() + SLACK + slack, Suspicion::Apart),
        (shortest < asked * (1.0 - BEND) - SLACK, Suspicion::Early),
        (longest > asked * MAX_LATENESS.0 + MAX_LATENESS.1, Suspicion::Late),
    ]
    .into_iter()
    .filter_map(|(holds, suspicion)| holds.then_some(suspicion))
    .collect()
}

impl Declaration for Clock {
    fn footprint(&self, _: u64) -> Footprint {
        Footprint::default()
    }

    fn primary(&self) -> Option<MetricId> {
        Some(CLOCK_STEP_WORST)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[CLOCK_DRIFT_WORST, CLOCK_SKEW_WORST]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    /// Two threads compare the time stamp counters of two processors.
    fn tasks(&self, _: u64) -> Tasks {
        Tasks::threads(2)
    }

    fn requires(&self) -> Vec<Feature> {
        if self.reference.is_some() { vec![Feature::Network("reference")] } else { Vec::new() }
    }

    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        Some(f64::from(self.steps) * self.step as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suspicion_has_its_case() {
        let of = |shortest: f64, longest: f64| suspicions(shortest * 1e9, longest * 1e9, 1e9, 0.0);
        assert!(of(1.0, 1.0004).is_empty() && of(1.9, 1.9).is_empty());
        assert_eq!(of(1.0, 1.001), [Suspicion::Apart]);
        assert_eq!(of(0.9, 0.9), [Suspicion::Early]);
        assert_eq!(of(177.0, 177.0), [Suspicion::Late]);
        assert_eq!(of(-1.0, 1.0), [Suspicion::Backwards, Suspicion::Apart, Suspicion::Early]);
        assert!(suspicions(1e9, 1.001e9, 1e9, 500_000.0).is_empty());
    }
}
