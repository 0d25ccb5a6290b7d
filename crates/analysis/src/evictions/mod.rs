//! Judges each eviction of a run: by OPT on the same stream with as many frames, by the age of the
//! page among the pages in memory, and by comparison with models.
//!
//! A run of `mapanon --evictions` records when each page was first seen to be absent. The judgement
//! generates the stream again from the run's parameters. It counts a page as present from the
//! reference that faults on it to the end of the interval in which it left. The interval of the log
//! therefore limits the resolution of ages and ranks; it is one reference for a model.

mod judge;
mod order;
mod plots;
mod ranks;
mod similar;
#[cfg(test)]
mod tests;

use pagelab_experiment::experiments::{Load, Paging, Share};
use pagelab_experiment::observation::Observations;
use pagelab_experiment::setting::Swap;
use pagelab_experiment::tables::evictions;
use pagelab_experiment::{Run, environment, metrics};
use pagelab_reference::progress::unwatched;
use pagelab_reference::{Pattern, PatternError};
use pagelab_simulation::memory::SwapDevice;
use serde::Serialize;

pub use self::judge::{Eviction, Judged, Log, Regret, Sample, judge};
pub use self::plots::plots;
pub use self::similar::{Similarity, similar};
use crate::regret::MAX_REFERENCES;

/// Number of classes of age ranks: 0% to 10%, 10% to 20%, …
pub const CLASSES: usize = 10;

/// The judged evictions of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Number of references between two reads of the page table.
    pub interval: u32,
    /// Number of references that the log covers: fewer than those of the run if the log became full.
    pub references: u32,
    /// Frames of OPT and of the models: the maximum number of present pages in a page map.
    pub frames: u32,
    /// Number of judged evictions.
    pub evictions: u64,
    /// Of these, evictions of pages that OPT had in memory.
    pub kept_by_opt: u64,
    /// Of these, evictions of pages that OPT kept until their next reference.
    pub regretted: u64,
    /// The median number of references for which OPT kept them.
    pub kept_for: Option<u32>,
    /// The median age rank: the share of the other pages in memory that were younger, in percent.
    pub rank: f64,
    /// Evictions by age rank, the youngest first.
    pub ranks: [u64; CLASSES],
    /// Faults of the run as the log explains them.
    pub faults: u64,
    /// OPT's faults.
    pub opt: u64,
    /// The faults beyond OPT by cause.
    pub regret: Regret,
    /// Counts that show whether the log is complete.
    pub completeness: Completeness,
    /// The models, the most similar first.
    pub similar: Vec<Similarity>,
    /// Ages over the run.
    pub samples: Vec<Sample>,
}

/// Counts that add up if the log is complete, and counters of the kernel. A count is `None` if it
/// was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// Pages of the mapping.
    pub pages: u64,
    /// Pages in memory before the first reference.
    pub resident_first: u64,
    /// Number of pages that came back to memory, computed from the log.
    pub returned: u64,
    /// Number of evictions of the run.
    pub evictions: u64,
    /// Of these, in the log.
    pub logged: u64,
    /// Of these, evictions of pages that left and came back between two reads of the page table.
    pub between: u64,
    /// Number of rows that contradict other rows or the parameters.
    pub contradictions: u64,
    /// Pages in memory at the end, computed from the log.
    pub resident_last: u64,
    /// Pages in memory at the end, in the last page map.
    pub present_last: Option<u64>,
    /// Faults counted by the kernel or the model.
    pub counted_faults: Option<u64>,
    /// Pages reclaimed by kswapd (`pgsteal_kswapd`).
    pub stolen_by_kswapd: Option<u64>,
    /// Pages reclaimed by tasks: direct reclaim, or reclaim at a cgroup's limit (`pgsteal_direct`).
    pub stolen_by_tasks: Option<u64>,
    /// Pages written to swap (`pswpout`).
    pub swapped_out: Option<u64>,
}

impl Completeness {
    /// Pages at the start plus returned pages, less evicted pages and pages at the end: 0 if the log
    /// is complete.
    pub fn difference(&self) -> Option<i64> {
        let left = self.present_last? + self.evictions;
        Some((self.resident_first + self.returned) as i64 - left as i64)
    }

    /// Counted faults less returns in the log: pages that left and came back unseen.
    pub fn unseen(&self) -> Option<i64> {
        Some(self.counted_faults? as i64 - self.returned as i64)
    }

