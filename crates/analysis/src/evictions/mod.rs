//! Judges each eviction of a run: by OPT on the same stream with as many frames, by the age of the
//! page among the pages in memory, and by comparison with models.
//!
//! A run with `--evictions` records when each page was first seen to be absent, and of a file also
//! when pages entered the page cache. The judgement
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

use std::ops::Range;

use pagelab_experiment::build::Evictor;
use pagelab_experiment::experiments::{Backing, Load, Paging, Share};
use pagelab_experiment::observation::{Observations, Table};
use pagelab_experiment::setting::Swap;
use pagelab_experiment::tables::{ColumnId, arrivals, evictions};
use pagelab_experiment::{Run, environment, metrics};
use pagelab_reference::progress::unwatched;
use pagelab_reference::{Pattern, PatternError};
use pagelab_simulation::memory::SwapDevice;
use serde::Serialize;

pub use self::judge::{Eviction, Judged, Log, Regret, Row, Sample, judge};
pub use self::plots::plots;
pub use self::similar::{Similarity, similar};
use crate::regret::MAX_REFERENCES;

/// Maximum number of evictions, and of arrivals, that are judged: a row of the log can have many
/// pages.
const MAX_ROWS: usize = 1 << 22;

/// Number of classes of age ranks: 0% to 10%, 10% to 20%, …
pub const CLASSES: usize = 10;

/// The judged evictions of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Number of references between two reads of the log's source.
    pub interval: u32,
    /// Whether pages also enter memory without a fault: those of a file, by read-ahead.
    pub file: bool,
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
    /// Evictions by the task that freed the page, the most frequent first. Empty if the kernel does
    /// not show it.
    pub by: Vec<ByTask>,
    /// Evictions of pages that read-ahead had brought and no reference had used.
    pub unused: u64,
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

/// The evictions of one kind of task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ByTask {
    /// The name in the log: kswapd, direct, cgroup, task, swap-cache; empty if not known.
    pub by: &'static str,
    /// Number of evictions.
    pub evictions: u64,
    /// Of these, evictions of pages that OPT had in memory.
    pub kept_by_opt: u64,
    /// Of these, evictions of pages that had the kernel's workingset flag.
    pub workingset: u64,
    /// The median age rank, in percent.
    pub rank: f64,
}

/// Counts that add up if the log is complete, and counters of the kernel. A count is `None` if it
/// was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// Pages of the mapping.
    pub pages: u64,
    /// Pages in memory before the first reference.
    pub resident_first: u64,
    /// Number of pages that came to memory, computed from the log.
    pub returned: u64,
    /// Number of these pages that a reference fetched, computed from the log: all, but of a file.
    pub fetched: u64,
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
    /// Faults counted by the kernel or the model; of a file, major faults.
    pub counted_faults: Option<u64>,
    /// Pages of the mapping that the kernel freed, from a kernel function.
    pub freed: Option<u64>,
    /// Pages reclaimed by kswapd (`pgsteal_kswapd`).
    pub stolen_by_kswapd: Option<u64>,
    /// Pages reclaimed by tasks: direct reclaim, or reclaim at a cgroup's limit (`pgsteal_direct`,
    /// `pgsteal_khugepaged`, `pgsteal_proactive`).
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

    /// Counted faults less fetched pages in the log: pages that left and came back unseen.
    pub fn unseen(&self) -> Option<i64> {
        Some(self.counted_faults? as i64 - self.fetched as i64)
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
    let Some((paging, backing, seen)) = with_log(run) else { return Ok(None) };
    of_observations(&paging, backing, seen)
}

/// The judged evictions of the first repetition that has a log, in order of time; `None` if none
/// has.
///
/// # Errors
/// When the stream is a trace that can no longer be read.
pub fn list(run: &Run) -> Result<Option<Vec<Eviction>>, PatternError> {
    let Some((paging, backing, seen)) = with_log(run) else { return Ok(None) };
    Ok(Stream::of(&paging, backing, seen)?.map(|stream| judge(&stream.log()).evictions))
}

/// The first repetition with a log whose stream can be generated.
fn with_log(run: &Run) -> Option<(Paging, Backing, &Observations)> {
    let declared = run.header.experiment.declaration();
    let Load::References(paging, backing) = declared.load() else { return None };
    let mut done = run.done().map(|repetition| &repetition.observations);
    let seen = done.find(|seen| seen.table(evictions::TABLE).is_some())?;
    let lost = matches!(&paging.pattern, Pattern::Trace(path) if !path.is_file());
    let long = paging.references.saturating_add(paging.pages.saturating_mul(3)) > MAX_REFERENCES;
    (!lost && !long).then(|| (paging.clone(), backing, seen))
}

