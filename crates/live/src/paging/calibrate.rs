//! What is measured before the run: from which time on a reference may have faulted, and what the
//! harness adds to a reference.

use std::io;

use pagelab_experiment::build::median;

use super::timing::{Tally, bare, references};
use super::touch::{Touch, Word, Write};
use crate::clock::{Clock, Monotonic};
use crate::region::{HugePages, Region};

/// Pages that are faulted in to find the cheapest fault.
const FAULTS: usize = 1024;
/// The share of the cheapest fault from which on a reference is looked at.
const SHARE: f64 = 0.75;
/// The pages of the cost measurement: 256 KiB with 4 KiB pages, so within a second-level cache.
const PAGES: u32 = 64;
/// References in a round of the cost measurement, and the number of rounds.
const REFERENCES: usize = 20_000;
const ROUNDS: usize = 9;

/// The nanoseconds from which on a reference may have faulted: three quarters of the fastest
/// fault there is.
///
/// The fastest is a read of anonymous memory that was never written, which only maps the shared
/// zero page: no page is allocated, cleared, read or looked up. The fastest of 1,024 is taken, one
/// word touched, so every fault in the run takes longer; the quarter below it is for luck. A longer reference
/// is looked at, not called a fault.
///
/// # Errors
/// When the kernel refuses memory.
pub fn threshold<C: Clock>(clock: &C) -> io::Result<u64> {
    let region = Region::anonymous(FAULTS)?;
    // Refused by kernels without huge pages, where it is not needed.
    let _ = region.advise(HugePages::Forbidden);
    let mut tally = Tally::new(0);
    let pages: Vec<u32> = (0..FAULTS as u32).collect();
    references::<Word, _>(clock, &region, &pages, &mut tally);
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
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = clock.now();
        let region = Region::anonymous(FAULTS)?;
        let _ = region.advise(HugePages::Forbidden);
        bare::<Write>(&region, &pages);
        drop(region);
        rounds.push(clock.nanoseconds(clock.now() - start) as f64 / FAULTS as f64);
    }
    Ok(median(rounds).expect("some rounds"))
}

/// The nanoseconds that timing and recording add to a reference of a present page: the median over
/// rounds, full and bare loop in turn, of the difference.
///
/// # Errors
/// When the kernel refuses memory.
pub fn harness_cost<T: Touch, C: Clock>(clock: &C, threshold: u64) -> io::Result<f64> {
    let region = Region::anonymous(PAGES as usize)?;
    let _ = region.advise(HugePages::Forbidden);
    region.populate(|_, _| {});
    let pages: Vec<u32> = (0..REFERENCES as u32).map(|i| i % PAGES).collect();
    let mut tally = Tally::new(threshold);
    let costs: Vec<f64> = (0..=ROUNDS)
        .map(|_| {
            let start = Monotonic.now();
            bare::<T>(&region, &pages);
            let middle = Monotonic.now();
            references::<T, _>(clock, &region, &pages, &mut tally);
            let end = Monotonic.now();
            ((end - middle) as f64 - (middle - start) as f64) / REFERENCES as f64
        })
        .skip(1)
        .collect();
    Ok(median(costs).expect("some rounds"))
}
