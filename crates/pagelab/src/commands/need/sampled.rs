//! The referenced memory of a process by DAMON, from a sample of its pages: for a process whose
//! page tables take long to walk.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use pagelab_analysis::ages;
use pagelab_kernel::damon::{self, Sampler};
use pagelab_kernel::error::Error;
use pagelab_kernel::geometry;
use pagelab_kernel::region::page_size;
use pagelab_kernel::working_set::Process;
use pagelab_report::need::Age;

use super::running::{restoring, wait};
use crate::interrupt::Interrupt;

/// Pages that are sampled at once. A sampled page costs kdamond two walks to one page.
const SAMPLES: usize = 1000;
/// So long before the end of an interval kdamond is asked for what it finds then. Asking waits for
/// that, and no signal ends it.
const LEAD: Duration = Duration::from_millis(400);

/// The memory that was referenced within intervals of doubling length, and the pages of a sample;
/// or why this kernel's DAMON cannot tell.
///
/// # Errors
/// When the process ends, DAMON cannot be set up or restored, or the user interrupts.
pub fn measure(
    process: &Process,
    pid: u32,
    seconds: u32,
    interrupt: Interrupt,
    quiet: bool,
) -> Result<Result<(Vec<Age>, usize), String>> {
    restoring(damon::FILES[0].into(), interrupt, quiet, || {
        let sampler = match Sampler::open() {
            Ok(sampler) => sampler,
            Err(Error::Unsupported { what, .. }) => return Ok(Err(format!("has no use of it: {what}"))),
            Err(error) => return Err(error.into()),
        };
        let (mut found, mut samples) = (Vec::new(), 0);
        for interval in ages::intervals(seconds) {
            let (age, count) = sample(&sampler, process, pid, interval, interrupt)?;
            found.push(age);
            samples = count;
        }
        Ok(Ok((found, samples)))
    })
}

/// Samples for one interval. Returns the number of pages too.
fn sample(
    sampler: &Sampler,
    process: &Process,
    pid: u32,
    seconds: u32,
    interrupt: Interrupt,
) -> Result<(Age, usize)> {
    let ended = || format!("the process {pid} ended");
    let failed = |error: Error| match process.resident() {
        Ok(_) => error.into(),
        Err(_) => anyhow!(ended()),
    };
    let page = page_size() as u64;
    let strata = ages::strata(&process.anonymous().with_context(ended)?, page, SAMPLES);
    let interval = Duration::from_secs(seconds.into());
    sampler.begin(pid, &strata, interval).map_err(failed)?;
    wait(Instant::now() + interval - LEAD, interrupt)?;
    let estimate = ages::estimate(&strata, &sampler.finish().map_err(failed)?, page);
    let (resident, private) = process.resident().with_context(ended)?;
    let (lower, upper) = estimate.interval();
    // The kernel does not empty the TLB when it clears a bit.
    let hidden = geometry::tlb_entries().saturating_mul(page);
    let age = Age {
        seconds,
        size: estimate.bytes.min(private),
        lower: lower.min(private),
        upper: upper.saturating_add(hidden).min(private),
        shared: None,
        resident,
        resident_private: private,
    };
    Ok((age, strata.len()))
}