/// The stream of a repetition and its log.
struct Stream {
    pages: u32,
    opening: usize,
    references: Vec<u32>,
    present: Vec<bool>,
    rows: Vec<Row>,
    /// Of a file, the pages that entered the page cache.
    arrivals: Option<Vec<(u32, u32)>>,
    frames: u32,
    limit: u32,
    swap: SwapDevice,
    /// Whether every reference writes.
    writes: bool,
    /// Whether each page that is present at the start was written since it was loaded.
    written: bool,
    /// Whether the log covers all references.
    whole: bool,
    /// Number of evictions, including those that are not in the log.
    evictions: u64,
    /// Number of rows that are not valid for the parameters.
    contradictions: u64,
}

impl Stream {
    /// `None` if the repetition has no page map.
    fn of(paging: &Paging, backing: Backing, seen: &Observations) -> Result<Option<Self>, PatternError> {
        let populated = backing != Backing::File;
        // A model fetches one page per fault.
        let file = seen.table(arrivals::TABLE).is_some();
        let mut blocks =
            paging.pattern.blocks(paging.pages, paging.references, paging.seed, &mut unwatched)?;
        let pages = blocks.pages();
        let mut references: Vec<u32> = paging.opening(pages, populated).collect();
        let opening = references.len();
        references.extend_from_slice(blocks.next(paging.references as usize)?);
        drop(blocks);
        let first = seen.pages.first().filter(|map| map.reference == 0 && map.pages == pages);
        let (Some(first), Some(frames)) = (first, seen.pages.iter().map(|map| map.present.len()).max())
        else {
            return Ok(None);
        };
        let measured = references.len() - opening;
        let (mut rows, mut contradictions) = rows(seen, pages, measured);
        let number = |key: &str| seen.environment.get(key)?.parse::<u64>().ok();
        let evictions = seen.metric(metrics::EVICTIONS).map_or(rows.len() as u64, |value| value as u64);
        let mut end = measured;
        if evictions > rows.len() as u64 {
            end = rows.last().map_or(0, |row| row.reference as usize);
        }
        let mut arrivals = None;
        if file {
            let (came, invalid) = came(seen, pages, measured);
            contradictions += invalid;
            let full = came.len() == MAX_ROWS;
            if full || number(environment::ARRIVALS_LOST).is_some_and(|lost| lost > 0) {
                end = end.min(came.last().map_or(0, |row| row.0 as usize));
            }
            arrivals = Some(came);
        }
        references.truncate(opening + end);
        rows.retain(|row| row.reference as usize <= end);
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
            arrivals,
            whole: end == measured,
            frames: u32::try_from(frames).unwrap_or(pages).max(1),
            writes: paging.write_share() == Share::ALL,
            written: !paging.warm && populated,
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
            arrivals: self.arrivals.as_deref(),
            frames: self.frames,
            limit: self.limit,
            swap: self.swap,
            writes: self.writes,
            written: self.written,
        }
    }
}

/// Judges the log of a repetition.
fn of_observations(
    paging: &Paging,
    backing: Backing,
    seen: &Observations,
) -> Result<Option<Judgement>, PatternError> {
    let Some(stream) = Stream::of(paging, backing, seen)? else { return Ok(None) };
    let log = stream.log();
    let judged = judge(&log);
    let similar = similar(&log, &judged, || {
        let mut writes = paging.drawn_writes();
        Box::new(move || writes.draw())
    });
    let number = |metric| seen.metric(metric).map(|value: f64| value as u64);
    let (whole, file) = (stream.whole, stream.arrivals.is_some());
    let interval = seen.environment.get(environment::EVICTIONS_INTERVAL);
    let interval = interval.and_then(|text| text.parse().ok()).unwrap_or(1).max(1);
    let between = judged
        .evictions
        .iter()
        .filter(|one| one.next == Some(one.reference + 1) && !one.reference.is_multiple_of(interval));
    let between = between.count() as u64;
    let [minor, major] = [metrics::FAULTS_MINOR, metrics::FAULTS_MAJOR].map(number);
    // Of a file, a minor fault maps a page that is in the page cache.
    let faults = if file { major } else { minor.zip(major).map(|(minor, major)| minor + major) };
    let completeness = Completeness {
        pages: u64::from(stream.pages),
        resident_first: judged.resident[0],
        returned: judged.arrived,
        fetched: judged.faults,
        freed: number(metrics::EVICTIONS_FREED).filter(|_| whole),
        evictions: stream.evictions,
        logged: stream.rows.len() as u64,
        between,
        contradictions: stream.contradictions + judged.contradictions,
        resident_last: judged.resident[1],
        present_last: seen.pages.last().filter(|_| whole).map(|map| map.present.len()),
        counted_faults: faults.filter(|_| whole),
        stolen_by_kswapd: number(metrics::STEAL_KSWAPD),
        stolen_by_tasks: number(metrics::STEAL_DIRECT),
        swapped_out: number(metrics::SWAP_OUT),
    };
    Ok(Some(Judgement {
        interval,
        file,
        references: (stream.references.len() - stream.opening) as u32,
        completeness,
        similar,
        ..of_judged(judged)
    }))
}

