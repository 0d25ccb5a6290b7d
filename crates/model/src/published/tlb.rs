//! `vmtest` with the translation buffers and caches of a processor of today.
//!
//! Processes take turns on one processor, a slice each between two wakings of the parent; their entries are
//! told apart, so a switch empties nothing. A process reads its pages in order again and again: after a few
//! passes of a slice each costs what the one before cost, and the rest of the slice is reckoned, not made.

use pagelab_experiment::build::{Sheet, metrics, note, speeds};
use pagelab_experiment::environment;
use pagelab_experiment::experiments::{Mapping, PagesOf, Vmtest};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::tables::vmtest;
use pagelab_experiment::{Failure, Observation, Recorder};

use crate::BASE_PAGE;
use crate::parameter::Seed;
use crate::tlb::{LARGE, Met, Processor, Tlb};

/// Cycles of the loop around a read.
const LOOP: f64 = 4.0;
/// Passes of a slice that are made one by one.
const PASSES: u64 = 4;

/// What the model of translation buffers does not honour.
pub(super) fn refuses(vmtest: &Vmtest) -> Option<super::Refused> {
    if vmtest.mapping == Mapping::File {
        return super::refused("mapping", "models no mapped files", "use --mapping shared or private");
    }
    (vmtest.cpus != 1).then(|| super::refusal("cpus", "models one processor", "use --cpus 1"))
}

/// The sweep of sizes.
pub(super) fn perform(
    tlb: &Tlb,
    seed: Seed,
    vmtest: &Vmtest,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let large = vmtest.pages_of != PagesOf::Base;
    let first = if large { tlb.first_large } else { tlb.first };
    let facts = [
        (environment::TLB_PAGE, if large { LARGE } else { BASE_PAGE }),
        (environment::TLB_L1D, u64::from(first.entries)),
        (environment::TLB_L2, u64::from(tlb.second.entries)),
        (environment::CACHE_L1D, tlb.caches[0].bytes),
        (environment::CACHE_L2, tlb.caches[1].bytes),
        (environment::CACHE_L3, tlb.caches[2].bytes),
    ];
    let facts = facts.map(|(name, value)| (name.to_owned(), value.to_string()));
    recorder.observe(Observation::Environment(facts.into()))?;
    let sizes = vmtest.sweep().bytes(BASE_PAGE);
    let mut sheet = Sheet::without(vmtest::TABLE, &[vmtest::SWAP_IN]);
    let (mut all, mut elapsed) = (Vec::new(), 0.0);
    for (n, &size) in sizes.iter().enumerate() {
        recorder.progress("sizes", n as u64, sizes.len() as u64);
        if recorder.interrupted() {
            return Err(Failure::interrupted());
        }
        let (processes, met) = sized(tlb, seed, large, vmtest, size);
        let reads = met.references as f64;
        let time = (met.cycles() + LOOP * reads) / tlb.gigahertz;
        let speed = reads / time * 1e9;
        all.push(speed);
        elapsed += time;
        let row = [
            size as f64,
            f64::from(processes),
            speed / all[0],
            time,
            time,
            0.0,
            0.0,
            0.0,
            reads,
            time / reads,
            time / reads,
            met.translation / tlb.gigahertz / reads,
            met.walks as f64 / reads,
        ];
        sheet.row(row.map(Some));
    }
    sheet.record(recorder)?;
    let figures = [
        (metrics::TIME_ELAPSED, Some(elapsed)),
        (metrics::TIME_USER, Some(elapsed)),
        (metrics::TIME_SYSTEM, Some(0.0)),
        (metrics::FAULTS_MINOR, Some(0.0)),
    ];
    metrics(recorder, figures.into_iter().chain(speeds(&all)))?;
    let page = if large { "2 MiB" } else { "4 KiB" };
    note(
        recorder,
        Level::Info,
        format!("pages of {page}, {} and {} entries", first.entries, tlb.second.entries),
    )
}

