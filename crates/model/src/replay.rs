//! The same stream on many policies and sizes, in batches that the caller may spread over threads, with
//! progress and interruption.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::policy::lru_sizes::{self, LruSizes};
use crate::policy::opt::NextUse;
use crate::policy::{Policy, PolicyKind};
use pagelab_reference::Stream;

/// References a policy is fed at once: enough that its table is in the cache for most of them when
/// several policies take turns in one pass, few enough that progress is told every few milliseconds.
const CHUNK: usize = 1 << 19;

/// Bytes of tables that may be alive at once; beyond that the stream is passed over again.
const BUDGET: u64 = 512 << 20;

/// The most bytes a page that the tables of a policy or a system take.
pub const A_PAGE: u64 = 64;

/// Bytes a reference that the future takes while it is read.
pub const FUTURE: u64 = 5;

/// What a policy made of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// The policy with its parameters.
    pub policy: PolicyKind,
    /// Frames it had.
    pub frames: u32,
    /// References in the stream.
    pub references: u64,
    /// References to a page that was not resident, the first ones included.
    pub misses: u64,
    /// For policies of variable space: mean number of resident pages over the references.
    pub mean_resident: Option<f64>,
    /// Times that a dirty page had to be written, those that are dirty at the end included; `None` where writes are
    /// not known.
    pub write_backs: Option<u64>,
    /// What the policy counted of its own work.
    pub counters: Vec<(&'static str, u64)>,
}

impl Replayed {
    /// Misses a reference; `None` for an empty stream.
    pub fn miss_ratio(&self) -> Option<f64> {
        (self.references > 0).then(|| self.misses as f64 / self.references as f64)
    }
}

/// The progress callback asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the replay was interrupted")]
pub struct Interrupted;

/// Told how many references a batch has replayed since it was told last, every few milliseconds; `Break`
/// ends the batch.
pub type Progress<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// Replays one policy with `frames` (at least 1) frames.
///
/// # Panics
/// For `opt`, when the stream has 2^32 − 1 references or more; for `ws`, when it has more than that.
pub fn replay(stream: &Stream, policy: &PolicyKind, frames: u32) -> Replayed {
    let runs = [(policy.clone(), frames)];
    let mut replayed = Replays::of(stream.pages(), stream.references(), &runs, None)
        .perform(0..1, &mut |_| ControlFlow::Continue(()))
        .expect("the callback never interrupts");
    replayed.remove(0)
}

/// The same stream on many (policy, frames) pairs. The caller performs them in [`Replays::batches`], in any order and
/// on as many threads as it has; what a batch gives does not depend on that.
#[derive(Debug)]
pub struct Replays<'a> {
    pages: u32,
    references: &'a [u32],
    runs: &'a [(PolicyKind, u32)],
    writes: Option<&'a [bool]>,
    future: Option<Arc<NextUse>>,
}

/// Batches for each worker, where there are runs for them: reading a stream in memory once more costs little beside replaying it.
const BATCHES: usize = 4;

impl<'a> Replays<'a> {
    /// The same references to the pages `0..pages` for all runs. Reads the future, where a policy needs it and it was not
    /// made before: 4 bytes a reference.
    ///
    /// # Panics
    /// As [`replay`]; and when a reference is not below `pages`, here or when it is replayed.
    pub fn of(
        pages: u32,
        references: &'a [u32],
        runs: &'a [(PolicyKind, u32)],
        future: Option<Arc<NextUse>>,
    ) -> Self {
        let needed = runs.iter().any(|(kind, _)| kind.needs_future());
        let future = future.or_else(|| needed.then(|| Arc::new(NextUse::of(pages, references))));
        Self { pages, references, runs, writes: None, future }
    }

    /// Of each reference is known whether it is a write, so that write-backs are counted.
    ///
    /// # Panics
    /// When they are not as many as the references.
    pub fn with_writes(mut self, writes: &'a [bool]) -> Self {
        assert_eq!(writes.len(), self.references.len(), "one for each reference");
        self.writes = Some(writes);
        self
    }

    /// References to replay in all.
    pub fn references(&self) -> u64 {
        self.runs.len() as u64 * self.references.len() as u64
    }

