//! What is measured before the run: from which time on a reference may have faulted, and what the
//! harness adds to a reference and to a fault.
//!
//! Costs are processor time of the thread, so that what else runs on the machine is not in them,
//! and medians of paired differences with their interval. An interval that reaches 0 says that the
//! cost could not be told.

use pagelab_experiment::environment::{
    CLASSIFICATION_COST, CLASSIFICATION_COST_INTERVAL, CLOCK_COST, CLOCK_COST_INTERVAL, CLOCK_SOURCE,
    FAULT_DETECTION, HARNESS_COST, HARNESS_COST_INTERVAL,
};
use std::hint::black_box;
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use pagelab_experiment::build::{Estimate, estimate, median};
use pagelab_kernel::region::Region;
use pagelab_kernel::rusage;
use pagelab_reference::rng::Rng;

use crate::harness::clock::Clock;
use crate::harness::doubt::{Doubt, Slow};
use crate::harness::environment::{Entries, entries};
use crate::harness::timing::{Tally, bare, references, sampled};
use crate::harness::touch::{Touch, Word, Write};

/// Pages that are faulted in to find the cheapest fault.
const FAULTS: usize = 1024;
/// The share of the cheapest fault from which on a reference is looked at.
const SHARE: f64 = 0.75;
/// The pages of the cost measurement: 256 KiB with 4 KiB pages, so within a second-level cache.
const PAGES: u32 = 64;
/// References in a round of the cost measurement at most and at least, and the number of rounds.
const REFERENCES: RangeInclusive<usize> = 500..=10_000;
const ROUNDS: usize = 30;
/// Rounds of faults.
const FAULT_ROUNDS: usize = 9;
/// Readings of the clock in a round.
const READINGS: RangeInclusive<usize> = 500..=5_000;
/// Classifications in a round.
const CLASSIFICATIONS: RangeInclusive<usize> = 50..=500;
/// How long a round is to take: of an emulated processor, on which a reference takes microseconds,
/// it has fewer parts.
const ROUND: Duration = Duration::from_millis(5);

/// What the laboratory adds.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// One reading of the clock, ns.
    pub clock: Option<Estimate>,
    /// Timing and recording a reference of a present page, ns.
    pub reference: Option<Estimate>,
    /// Telling what a reference in doubt was, ns: in no reference's time, but in the thread's
    /// processor time.
    pub classification: Option<Estimate>,
}

impl Costs {
    /// What times the references, how faults are told from hits, and what both cost, as facts about
    /// the machine. A cost that could not be told is absent.
    pub fn entries<C: Clock, D: Doubt>(&self, _: &C, _: &D) -> Entries {
        let median = |cost: Option<Estimate>| cost.map(|cost| format!("{:.1}", cost.median));
        let interval = |cost: Option<Estimate>| cost.map(|cost| format!("{:.1}..{:.1}", cost.low, cost.high));
        entries([
            (CLOCK_SOURCE, Some(C::NAME.to_owned())),
            (FAULT_DETECTION, Some(D::NAME.to_owned())),
            (CLOCK_COST, median(self.clock)),
            (CLOCK_COST_INTERVAL, interval(self.clock)),
            (HARNESS_COST, median(self.reference)),
            (HARNESS_COST_INTERVAL, interval(self.reference)),
            (CLASSIFICATION_COST, median(self.classification)),
            (CLASSIFICATION_COST_INTERVAL, interval(self.classification)),
        ])
    }
}

/// The nanoseconds from which on a reference may have faulted, where no mark tells: three quarters
/// of the fastest fault there is.
///
/// The fastest is a read of anonymous memory that was never written, which only maps the shared
/// zero page: no page is allocated, cleared, read or looked up. The fastest of 1,024 is taken, one
/// word touched, so every fault in the run takes longer; the quarter below it is for luck. A longer
/// reference is looked at, not called a fault.
///
/// # Errors
/// When the kernel refuses memory.
pub fn threshold<C: Clock>(clock: &C) -> io::Result<u64> {
    let region = Region::base_pages(FAULTS)?;
    let mut tally = Tally::default();
    let pages: Vec<u32> = (0..FAULTS as u32).collect();
    references::<Word, _, _>(clock, &Slow(0), &region, &pages, &mut tally);
    let [hit, minor, _] = &tally.kinds;
    let fastest = minor.min().or(hit.min()).unwrap_or(0);
    Ok((fastest as f64 * SHARE) as u64)
}

/// The nanoseconds of a first touch of anonymous memory and of giving the page back: the median over
/// rounds of 1,024 pages, each mapped, written and unmapped.
///
/// # Errors
/// When the kernel refuses memory.
pub fn fault_cost<C: Clock>(clock: &C) -> io::Result<f64> {
    let pages: Vec<u32> = (0..FAULTS as u32).collect();
    let mut rounds = Vec::with_capacity(FAULT_ROUNDS);
    for _ in 0..FAULT_ROUNDS {
        let start = clock.now();
        let region = Region::base_pages(FAULTS)?;
        bare::<Write>(&region, &pages);
        drop(region);
        rounds.push(clock.nanoseconds(clock.now() - start) as f64 / FAULTS as f64);
    }
    Ok(median(rounds).expect("some rounds"))
}