/// How many processes there are at a size, and what all their reads met.
fn sized(tlb: &Tlb, seed: Seed, large: bool, vmtest: &Vmtest, size: u64) -> (u32, Met) {
    let (processes, pages) = vmtest.processes(size, BASE_PAGE);
    let processes = u32::try_from(processes).unwrap_or(u32::MAX);
    let mut processor = Processor::new(*tlb, large, seed.0);
    let cycles = |seconds: f64| seconds * tlb.gigahertz * 1e9;
    let slice = cycles(1.0 / f64::from(vmtest.switch_rate.max(1)));
    let end = cycles(vmtest.seconds);
    let passes = vmtest.reads(pages, BASE_PAGE) / pages;
    let mut left = vec![passes; processes as usize];
    // Every page once, as the live experiment does before it begins.
    for process in 0..processes {
        pass(&mut processor, process, pages);
    }
    let (mut all, mut now) = (Met::default(), 0.0);
    // All take their slices in turn; after a few rounds each round is like the last.
    let mut rounds = 0;
    while now < end && left.iter().any(|&left| left > 0) {
        let mut round = Met::default();
        let begun = now;
        for (process, left) in (0..).zip(&mut left).filter(|(_, left)| **left > 0) {
            let mut used = 0.0;
            let mut last = Met::default();
            for _ in 0..PASSES.min(*left) {
                last = pass(&mut processor, process, pages);
                *left -= 1;
                used += last.cycles() + LOOP * pages as f64;
                round += last;
                if used >= slice {
                    break;
                }
            }
            let each = last.cycles() + LOOP * pages as f64;
            let more = (((slice - used).max(0.0) / each) as u64).min(*left);
            *left -= more;
            round += last.times(more);
            now += used + more as f64 * each;
        }
        all += round;
        rounds += 1;
        let step = now - begun;
        if rounds >= PASSES && processes > 0 {
            let whole = left.iter().copied().filter(|&left| left > 0).min().unwrap_or(0);
            let each = (round.references / pages / u64::from(processes)).max(1);
            let skip = (((end - now).max(0.0) / step) as u64).min(whole / each);
            all += round.times(skip);
            now += step * skip as f64;
            left.iter_mut().for_each(|left| *left -= (each * skip).min(*left));
        }
    }
    (processes, all)
}

fn pass(processor: &mut Processor, process: u32, pages: u64) -> Met {
    let mut met = Met::default();
    (0..pages).for_each(|page| met += processor.read(process, page));
    met
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::Size;

    fn each(vmtest: &Vmtest, tlb: &Tlb, bytes: u64) -> f64 {
        let (_, met) = sized(tlb, Seed(1), vmtest.pages_of != PagesOf::Base, vmtest, bytes);
        met.translation / met.references as f64
    }

    #[test]
    fn one_process_has_its_knee_at_the_reach_and_large_pages_move_it() {
        let base = Vmtest { process_size: Size::Bytes(64 << 20), seconds: 0.05, ..Vmtest::default() };
        let large = Vmtest { pages_of: PagesOf::Thp, ..base.clone() };
        let tlb = Tlb::SKYLAKE;
        assert_eq!(each(&base, &tlb, 128 << 10), 0.0);
        assert_eq!(each(&base, &tlb, 2 << 20), 9.0);
        assert!(each(&base, &tlb, 16 << 20) > 20.0);
        assert_eq!(each(&large, &tlb, 16 << 20), 0.0);
    }

    #[test]
    fn time_and_passes_bound_the_reads() {
        let vmtest = Vmtest { passes: 100, seconds: 1e3, ..Vmtest::default() };
        let (processes, met) = sized(&Tlb::SKYLAKE, Seed(1), false, &vmtest, 8 << 20);
        assert_eq!((processes, met.references), (4, 4 * 100 * 512));
        let short = Vmtest { seconds: 0.5, ..Vmtest::default() };
        let (_, met) = sized(&Tlb::SKYLAKE, Seed(1), false, &short, 1 << 20);
        let seconds = (met.cycles() + LOOP * met.references as f64) / 2.5e9;
        assert!((0.5..0.6).contains(&seconds), "{seconds}");
    }
}
