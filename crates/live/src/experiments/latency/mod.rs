//! `latency` on the running kernel: what one access costs from the first-level cache to a page fault.
//!
//! One processor, one thread. A mapping as large as the greatest working set is written once: in
//! huge pages for the loads of every cache line, then in base pages for the loads of one line of
//! each page. At each size a chain is laid over the first part of the mapping and followed once,
//! then in `ROUNDS` rounds that are timed; the figure is the median round. First touches are timed
//! in rounds of fresh mappings, without unmapping them. Neither waits for anything, so their times
//! are the thread's processor time, which other programs do not lengthen.

mod chain;
mod touch;

use pagelab_experiment::build::{
    Figure, Geometry, Loads, SHARED_CACHE, latencies, loads, median, metrics, note,
};
use pagelab_experiment::environment::{CACHE_L1D, CACHE_L2, CACHE_L3, TLB_L1D, TLB_L2};
use pagelab_experiment::experiments::Latency;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Recorder, Result};
use pagelab_kernel::affinity::Pinned;
use pagelab_kernel::region::{HugePages, page_size};
use pagelab_kernel::rusage;
use pagelab_reference::rng::Rng;
use rustix::time::{ClockId, clock_gettime};

use self::chain::{Field, Places};
use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::environment::{self, Entries};
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;
use crate::harness::processor;

/// Rounds of loads at a size, and of first touches.
const ROUNDS: u64 = 5;
/// Loads before the first round, at most: more are not needed where the set is far beyond every cache.
const WARM: u64 = 1 << 20;

/// Performs the sweep; see the module's comment.
///
/// # Errors
/// When the kernel refuses memory.
pub fn perform(latency: &Latency, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    let sizes = latency.sweep().bytes(page_size() as u64);
    context.join()?;
    let _processor = Pinned::to(1).map_err(failed("choosing processors"))?;
    harness.begin();
    let (used, begun) = (rusage::thread_up_to_date(), Monotonic.now());
    let (lines, huge) = chased(latency, &sizes, Places::Lines, recorder)?;
    let (pages, _) = chased(latency, &sizes, Places::Pages, recorder)?;
    let minor = touch::base(latency.faults).map_err(failed("touching base pages"))?;
    let huge_fault = touch::huge(latency.faults).map_err(failed("touching huge pages"))?;
    let geometry = sizes_of(&environment::geometry());
    let greatest = sizes.last().copied().unwrap_or(0);
    let fresh = touch::huge_fresh(greatest, geometry.caches[2]).map_err(failed("touching huge pages"))?;
    let (used, elapsed) = (rusage::thread_up_to_date() - used, Monotonic.now() - begun);
    let measured = harness.finish();
    measured.record(recorder)?;

    let swept: Vec<Loads> = sizes
        .iter()
        .zip(lines.iter().zip(&pages))
        .map(|(&size, (&lines, &pages))| Loads { size, lines, pages })
        .collect();
    loads(&swept, recorder)?;
    let levels = latencies(&swept, &geometry);
    let given = Given { huge, recycled: huge_fault.is_some(), fresh: fresh.is_some() };
    remarks(&levels, &given, &geometry, recorder)?;
    let number = |v: u64| Some(v as f64);
    let [processor, user, system] = processor::figures(&used);
    let figures = [
        (metrics::LATENCY_MINOR_FAULT, minor),
        (metrics::LATENCY_HUGE_FAULT, huge_fault),
        (metrics::LATENCY_HUGE_FAULT_FRESH, fresh),
        (metrics::TIME_ELAPSED, number(elapsed)),
        processor,
        user,
        system,
        (metrics::FAULTS_MINOR, number(used.minor)),
        (metrics::FAULTS_MAJOR, number(used.major)),
    ];
    metrics(recorder, levels.into_iter().chain(figures))
}