    /// Reclaimed pages (`pgsteal`).
    pub fn stolen(&self) -> Option<u64> {
        Some(self.stolen_by_kswapd? + self.stolen_by_tasks?)
    }

    /// Whether the log contains every eviction.
    pub fn is_whole(&self) -> bool {
        self.logged == self.evictions
    }
}

/// Judges the log of the first repetition that has one; `None` if none has.
///
/// # Errors
/// When the stream is a trace that can no longer be read.
pub fn of_run(run: &Run) -> Result<Option<Judgement>, PatternError> {
    let Some((paging, seen)) = with_log(run) else { return Ok(None) };
    of_observations(&paging, seen)
}

/// The judged evictions of the first repetition that has a log, in order of time; `None` if none
/// has.
///
/// # Errors
/// When the stream is a trace that can no longer be read.
pub fn list(run: &Run) -> Result<Option<Vec<Eviction>>, PatternError> {
    let Some((paging, seen)) = with_log(run) else { return Ok(None) };
    Ok(Stream::of(&paging, seen)?.map(|stream| judge(&stream.log()).evictions))
}

/// The first repetition with a log whose stream can be generated.
fn with_log(run: &Run) -> Option<(Paging, &Observations)> {
    let declared = run.header.experiment.declaration();
    let Load::References(paging, _) = declared.load() else { return None };
    let mut done = run.done().map(|repetition| &repetition.observations);
    let seen = done.find(|seen| seen.table(evictions::TABLE).is_some())?;
    let lost = matches!(&paging.pattern, Pattern::Trace(path) if !path.is_file());
    let long = paging.references.saturating_add(paging.pages.saturating_mul(3)) > MAX_REFERENCES;
    (!lost && !long).then(|| (paging.clone(), seen))
}

/// The stream of a repetition and its log.
struct Stream {
    pages: u32,
    opening: usize,
    references: Vec<u32>,
    present: Vec<bool>,
    rows: Vec<(u32, u32)>,
    frames: u32,
    limit: u32,
    swap: SwapDevice,
    /// Whether every reference writes.
    writes: bool,
    /// Whether each page that is present at the start was written since it was loaded.
    written: bool,
    /// Number of evictions, including those that are not in the log.
    evictions: u64,
    /// Number of rows that are not valid for the parameters.
    contradictions: u64,
}

impl Stream {
    /// `None` if the repetition has no page map.
    fn of(paging: &Paging, seen: &Observations) -> Result<Option<Self>, PatternError> {
        let mut blocks =
            paging.pattern.blocks(paging.pages, paging.references, paging.seed, &mut unwatched)?;
        let pages = blocks.pages();
        let mut references: Vec<u32> = paging.opening(pages, true).collect();
        let opening = references.len();
        references.extend_from_slice(blocks.next(paging.references as usize)?);
        drop(blocks);
        let first = seen.pages.first().filter(|map| map.reference == 0 && map.pages == pages);
        let (Some(first), Some(frames)) = (first, seen.pages.iter().map(|map| map.present.len()).max())
        else {
            return Ok(None);
        };
        let (rows, contradictions) = rows(seen, pages, references.len() - opening);
        let evictions = seen.metric(metrics::EVICTIONS).map_or(rows.len() as u64, |value| value as u64);
        if evictions > rows.len() as u64 {
            let end = rows.last().map_or(0, |row| row.0 as usize);
            references.truncate(opening + end);
        }
        let number = |key: &str| seen.environment.get(key)?.parse::<u64>().ok();
        let of_memory = || Some(number(environment::MEMORY_LIMIT)? / number(environment::PAGE_SIZE)?.max(1));
        let limit = number(environment::MODEL_FRAMES).or_else(of_memory).unwrap_or(frames);
        let limit = limit.clamp(frames, u64::from(pages).max(frames) * 2);
        let zram =
            seen.environment.get(environment::SWAP_KIND).is_some_and(|kind| *kind == Swap::Zram.to_string());
        Ok(Some(Self {
            limit: u32::try_from(limit).unwrap_or(pages).max(1),
            swap: if zram { SwapDevice::Memory } else { SwapDevice::Disk },
            pages,
            opening,
            references,
            present: first.present.flags(pages),
            rows,
            frames: u32::try_from(frames).unwrap_or(pages).max(1),
            writes: paging.write_share() == Share::ALL,
            written: !paging.warm,
            evictions,
            contradictions,
        }))
    }

