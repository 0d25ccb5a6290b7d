//! What timing costs: the timing loop against the bare loop over the same stream, on pages that are present.
//!
//! `cargo bench -p pagelab-live --bench harness [-- ROUNDS]`
//!
//! For every pattern and touch, nanoseconds of processor time for one reference:
//!
//! * `bare`: nothing but the references;
//! * `waited`: the same with a fence behind each, so that it waits until it is done as a timed one does;
//! * `beyond`: what the timing loop takes beyond the bare one, the median of paired differences (the two loops in turn)
//!   with its 95% interval. Goal: under 30 ns;
//! * `beyond waited`: beyond the waiting loop: the clock, the histogram and the mark;
//! * `sampled`: beyond the bare loop where one reference of 16 is timed.

use std::hint::black_box;

use pagelab_experiment::build::{Estimate, estimate};
use pagelab_kernel::region::Region;
use pagelab_kernel::rusage::thread_time;
use pagelab_live::harness::calibrate::{paired, threshold};
use pagelab_live::harness::clock::Clock;
use pagelab_live::harness::doubt::{Doubt, Slow};
use pagelab_live::harness::timing::{Tally, bare, references, sampled};
use pagelab_live::harness::touch::{Page, Touch, Word, Write};
use pagelab_reference::Pattern;
use pagelab_reference::rng::Rng;

const PAGES: u64 = 24_576;
const REFERENCES: u64 = 200_000;
const ROUNDS: usize = 10;
const EVERY: u32 = 16;

/// Every reference waits until it is done.
#[inline(never)]
fn waited<T: Touch>(region: &Region, pages: &[u32]) {
    let (base, size) = (region.base(), region.page_size());
    for &page in pages {
        assert!((page as usize) < region.pages());
        // SAFETY: within the region, which nobody else uses.
        unsafe { T::touch(base.add(page as usize * size).cast(), size / 8) };
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has it.
        unsafe {
            std::arch::x86_64::_mm_lfence();
        }
    }
}

fn of_touch<T: Touch, C: Clock, D: Doubt>(
    (clock, doubt): (&C, &D),
    rounds: usize,
    touch: &str,
    pattern: &str,
    pages: &[u32],
) {
    let region = Region::base_pages(PAGES as usize).expect("memory");
    region.populate(|_, _| {});
    let (mut tally, mut samples, mut rng) = (Tally::default(), Tally::default(), Rng::new(1));
    let once = |load: &dyn Fn()| {
        let rounds = (0..rounds).map(|_| {
            let before = thread_time();
            load();
            (thread_time() - before) as f64 / pages.len() as f64
        });
        estimate(&rounds.collect::<Vec<_>>()).map_or(f64::NAN, |e| e.median)
    };
    let (plain, slow) = (once(&|| bare::<T>(&region, pages)), once(&|| waited::<T>(&region, pages)));
    let mut timed = || {
        black_box(references::<T, C, D>(clock, doubt, &region, pages, &mut tally));
    };
    let beyond = paired(rounds, || bare::<T>(&region, pages), &mut timed, pages.len());
    let beyond_waited = paired(rounds, || waited::<T>(&region, pages), &mut timed, pages.len());
    let mut some = || {
        let way = (EVERY, &mut rng);
        black_box(sampled::<T, C, D>(clock, doubt, &region, pages, way, &mut samples));
    };
    let sampled = paired(rounds, || bare::<T>(&region, pages), &mut some, pages.len());
    let text = |cost: Option<Estimate>| match cost {
        Some(cost) => format!("{:.1} ({:.1} … {:.1})", cost.median, cost.low, cost.high),
        None => "–".to_owned(),
    };
    println!(
        "| `{pattern}` | {touch} | {plain:.1} | {slow:.1} | {} | {} | {} |",
        text(beyond),
        text(beyond_waited),
        text(sampled)
    );
}

fn with<C: Clock, D: Doubt>(clock: &C, doubt: &D, rounds: usize) {
    println!("clock {}, faults told by {}", C::NAME, D::NAME);
    println!("| stream | touch | bare | waited | beyond bare | beyond waited | one of {EVERY} timed |");
    println!("|---|---|---|---|---|---|---|");
    for pattern in ["smooth-sin", "linear", "smooth-sin-random", "zipf:1", "uniform"] {
        let stream =
            pattern.parse::<Pattern>().expect("a pattern").stream(PAGES, REFERENCES, 1).expect("a stream");
        let pages = stream.references();
        of_touch::<Page, C, D>((clock, doubt), rounds, "page", pattern, pages);
        of_touch::<Word, C, D>((clock, doubt), rounds, "word", pattern, pages);
        of_touch::<Write, C, D>((clock, doubt), rounds, "write", pattern, pages);
    }
}

fn of_clock<C: Clock>(clock: &C, rounds: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(mark) = pagelab_live::harness::doubt::Mark::trusted().expect("memory") {
        return with(clock, &mark, rounds);
    }
    with(clock, &Slow(threshold(clock).expect("memory")), rounds);
}

fn main() {
    // `cargo bench` adds --bench.
    let rounds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(ROUNDS);
    #[cfg(target_arch = "x86_64")]
    if let Some(tsc) = pagelab_live::harness::clock::Tsc::calibrated() {
        return of_clock(&tsc, rounds);
    }
    of_clock(&pagelab_live::harness::clock::Monotonic, rounds);
}