/// The rows of the log that are valid for the parameters, in order of time, and the number of
/// invalid rows.
fn rows(seen: &Observations, pages: u32, references: usize) -> (Vec<Row>, u64) {
    let Some(table) = seen.table(evictions::TABLE) else { return (Vec::new(), 0) };
    let by = table.texts(evictions::BY).unwrap_or_default();
    let workingset = table.numbers(evictions::WORKINGSET).unwrap_or_default();
    let columns = [evictions::REFERENCE, evictions::PAGE, evictions::PAGES];
    let all = ranges(table, columns, pages, references);
    let count = all.len();
    let (mut rows, mut others) = (Vec::with_capacity(count), 0);
    for (n, range) in all.into_iter().enumerate() {
        let Some((reference, pages)) = range else {
            others += 1;
            continue;
        };
        let by = by.get(n).map_or(Evictor::Unknown, |name| Evictor::named(name));
        let workingset = workingset.get(n).copied().flatten().map(|flag| flag != 0.0);
        rows.extend(pages.take(MAX_ROWS - rows.len()).map(|page| Row { reference, page, by, workingset }));
    }
    rows.sort_by_key(|row| row.reference);
    (rows, others)
}

/// The pages that entered the page cache, in order of time, and the number of invalid rows.
fn came(seen: &Observations, pages: u32, references: usize) -> (Vec<(u32, u32)>, u64) {
    let Some(table) = seen.table(arrivals::TABLE) else { return (Vec::new(), 0) };
    let columns = [arrivals::REFERENCE, arrivals::PAGE, arrivals::PAGES];
    let (mut rows, mut others) = (Vec::new(), 0);
    for range in ranges(table, columns, pages, references) {
        match range {
            Some((reference, pages)) => {
                rows.extend(pages.take(MAX_ROWS - rows.len()).map(|page| (reference, page)));
            }
            None => others += 1,
        }
    }
    rows.sort_by_key(|row: &(u32, u32)| row.0);
    (rows, others)
}

/// References and pages of a table's rows; `None` for a row that is not valid for the parameters.
fn ranges(
    table: &Table,
    [reference, page, number]: [ColumnId; 3],
    pages: u32,
    references: usize,
) -> Vec<Option<(u32, Range<u32>)>> {
    let column = |column| table.numbers(column).unwrap_or_default();
    let whole = |value: &Option<f64>| value.filter(|value| value.fract() == 0.0).map(|value| value as u64);
    let numbers = column(number);
    let row = |(n, (reference, page)): (usize, (&Option<f64>, &Option<f64>))| {
        let reference = whole(reference).filter(|&reference| reference <= references as u64)?;
        let page = whole(page)?;
        let end = page.checked_add(numbers.get(n).map_or(Some(1), whole)?)?;
        (page < end && end <= u64::from(pages)).then_some((reference as u32, page as u32..end as u32))
    };
    column(reference).iter().zip(column(page)).enumerate().map(row).collect()
}

/// The evictions by the task that freed the page, the most frequent first; empty if none is known.
fn by_task(list: &[Eviction]) -> Vec<ByTask> {
    if list.iter().all(|one| one.by == Evictor::Unknown) {
        return Vec::new();
    }
    let of = |(evictor, name): (Evictor, &'static str)| {
        let own: Vec<&Eviction> = list.iter().filter(|one| one.by == evictor).collect();
        let mut ranks: Vec<f64> = own.iter().map(|one| one.rank).collect();
        ranks.sort_by(f64::total_cmp);
        (!own.is_empty()).then(|| ByTask {
            by: name,
            evictions: own.len() as u64,
            kept_by_opt: own.iter().filter(|one| one.kept.is_some()).count() as u64,
            workingset: own.iter().filter(|one| one.workingset == Some(true)).count() as u64,
            rank: ranks[ranks.len() / 2],
        })
    };
    let mut all: Vec<ByTask> = Evictor::NAMES.into_iter().filter_map(of).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.evictions));
    all
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
    let Regret { young, once, old, unused, .. } = judged.regret;
    Judgement {
        interval: 1,
        file: false,
        by: by_task(list),
        unused: list.iter().filter(|one| one.unused).count() as u64,
        references: 0,
        frames: judged.frames,
        evictions: list.len() as u64,
        kept_by_opt: kept.len() as u64,
        regretted: young + once + old + unused,
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