/// The mean time of a load at each size, none where the set has but one place; and whether the
/// mapping was of huge pages.
fn chased(
    latency: &Latency,
    sizes: &[u64],
    places: Places,
    recorder: &mut dyn Recorder,
) -> Result<(Vec<Option<f64>>, bool)> {
    let greatest = sizes.last().copied().unwrap_or(0) as usize;
    let huge = if places == Places::Lines { HugePages::Wanted } else { HugePages::Forbidden };
    let field = Field::new(greatest, huge).map_err(failed("mapping the working set"))?;
    let each = (latency.loads / ROUNDS).max(1);
    let mut order: Vec<u32> = Vec::with_capacity(places.within(greatest));
    let mut times = Vec::with_capacity(sizes.len());
    for (n, &size) in sizes.iter().enumerate() {
        let done = n + if places == Places::Lines { 0 } else { sizes.len() };
        recorder.progress("working sets", done as u64, 2 * sizes.len() as u64);
        recorder.check()?;
        let Some(mut chain) = field.chain(size as usize, places, &mut order, &mut Rng::new(latency.seed))
        else {
            times.push(None);
            continue;
        };
        chain.follow(WARM.min(chain.places() as u64));
        let round = |_| {
            let begun = processor_time();
            chain.follow(each);
            (processor_time() - begun) as f64 / each as f64
        };
        times.push(median((0..ROUNDS).map(round).collect()));
    }
    Ok((times, field.is_huge()))
}

/// Processor time of the calling thread, ns: what other programs take of the processor is not in it.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What decides which working set stands for which level, from the environment's entries.
fn sizes_of(entries: &Entries) -> Geometry {
    let number = |key: &str| entries.get(key).and_then(|text| text.parse().ok());
    Geometry {
        page_size: page_size() as u64,
        caches: [CACHE_L1D, CACHE_L2, CACHE_L3].map(number),
        tlb: number(TLB_L2).or(number(TLB_L1D)),
    }
}

/// Which huge pages the kernel gave.
struct Given {
    /// Those of the working sets.
    huge: bool,
    /// Those that are touched while the caches hold them.
    recycled: bool,
    /// Those beyond the caches; also missing where the largest working set is too small for them.
    fresh: bool,
}

/// Says why a figure that one may look for is none.
fn remarks(levels: &[Figure], given: &Given, geometry: &Geometry, recorder: &mut dyn Recorder) -> Result<()> {
    let lacks = |metric| levels.iter().any(|(level, value)| *level == metric && value.is_none());
    let mut texts = Vec::new();
    if lacks(metrics::LATENCY_L3) && geometry.caches[2].is_some() && !lacks(metrics::LATENCY_DRAM) {
        texts.push(SHARED_CACHE);
    }
    if lacks(metrics::LATENCY_DRAM) {
        texts.push(
            "no time of memory: the largest working set is less than twice the last cache; use \
            --sizes 16K..1G:1",
        );
    }
    if lacks(metrics::LATENCY_TLB_MISS) {
        texts.push("no time of a TLB miss: the processor does not show its TLBs, or no working set exceeds their reach");
    }
    if !given.huge {
        texts.push(
            "the kernel gave base pages where huge ones were asked for, so the loads of lines beyond the TLBs' reach \
             have TLB misses in them (see /sys/kernel/mm/transparent_hugepage/enabled)",
        );
    } else if !given.recycled {
        texts.push("the first touches of huge pages got base pages, so their time is missing");
    } else if !given.fresh {
        texts.push(
            "no time of huge pages beyond the caches: the largest working set is less than 128 MiB or twice the last \
             cache, or huge pages ran out; use --sizes 16K..1G:1",
        );
    }
    texts.into_iter().try_for_each(|text| note(recorder, Level::Info, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::Observations;

    #[test]
    fn working_set_without_huge_pages_is_noted() {
        let said = |fresh| {
            let mut seen = Observations::default();
            let geometry = Geometry { page_size: 4096, caches: [None; 3], tlb: None };
            remarks(&[], &Given { huge: true, recycled: true, fresh }, &geometry, &mut seen).unwrap();
            seen.notes.into_iter().map(|note| note.text).collect::<Vec<_>>()
        };
        assert!(said(false)[0].contains("less than 128 MiB"));
        assert_eq!(said(true), [""; 0]);
    }
}