/// What the laboratory adds with this touch, clock and doubt, where one reference of each `every`
/// is timed.
///
/// # Errors
/// When the kernel refuses memory.
pub fn costs<T: Touch, C: Clock, D: Doubt>(clock: &C, doubt: &D, every: u32) -> io::Result<Costs> {
    let region = Region::base_pages(PAGES as usize)?;
    region.populate(|_, _| {});
    let pages: Vec<u32> = (0..*REFERENCES.end() as u32).map(|i| i % PAGES).collect();
    let pages = &pages[..fitting(REFERENCES, |count| bare::<T>(&region, &pages[..count]))];
    let mut tally = Tally::default();
    let mut rng = Rng::new(1);
    let mut timed = || {
        let _ = match every {
            1 => references::<T, _, _>(clock, doubt, &region, pages, &mut tally),
            every => sampled::<T, _, _>(clock, doubt, &region, pages, (every, &mut rng), &mut tally),
        };
    };
    let reference = paired(ROUNDS, || bare::<T>(&region, pages), &mut timed, pages.len());
    let reading = |count| {
        for _ in 0..count {
            black_box(clock.now());
        }
    };
    let mut classifying = Tally::default();
    let classification = |count| {
        (0..count).for_each(|_| {
            classifying.classify(0);
            doubt.arm();
        });
    };
    Ok(Costs {
        clock: told(spent(ROUNDS, READINGS, reading)),
        reference,
        classification: told(spent(ROUNDS, CLASSIFICATIONS, classification)),
    })
}

/// As many parts of a load, within `parts`, as take a [`ROUND`]. The first try warms up.
fn fitting(parts: RangeInclusive<usize>, mut load: impl FnMut(usize)) -> usize {
    let (fewest, most) = parts.into_inner();
    load(fewest);
    let before = rusage::thread_time();
    load(fewest);
    let took = rusage::thread_time() - before;
    let fitting = ROUND.as_nanos() as u64 * fewest as u64 / took.max(1);
    usize::try_from(fitting).unwrap_or(most).clamp(fewest, most)
}

/// What the second load takes beyond the first, ns of processor time for each of `parts`: the
/// median of the differences, the two in turn and each as often first. `None` where that cannot be
/// told from nothing.
pub fn paired(
    rounds: usize,
    mut first: impl FnMut(),
    mut second: impl FnMut(),
    parts: usize,
) -> Option<Estimate> {
    let differences = (0..=rounds).map(|round| {
        let before = rusage::thread_time();
        if round % 2 == 0 {
            first()
        } else {
            second()
        }
        let middle = rusage::thread_time();
        if round % 2 == 0 {
            second()
        } else {
            first()
        }
        let (early, late) = ((middle - before) as f64, (rusage::thread_time() - middle) as f64);
        if round % 2 == 0 { (late - early) / parts as f64 } else { (early - late) / parts as f64 }
    });
    // The first round warms up.
    told(estimate(&differences.skip(1).collect::<Vec<_>>()))
}

fn spent(rounds: usize, parts: RangeInclusive<usize>, mut load: impl FnMut(usize)) -> Option<Estimate> {
    let parts = fitting(parts, &mut load);
    let rounds = (0..=rounds).map(|_| {
        let before = rusage::thread_time();
        load(parts);
        (rusage::thread_time() - before) as f64 / parts as f64
    });
    estimate(&rounds.skip(1).collect::<Vec<_>>())
}

/// A cost whose interval does not reach 0.
fn told(cost: Option<Estimate>) -> Option<Estimate> {
    cost.filter(|cost| cost.low > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::clock::Monotonic;
    use pagelab_experiment::environment::ALL;

    #[test]
    fn every_cost_is_in_the_catalogue_and_one_that_cannot_be_told_is_absent() {
        let cost = Some(Estimate { median: 21.6, low: 21.1, high: 22.3 });
        let costs = Costs { clock: cost, reference: cost, classification: None };
        let all = costs.entries(&Monotonic, &Slow(1));
        assert_eq!((&*all["harness.cost"], &*all["harness.cost.interval"]), ("21.6", "21.1..22.3"));
        assert!(!all.contains_key("classification.cost"));
        assert_eq!(all["clock.cost"], "21.6");
        for name in all.keys() {
            assert!(ALL.iter().any(|(known, _)| known == name), "{name}");
        }
    }

    #[test]
    fn only_significant_costs_are_reported() {
        let spin = |turns: u64| {
            for turn in 0..turns {
                black_box(turn);
            }
        };
        assert_eq!(paired(20, || spin(20_000), || spin(20_000), 1).filter(|cost| cost.median > 2000.0), None);
        let cost = paired(20, || spin(20_000), || spin(200_000), 180_000).unwrap();
        assert!(cost.low <= cost.median && cost.median <= cost.high && cost.high < 100.0, "{cost:?}");
    }

    #[test]
    fn a_round_has_as_many_parts_as_fit() {
        assert_eq!(fitting(500..=10_000, |_| ()), 10_000, "what takes nothing");
        let spin = |turns: usize| {
            let begun = rusage::thread_time();
            while rusage::thread_time() - begun < turns as u64 * 1000 {}
        };
        let fitting = fitting(100..=10_000, spin);
        assert!((2500..=5000).contains(&fitting), "{fitting} of a microsecond in five milliseconds");
        let mut most = 0;
        assert_eq!(
            super::fitting(2..=10, |count| {
                most = most.max(count);
                spin(count * 3000)
            }),
            2
        );
        assert_eq!(most, 2, "no more than the fewest are tried");
    }

    /// Also on a machine that does much else: wall time would be in the thousands.
    #[test]
    fn reference_costs_are_recorded() {
        let costs = costs::<Word, _, _>(&Monotonic, &Slow(u64::MAX), 1).unwrap();
        for cost in [costs.clock, costs.reference, costs.classification] {
            let cost = cost.unwrap();
            assert!(cost.low > 1.0 && cost.high < 5000.0, "{costs:?}");
        }
        assert!(
            costs.reference.unwrap().median > 0.5 * costs.clock.unwrap().median,
            "a reading is in it: {costs:?}"
        );
    }
}
