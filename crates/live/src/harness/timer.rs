//! The loops of [`timing`] behind one trait. Touch, clock and fault detection are chosen once
//! before a run; each loop is compiled for its choice, and the experiment itself only once. A
//! call makes many references, so the indirection adds nothing to a single one.

use std::io;
use std::marker::PhantomData;

use pagelab_experiment::experiments::{Paging, Touch as Way};
use pagelab_kernel::region::Region;
use pagelab_reference::rng::Rng;

use crate::harness::calibrate::{self, Costs};
use crate::harness::clock::{Clock, Monotonic};
use crate::harness::doubt::{Doubt, Slow};
use crate::harness::environment::Entries;
use crate::harness::timing::{self, Tally, Timed};
use crate::harness::touch::{Mixed, Page, Touch, Word, Write};
#[cfg(target_arch = "x86_64")]
use crate::harness::{clock::Tsc, doubt::Mark};

/// Makes references and times them. Its loops panic if a reference lies outside the region.
pub trait Timer {
    /// As [`Doubt::INTERRUPTIONS`].
    fn knows_interruptions(&self) -> bool;
    /// As [`calibrate::costs`]: one reference of each `every` is timed.
    ///
    /// # Errors
    /// When the kernel refuses memory.
    fn costs(&self, every: u32) -> io::Result<Costs>;
    /// As [`Costs::entries`].
    fn entries(&self, costs: &Costs) -> Entries;
    /// As [`calibrate::fault_cost`], ns.
    ///
    /// # Errors
    /// When the kernel refuses memory.
    fn fault_cost(&self) -> io::Result<f64>;
    /// Times each reference.
    fn references(&self, region: &Region, pages: &[u32], tally: &mut Tally) -> Timed;
    /// Times one reference of each `every`.
    fn sampled(&self, region: &Region, pages: &[u32], sampling: (u32, &mut Rng), tally: &mut Tally) -> Timed;
    /// Makes the references, untimed.
    fn bare(&self, region: &Region, pages: &[u32]);
}

/// A timer for the references of `paging`, with the best clock and the best fault detection that
/// this machine has.
///
/// # Errors
/// When the kernel refuses memory for the calibration.
pub fn timer(paging: &Paging) -> io::Result<Box<dyn Timer>> {
    #[cfg(target_arch = "x86_64")]
    if let Some(tsc) = Tsc::calibrated() {
        return with_clock(paging, tsc);
    }
    with_clock(paging, Monotonic)
}

fn with_clock<C: Clock + 'static>(paging: &Paging, clock: C) -> io::Result<Box<dyn Timer>> {
    #[cfg(target_arch = "x86_64")]
    if let Some(mark) = Mark::trusted()? {
        return Ok(with_doubt(paging, clock, mark));
    }
    let threshold = calibrate::threshold(&clock)?;
    Ok(with_doubt(paging, clock, Slow(threshold)))
}

fn with_doubt<C: Clock + 'static, D: Doubt + 'static>(paging: &Paging, clock: C, doubt: D) -> Box<dyn Timer> {
    match (paging.touch, paging.write_share().is_mixed()) {
        (Way::Page, false) => Loops::<Page, C, D>::boxed(clock, doubt),
        (Way::Word, false) => Loops::<Word, C, D>::boxed(clock, doubt),
        (Way::Page, true) => Loops::<Mixed<Page>, C, D>::boxed(clock, doubt),
        (Way::Word, true) => Loops::<Mixed<Word>, C, D>::boxed(clock, doubt),
        (Way::Write, _) => Loops::<Write, C, D>::boxed(clock, doubt),
    }
}

/// The loops compiled for a touch, a clock and a doubt.
struct Loops<T, C, D> {
    clock: C,
    doubt: D,
    touch: PhantomData<T>,
}

impl<T: Touch + 'static, C: Clock + 'static, D: Doubt + 'static> Loops<T, C, D> {
    fn boxed(clock: C, doubt: D) -> Box<dyn Timer> {
        Box::new(Self { clock, doubt, touch: PhantomData })
    }
}

impl<T: Touch, C: Clock, D: Doubt> Timer for Loops<T, C, D> {
    fn knows_interruptions(&self) -> bool {
        D::INTERRUPTIONS
    }

    fn costs(&self, every: u32) -> io::Result<Costs> {
        calibrate::costs::<T, C, D>(&self.clock, &self.doubt, every)
    }

    fn entries(&self, costs: &Costs) -> Entries {
        costs.entries(&self.clock, &self.doubt)
    }

    fn fault_cost(&self) -> io::Result<f64> {
        calibrate::fault_cost(&self.clock)
    }

    fn references(&self, region: &Region, pages: &[u32], tally: &mut Tally) -> Timed {
        timing::references::<T, C, D>(&self.clock, &self.doubt, region, pages, tally)
    }

    fn sampled(&self, region: &Region, pages: &[u32], sampling: (u32, &mut Rng), tally: &mut Tally) -> Timed {
        timing::sampled::<T, C, D>(&self.clock, &self.doubt, region, pages, sampling, tally)
    }

    fn bare(&self, region: &Region, pages: &[u32]) {
        timing::bare::<T>(region, pages);
    }
}
