//! Regret: how many of a kernel's major faults better replacement would have avoided, on the very same
//! stream with the very same frames.
//!
//! The models begin as the live experiment does: with the anonymous pages populated (each written once,
//! in order), or with no page of the file in memory; only misses after that count. A frame count
//! is taken from the run: the most pages of the mapping that were present at any snapshot, which is
//! what the limit really leaves after page tables and whatever else it pays for.
//!
//! OPT needs the whole stream: of a run with more than [`MAX_REFERENCES`] references there is no regret, for a notebook
//! comes from anywhere, and what it says must not decide how much memory is taken.

use pagelab_experiment::Run;
use pagelab_experiment::experiments::{Backing, Load, Paging};
use pagelab_experiment::metrics;
use pagelab_experiment::target::TargetKind;
use pagelab_model::policy::PolicyKind;
use pagelab_reference::progress::unwatched;
use pagelab_reference::{Pattern, PatternError};
use pagelab_simulation::opening;

use crate::stats::median;

/// The most references, those of the population and the warm-up among them: 12 bytes each while it is computed.
pub const MAX_REFERENCES: u64 = 1 << 26;

/// Major faults of a kernel beside LRU's and OPT's misses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regret {
    /// The frames that the models had.
    pub frames: u32,
    /// The kernel's major faults: the median over the repetitions.
    pub kernel: f64,
    /// The kernel's minor faults; with swap these are pages that were read ahead. Of a pager none: they are its own.
    pub minor: Option<f64>,
    /// LRU's misses.
    pub lru: u64,
    /// OPT's misses: the fewest that paging on demand can have.
    pub opt: u64,
}

impl Regret {
    /// The share of the kernel's major faults beyond OPT's, from 0 to 1; `None` when the kernel had
    /// none, or fewer than OPT (reading ahead can do that: OPT pages on demand).
    pub fn avoidable(&self) -> Option<f64> {
        (self.kernel > 0.0 && self.kernel >= self.opt as f64).then(|| 1.0 - self.opt as f64 / self.kernel)
    }
}

/// The regret of a run of `mapanon` or `mapfile`; `None` of other experiments, and when it
/// measured no major faults or no presence, or had none.
///
/// # Errors
/// When the stream is a trace that can no longer be read.
pub fn of_run(run: &Run) -> Result<Option<Regret>, PatternError> {
    let declared = run.header.experiment.declaration();
    let Load::References(paging, backing) = declared.load() else { return Ok(None) };
    let populated = backing != Backing::File;
    let (Some(kernel), Some(present)) =
        (median(&run.values(metrics::FAULTS_MAJOR)), median(&run.values(metrics::PAGES_PRESENT)))
    else {
        return Ok(None);
    };
    // Of a trace only a file: anything else was not there for long, or never ends.
    if matches!(&paging.pattern, Pattern::Trace(path) if !path.is_file()) {
        return Ok(None);
    }
    if kernel == 0.0
        || present < 1.0
        || paging.references.saturating_add(paging.pages.saturating_mul(3)) > MAX_REFERENCES
    {
        return Ok(None);
    }
    let frames = present as u32;
    let (lru, opt) = misses(paging, populated, frames)?;
    let read_ahead = !matches!(run.header.target.kind, TargetKind::Pager(_));
    let minor = median(&run.values(metrics::FAULTS_MINOR)).filter(|_| read_ahead);
    Ok(Some(Regret { frames, kernel, minor, lru, opt }))
}

/// LRU's and OPT's misses on the stream of `paging` with `frames` frames, after the population if there
/// is one.
///
/// # Errors
/// When the stream cannot be had.
pub fn misses(paging: &Paging, populated: bool, frames: u32) -> Result<(u64, u64), PatternError> {
    let mut blocks = paging.pattern.blocks(paging.pages, paging.references, paging.seed, &mut unwatched)?;
    let pages = blocks.pages();
    let mut all: Vec<u32> = paging.opening(pages, populated).collect();
    let begin = all.len();
    all.extend_from_slice(blocks.next(paging.references as usize)?);
    drop(blocks);
    let misses = |policy| opening::misses_after(begin, pages, &all, policy, frames);
    Ok((misses(&PolicyKind::Lru), misses(&PolicyKind::Opt)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::Experiment;

    /// Two pages of three in turn, two frames: populated with 0 1 2, memory holds 1 and 2 (LRU). The
    /// stream 0 1 2 0 1 2 misses always under LRU; OPT misses every second time.
    #[test]
    fn a_small_case_by_hand() {
        let paging =
            Paging { pages: 3, references: 6, pattern: "linear".parse().unwrap(), ..Paging::default() };
        assert_eq!(misses(&paging, true, 2).unwrap(), (6, 3));
        assert_eq!(misses(&paging, true, 3).unwrap(), (0, 0));
        // A file begins cold: three misses with room for all, and the warm-up takes them.
        assert_eq!(misses(&paging, false, 3).unwrap(), (3, 3));
        assert_eq!(misses(&Paging { warm: true, ..paging }, false, 3).unwrap(), (0, 0));
    }

    #[test]
    fn a_stream_that_no_memory_holds_has_none() {
        let huge = Paging { pages: u64::MAX, references: u64::MAX, ..Paging::default() };
        let device = Paging { pattern: Pattern::Trace("/dev/zero".into()), ..Paging::default() };
        for paging in [huge, device] {
            let figures: crate::test_runs::Figures = &[("faults.major", &[5.0]), ("pages.present", &[7.0])];
            let run = crate::test_runs::run("x", Experiment::Mapanon(paging), "host", figures);
            assert_eq!(of_run(&run).unwrap(), None);
        }
    }

    #[test]
    fn a_share_exists_only_where_it_means_something() {
        let regret = Regret { frames: 1, kernel: 100.0, minor: None, lru: 90, opt: 64 };
        assert!((regret.avoidable().unwrap() - 0.36).abs() < 1e-12);
        assert_eq!(Regret { kernel: 50.0, ..regret }.avoidable(), None);
        assert_eq!(Regret { kernel: 0.0, opt: 0, ..regret }.avoidable(), None);
    }
}