    /// The runs in batches for this many workers. The runs of a batch share one pass over the stream. Their tables
    /// take up to 40 bytes a page and run; when all workers together would need more than half a GiB, there are
    /// more batches.
    pub fn batches(&self, workers: usize) -> Vec<Range<usize>> {
        let (runs, workers) = (self.runs.len(), workers.clamp(1, self.runs.len().max(1)));
        let alive = usize::try_from(BUDGET / (40 * u64::from(self.pages) + 1)).unwrap_or(usize::MAX);
        // Some batches for each worker: policies take up to ten times as long as others, and who is done takes the next.
        let size = (alive / workers).clamp(1, runs.div_ceil(BATCHES * workers).max(1));
        (0..runs).step_by(size).map(|first| first..runs.min(first + size)).collect()
    }

    /// Performs a batch; results in the order of its runs.
    ///
    /// # Errors
    /// When `progress` asks to stop.
    pub fn perform(
        &self,
        batch: Range<usize>,
        progress: &mut Progress,
    ) -> Result<Vec<Replayed>, Interrupted> {
        let mut feed = Feed::with(&self.runs[batch], self.pages, self.future.as_deref());
        if let Some(writes) = self.writes {
            feed = feed.counting_writes();
            for (chunk, writes) in self.references.chunks(CHUNK).zip(writes.chunks(CHUNK)) {
                feed.take_writing(self.pages, chunk, writes, progress)?;
            }
            return Ok(feed.finish());
        }
        for chunk in self.references.chunks(CHUNK) {
            feed.take(self.pages, chunk, progress)?;
        }
        Ok(feed.finish())
    }
}

/// Policies that are fed a stream piece by piece, as it is read: nothing of it is kept, and its pages need not be
/// known before.
pub struct Feed<'a> {
    runs: &'a [(PolicyKind, u32)],
    /// All runs, where they are LRU of several sizes; then there are no policies.
    sizes: Option<LruSizes>,
    policies: Vec<Fed<'a>>,
    references: u64,
    writes: bool,
}

/// A policy, and what was counted of it.
struct Fed<'a> {
    policy: Box<dyn Policy + 'a>,
    misses: u64,
    dirty: Dirty,
}

/// Write-backs of any policy: a page that was written must be written back before its frame is another's.
///
/// A policy need not tell whom it evicts: a dirty page that misses has been evicted since, and had to be written. Those
/// that are dirty at the end are counted, too, as first references count among the misses: whatever was written must get
/// to the disk once.
#[derive(Debug, Default)]
struct Dirty {
    dirty: Vec<bool>,
    written: u64,
}

impl Dirty {
    /// Takes note of a reference and whether it hit.
    #[inline]
    fn note(&mut self, page: u32, write: bool, hit: bool) {
        let dirty = &mut self.dirty[page as usize];
        self.written += u64::from(*dirty && !hit);
        *dirty = write || (*dirty && hit);
    }

    /// Write-backs, of the pages that are dirty now as well.
    fn write_backs(&self) -> u64 {
        self.written + self.dirty.iter().filter(|&&dirty| dirty).count() as u64
    }
}

impl<'a> Feed<'a> {
    /// Nothing read yet.
    ///
    /// # Panics
    /// When a policy [needs the future](PolicyKind::needs_future).
    pub fn new(runs: &'a [(PolicyKind, u32)]) -> Self {
        Self::with(runs, 0, None)
    }

    fn with(runs: &'a [(PolicyKind, u32)], pages: u32, future: Option<&'a NextUse>) -> Self {
        let feed = Self { runs, sizes: None, policies: Vec::new(), references: 0, writes: false };
        if runs.len() > 1
            && runs.len() <= lru_sizes::MAX_SIZES
            && runs.iter().all(|run| run.0 == PolicyKind::Lru)
        {
            return Self { sizes: Some(LruSizes::new(runs.iter().map(|run| run.1))), ..feed };
        }
        Self { policies: fed(runs, pages, future), ..feed }
    }

    /// Whether runs are cheaper in one feed than in two: LRU of several sizes is one list.
    pub fn together(one: &(PolicyKind, u32), other: &(PolicyKind, u32)) -> bool {
        one.0 == PolicyKind::Lru && other.0 == PolicyKind::Lru
    }

    /// Counts write-backs as well, from the beginning: every piece comes by [`Self::take_writing`].
    pub fn counting_writes(mut self) -> Self {
        if self.sizes.take().is_some() {
            self.policies = fed(self.runs, 0, None);
        }
        self.writes = true;
        self
    }