    fn log(&self) -> Log<'_> {
        Log {
            pages: self.pages,
            opening: self.opening,
            references: &self.references,
            present: &self.present,
            rows: &self.rows,
            frames: self.frames,
            limit: self.limit,
            swap: self.swap,
            writes: self.writes,
            written: self.written,
        }
    }

    /// Whether the log contains every eviction.
    fn is_whole(&self) -> bool {
        self.evictions <= self.rows.len() as u64
    }
}

/// Judges the log of a repetition.
fn of_observations(paging: &Paging, seen: &Observations) -> Result<Option<Judgement>, PatternError> {
    let Some(stream) = Stream::of(paging, seen)? else { return Ok(None) };
    let log = stream.log();
    let judged = judge(&log);
    let similar = similar(&log, &judged, || {
        let mut writes = paging.drawn_writes();
        Box::new(move || writes.draw())
    });
    let number = |metric| seen.metric(metric).map(|value: f64| value as u64);
    let whole = stream.is_whole();
    let interval = seen.environment.get(environment::EVICTIONS_INTERVAL);
    let interval = interval.and_then(|text| text.parse().ok()).unwrap_or(1).max(1);
    let between = judged
        .evictions
        .iter()
        .filter(|one| one.next == Some(one.reference + 1) && !one.reference.is_multiple_of(interval));
    let between = between.count() as u64;
    let faults = [metrics::FAULTS_MINOR, metrics::FAULTS_MAJOR].map(number);
    let completeness = Completeness {
        pages: u64::from(stream.pages),
        resident_first: judged.resident[0],
        returned: judged.faults,
        evictions: stream.evictions,
        logged: stream.rows.len() as u64,
        between,
        contradictions: stream.contradictions + judged.contradictions,
        resident_last: judged.resident[1],
        present_last: seen.pages.last().filter(|_| whole).map(|map| map.present.len()),
        counted_faults: faults[0].zip(faults[1]).filter(|_| whole).map(|(minor, major)| minor + major),
        stolen_by_kswapd: number(metrics::STEAL_KSWAPD),
        stolen_by_tasks: number(metrics::STEAL_DIRECT),
        swapped_out: number(metrics::SWAP_OUT),
    };
    Ok(Some(Judgement {
        interval,
        references: (stream.references.len() - stream.opening) as u32,
        completeness,
        similar,
        ..of_judged(judged)
    }))
}

/// The rows of the log that are valid for the parameters, in order of time, and the number of
/// invalid rows.
fn rows(seen: &Observations, pages: u32, references: usize) -> (Vec<(u32, u32)>, u64) {
    let Some(table) = seen.table(evictions::TABLE) else { return (Vec::new(), 0) };
    let column = |column| table.numbers(column).unwrap_or_default().iter();
    let whole = |value: &Option<f64>| value.filter(|value| value.fract() == 0.0).map(|value| value as u64);
    let row = |(reference, page): (&Option<f64>, &Option<f64>)| {
        let reference = whole(reference).filter(|&reference| reference <= references as u64)?;
        let page = whole(page).filter(|&page| page < u64::from(pages))?;
        Some((reference as u32, page as u32))
    };
    let all = column(evictions::REFERENCE).zip(column(evictions::PAGE));
    let count = all.len();
    let mut rows: Vec<(u32, u32)> = all.filter_map(row).collect();
    rows.sort_by_key(|row| row.0);
    let others = count - rows.len();
    (rows, others as u64)
}

/// Summarizes judged evictions.
fn of_judged(judged: Judged) -> Judgement {
    let list = &judged.evictions;
    let mut ranks = [0; CLASSES];
    for eviction in list {
        ranks[((eviction.rank / 100.0 * CLASSES as f64) as usize).min(CLASSES - 1)] += 1;
    }
    let mut kept: Vec<u32> = list.iter().filter_map(|eviction| eviction.kept).collect();
    kept.sort_unstable();
    let mut sorted: Vec<f64> = list.iter().map(|eviction| eviction.rank).collect();
    sorted.sort_by(f64::total_cmp);
    let Regret { young, once, old, .. } = judged.regret;
    Judgement {
        interval: 1,
        references: 0,
        frames: judged.frames,
        evictions: list.len() as u64,
        kept_by_opt: kept.len() as u64,
        regretted: young + once + old,
        kept_for: kept.get(kept.len() / 2).copied(),
        rank: sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN),
        ranks,
        faults: judged.faults,
        opt: judged.opt,
        regret: judged.regret,
        completeness: Completeness::default(),
        similar: Vec::new(),
        samples: judged.samples,
    }
}