    /// Replays the next references, which name pages below `pages`.
    ///
    /// # Errors
    /// When `progress` asks to stop.
    ///
    /// # Panics
    /// When a reference is not below `pages`.
    pub fn take(
        &mut self,
        pages: u32,
        references: &[u32],
        progress: &mut Progress,
    ) -> Result<(), Interrupted> {
        self.references += references.len() as u64;
        if let Some(sizes) = &mut self.sizes {
            sizes.grow(pages);
            sizes.take(references);
            let told = progress((references.len() * self.runs.len()) as u64);
            return if told.is_break() { Err(Interrupted) } else { Ok(()) };
        }
        for Fed { policy, misses, .. } in &mut self.policies {
            policy.grow(pages);
            *misses += policy.misses(references);
            if progress(references.len() as u64).is_break() {
                return Err(Interrupted);
            }
        }
        Ok(())
    }

    /// As [`Self::take`]; of each reference is known whether it writes.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn take_writing(
        &mut self,
        pages: u32,
        references: &[u32],
        writes: &[bool],
        progress: &mut Progress,
    ) -> Result<(), Interrupted> {
        self.references += references.len() as u64;
        for Fed { policy, misses, dirty } in &mut self.policies {
            policy.grow(pages);
            crate::policy::grow(&mut dirty.dirty, pages);
            for (&page, &write) in references.iter().zip(writes) {
                let hit = policy.access(page, write);
                *misses += u64::from(!hit);
                dirty.note(page, write, hit);
            }
            if progress(references.len() as u64).is_break() {
                return Err(Interrupted);
            }
        }
        Ok(())
    }

    /// What the policies made of it, in the order of the runs.
    pub fn finish(self) -> Vec<Replayed> {
        let Self { runs, references, writes, .. } = self;
        let replayed = |(kind, frames): &(PolicyKind, u32), misses| Replayed {
            policy: kind.clone(),
            frames: *frames,
            references,
            misses,
            mean_resident: None,
            write_backs: None,
            counters: Vec::new(),
        };
        if let Some(sizes) = self.sizes {
            return runs.iter().map(|run| replayed(run, sizes.misses(run.1))).collect();
        }
        let policies = runs.iter().zip(self.policies);
        let all = policies.map(|(run, Fed { policy, misses, dirty })| Replayed {
            mean_resident: policy.mean_resident(),
            write_backs: writes.then(|| policy.write_backs().unwrap_or_else(|| dirty.write_backs())),
            counters: policy.counters(),
            ..replayed(run, misses)
        });
        all.collect()
    }
}

/// Empty memories of these runs.
fn fed<'a>(runs: &[(PolicyKind, u32)], pages: u32, future: Option<&'a NextUse>) -> Vec<Fed<'a>> {
    let fed = |(kind, frames): &(PolicyKind, u32)| Fed {
        policy: kind.build(pages, *frames, future),
        misses: 0,
        dirty: Dirty::default(),
    };
    runs.iter().map(fed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{lru_misses, opt_misses};
    use pagelab_reference::Pattern;

    fn stream() -> Stream {
        Pattern::Zipf(0.8).stream(5000, 700_000, 3).unwrap()
    }

    fn replays<'a>(stream: &'a Stream, runs: &'a [(PolicyKind, u32)]) -> Replays<'a> {
        Replays::of(stream.pages(), stream.references(), runs, None)
    }

    #[test]
    fn runs_give_in_any_batches_what_each_gives_alone() {
        let stream = stream();
        let runs: Vec<_> = ["lru", "opt", "sieve", "ws:1000", "2q"]
            .iter()
            .flat_map(|name| [10, 500, 5000].map(|frames| (name.parse().unwrap(), frames)))
            .collect();
        let alone: Vec<_> = runs.iter().map(|(kind, frames)| replay(&stream, kind, *frames)).collect();
        let all = replays(&stream, &runs);
        for workers in [1, 2, 3, 100] {
            let batches = all.batches(workers);
            assert!(batches.len() >= workers.min(runs.len()), "{batches:?}");
            let perform = |batch| all.perform(batch, &mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(batches.into_iter().flat_map(perform).collect::<Vec<_>>(), alone);
        }
        for ((kind, frames), one) in runs.iter().zip(&alone) {
            assert_eq!((&one.policy, one.frames, one.references), (kind, *frames, 700_000));
        }
        assert_eq!(alone[1].misses, lru_misses(&stream, 500));
        assert_eq!(alone[4].misses, opt_misses(&stream, 500));
        assert!(alone[9].mean_resident.is_some_and(|mean| mean > 100.0 && mean < 1000.0));
    }

    #[test]
    fn a_stream_in_pieces_gives_what_it_gives_whole() {
        let stream = stream();
        let runs: Vec<(PolicyKind, u32)> = PolicyKind::catalogue()
            .iter()
            .map(|one| one.form.replace("TAU", "5000").parse().unwrap())
            .filter(|kind: &PolicyKind| !kind.needs_future())
            .flat_map(|kind| [30, 700].map(|frames| (kind.clone(), frames)))
            .collect();
        let sizes = [30, 700, 2, 700, 6000].map(|frames| (PolicyKind::Lru, frames));
        for runs in [&runs[..], &sizes] {
            let mut feed = Feed::new(runs);
            let mut pages = 0;
            for piece in stream.references().chunks(12_345) {
                pages = pages.max(piece.iter().max().unwrap() + 1);
                feed.take(pages, piece, &mut |_| ControlFlow::Continue(())).unwrap();
            }
            let all = feed.finish();
            assert_eq!(all.len(), runs.len());
            for one in all {
                assert_eq!(one, replay(&stream, &one.policy, one.frames));
            }
        }
        let writes: Vec<bool> = (0..stream.len()).map(|n| n * 7 % 5 == 0).collect();
        let mut feed = Feed::new(&runs).counting_writes();
        let mut pages = 0;
        for (piece, writes) in stream.references().chunks(12_345).zip(writes.chunks(12_345)) {
            pages = pages.max(piece.iter().max().unwrap() + 1);
            feed.take_writing(pages, piece, writes, &mut |_| ControlFlow::Continue(())).unwrap();
        }
        let whole = replays(&stream, &runs).with_writes(&writes);
        let whole = whole.perform(0..runs.len(), &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(whole.iter().all(|one| one.write_backs.is_some_and(|written| written > 0)));
        assert_eq!(feed.finish(), whole);
    }

    /// Whoever was evicted dirty is found by looking at every page after every reference.
    #[test]
    fn write_backs_are_the_dirty_pages_that_went() {
        let stream = Pattern::Zipf(0.6).stream(60, 5000, 3).unwrap();
        let writes: Vec<bool> = (0..5000).map(|n| n * 7 % 5 == 0).collect();
        for name in ["lru", "fifo", "arc", "2q", "cflru", "nru", "sieve", "car", "opt"] {
            let runs = [(name.parse().unwrap(), 20)];
            let all = replays(&stream, &runs).with_writes(&writes);
            let one = all.perform(0..1, &mut |_| ControlFlow::Continue(())).unwrap().remove(0);
            let future = NextUse::of(60, stream.references());
            let mut policy = runs[0].0.build(60, 20, Some(&future));
            let (mut dirty, mut written, mut misses) = ([false; 60], 0, 0);
            for (&page, &write) in stream.references().iter().zip(&writes) {
                misses += u64::from(!policy.access(page, write));
                for (page, dirty) in dirty.iter_mut().enumerate() {
                    if *dirty && policy.contains(page as u32) == Some(false) {
                        (*dirty, written) = (false, written + 1);
                    }
                }
                dirty[page as usize] |= write;
            }
            written += dirty.iter().filter(|&&dirty| dirty).count() as u64;
            assert_eq!(one.misses, misses, "{name}");
            if policy.contains(0).is_some() {
                assert_eq!(one.write_backs, Some(written), "{name}");
            }
            assert!(one.write_backs.unwrap() >= 50, "{name}: {:?}", one.write_backs);
        }
        let of = |name: &str| {
            let runs = [(name.parse().unwrap(), 20)];
            let all = replays(&stream, &runs).with_writes(&writes);
            let list = all.perform(0..1, &mut |_| ControlFlow::Continue(())).unwrap();
            list[0].write_backs.unwrap()
        };
        assert!(of("cflru:1") < of("lru"), "clean pages go first");
    }

    #[test]
    fn progress_is_complete_and_can_stop() {
        let stream = stream();
        let runs = vec![(PolicyKind::Fifo, 100); 4];
        let all = replays(&stream, &runs);
        assert_eq!(all.references(), 2_800_000);
        let mut done = 0;
        for batch in all.batches(2) {
            all.perform(batch, &mut |n| {
                done += n;
                ControlFlow::Continue(())
            })
            .unwrap();
        }
        assert_eq!(done, 2_800_000);
        assert_eq!(all.perform(0..2, &mut |_| ControlFlow::Break(())), Err(Interrupted));
    }

    #[test]
    fn no_runs_and_no_references_are_no_special_case() {
        assert!(replays(&stream(), &[]).batches(2).is_empty());
        let empty = Stream::new(1, Vec::new());
        for described in PolicyKind::catalogue() {
            let one = replay(&empty, &described.form.replace("TAU", "5").parse().unwrap(), 1);
            assert_eq!((one.misses, one.miss_ratio(), one.mean_resident), (0, None, None));
        }
    }
}
