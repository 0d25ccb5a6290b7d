//! Policies and systems at several sizes on a stream, and LRU's exact curve, by the cheapest way:
//! as the trace is read where nothing must be known of it before, else from memory.

use std::path::Path;

use anyhow::Result;
use pagelab_model::mrc::footprint::{ReuseTimes, WorkingSetCurve};
use pagelab_model::mrc::lru::{LruCounting, LruCurve};
use pagelab_model::paging::OutOfMemory;
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::{Feed, Replayed, Replays};
use pagelab_model::systems::{Replay, SystemKind};
use pagelab_reference::trace::recorded::Reduced;
use pagelab_reference::trace::{Options, Reader, Reading};

use crate::cost::{Cost, STREAM};
use crate::feed::{self, Consumer};
use crate::{Source, Unanswerable, Watch, records, source, spread};

/// Runs that are fed side by side at most: each has its own tables.
pub(crate) const SIDE_BY_SIDE: usize = 16;

/// What the distances of the exact curve take beside the stream.
const DISTANCES: Cost = Cost { page: 32, reference: 0 };

/// What the times between references take beside the stream.
const TIMES: Cost = Cost { page: 16, reference: 0 };

/// References between two words of progress of the exact curve.
const STEP: usize = 1 << 20;

/// Sizes in pages.
pub enum Sizes<'a> {
    /// These, whatever the stream is.
    Given(Vec<u32>),
    /// Those of a stream with so many pages.
    OfPages(Box<dyn Fn(u32) -> Vec<u32> + 'a>),
    /// So many, from one page to all.
    Usual(usize),
}

impl Sizes<'_> {
    /// The sizes for a stream of `pages` pages.
    pub(crate) fn of(&self, pages: u32) -> Vec<u32> {
        match self {
            Self::Given(frames) => frames.clone(),
            Self::OfPages(of) => of(pages),
            Self::Usual(count) => pagelab_model::mrc::sizes(pages, *count),
        }
    }
}

/// What is to be simulated.
pub struct Wanted<'a> {
    /// Each is replayed at every size.
    pub policies: &'a [PolicyKind],
    /// The same of whole systems.
    pub systems: &'a [&'static SystemKind],
    /// Whether LRU is wanted at every size at once.
    pub lru: bool,
    /// Whether the miss ratio against the mean working set is wanted.
    pub working_set: bool,
    /// The sizes.
    pub sizes: Sizes<'a>,
    /// What a trace must tell beside its pages; `None`: nothing.
    pub records: Option<records::Wanted>,
    /// Threads for replays from memory.
    pub threads: usize,
}

impl Wanted<'_> {
    /// Nothing yet, on every core.
    pub fn at(sizes: Sizes<'_>) -> Wanted<'_> {
        Wanted {
            policies: &[],
            systems: &[],
            lru: false,
            working_set: false,
            sizes,
            records: None,
            threads: spread::cores(),
        }
    }

    fn runs<K: Clone>(kinds: &[K], frames: &[u32]) -> Vec<(K, u32)> {
        kinds.iter().flat_map(|kind| frames.iter().map(|&frames| (kind.clone(), frames))).collect()
    }
}

/// What came of it.
pub struct Simulated {
    /// References of the stream; of a reduced trace those of the whole.
    pub references: u64,
    /// Different pages.
    pub pages: u32,
    /// How a recorded stream was read.
    pub reading: Option<Reading>,
    /// Whether it was recorded through a window: then the number of references does not tell how
    /// long the program ran.
    pub through_window: bool,
    /// The sizes.
    pub frames: Vec<u32>,
    /// The policies one after another, each at every size.
    pub policies: Vec<Replayed>,
    /// The systems one after another, each at every size; a system may need more frames.
    pub systems: Vec<Result<Replay, OutOfMemory>>,
    /// LRU at every size, where it was wanted.
    pub lru: Option<LruCurve>,
    /// The miss ratio against the mean working set, where it was wanted.
    pub working_set: Option<WorkingSetCurve>,
}

/// A trace that holds only from some size of memory on.
enum Shorter {
    /// It was made shorter.
    Reduced(Reduced),
    /// It was recorded through a window of the first number of pages, and holds from the second on.
    Window(u32, u32),
}

impl Shorter {
    /// How the trace at `path` was shortened, if it was.
    fn of(path: &Path, options: &Options) -> Result<Option<Self>> {
        if path == Path::new("-") {
            return Ok(None);
        }
        let reader = Reader::open(path, &Options { reduced: true, window: true, ..*options })?;
        let Some(heading) = reader.heading() else { return Ok(None) };
        let window = heading.window.map(|window| Self::Window(window, heading.least()));
        Ok(heading.reduced.clone().map(Self::Reduced).or(window))
    }

    /// The smallest memory for which it holds, in pages.
    fn least(&self) -> u32 {
        match self {
            Self::Reduced(reduced) => reduced.frames,
            Self::Window(_, least) => *least,
        }
    }

    /// How it was shortened, for messages.
    fn how(&self) -> String {
        match self {
            Self::Reduced(reduced) => format!("reduced ({})", reduced.method),
            Self::Window(window, _) => format!("recorded through a window of {window} pages"),
        }
    }
}

/// Refuses what does not hold for a reduced trace.
fn check_reduced(path: &Path, reduced: &Reduced, wanted: &Wanted) -> Result<(), Unanswerable> {
    let (path, method) = (path.display(), &reduced.method);
    let holds = |policy: &&PolicyKind| match policy {
        PolicyKind::Lru => true,
        PolicyKind::Opt => method == "sad",
        _ => false,
    };
    let other = wanted.policies.iter().find(|policy| !holds(policy)).map(ToString::to_string);
    if let Some(other) = other.or_else(|| wanted.systems.first().map(|system| system.name.to_owned())) {
        let opt = if method == "sad" { " and opt" } else { "" };
        return Err(Unanswerable(format!(
            "{path} was reduced ({method}), which is exact only for lru{opt}, not for {other}: use the \
            whole trace"
        )));
    }
    if wanted.records.is_some() || wanted.working_set {
        return Err(Unanswerable(format!(
            "{path} was reduced ({method}): this command needs the whole trace"
        )));
    }
    Ok(())
}

/// The sizes for a stream of so many pages; those that a reduced trace does not hold for are left
/// out, or refused where somebody asked for them.
fn frames(wanted: &Wanted, pages: u32, shorter: Option<(&Path, &Shorter)>) -> Result<Vec<u32>, Unanswerable> {
    let mut frames = wanted.sizes.of(pages);
    let Some((path, shorter)) = shorter else { return Ok(frames) };
    let least = shorter.least();
    if let Sizes::Usual(_) = wanted.sizes {
        frames.retain(|&frames| frames >= least);
        if frames.is_empty() {
            frames.push(least);
        }
    }
    match frames.iter().find(|&&frames| frames < least) {
        None => Ok(frames),
        Some(small) => Err(Unanswerable(format!(
            "a memory of {small} pages: {} was {} and holds for {least} pages and more",
            path.display(),
            shorter.how()
        ))),
    }
}

/// Reads or makes the stream and simulates.
///
/// # Errors
/// When the stream cannot be had or does not tell what is wanted, it takes too much memory, or `watch` stops it.
pub fn replay(source: &Source, wanted: &Wanted, watch: &dyn Watch) -> Result<Simulated> {
    let Source::Trace { path, options } = *source else {
        return from_memory(source, wanted, &|pages| Ok(wanted.sizes.of(pages)), watch);
    };
    let found = Shorter::of(path, &options)?;
    let shorter = found.as_ref().map(|shorter| (path, shorter));
    if let Some(Shorter::Reduced(reduced)) = &found {
        check_reduced(path, reduced, wanted)?;
    }
    let through_window = matches!(found, Some(Shorter::Window(..)));
    if through_window && wanted.records.is_some() {
        return Err(Unanswerable(format!(
            "{} was recorded through a window, which does not distinguish loads from stores",
            path.display()
        ))
        .into());
    }
    if let (Some(_), Sizes::Given(_)) = (&found, &wanted.sizes) {
        frames(wanted, 1, shorter)?;
    }
    let options = Options { reduced: found.is_some() && !through_window, window: through_window, ..options };
    let sizes = |pages| frames(wanted, pages, shorter);
    let mut simulated = if is_fed(wanted) {
        fed(path, &options, wanted, &sizes, watch)?
    } else {
        from_memory(&Source::Trace { path, options }, wanted, &sizes, watch)?
    };
    if through_window {
        // The times between references are not known.
        simulated.working_set = None;
        simulated.through_window = true;
    }
    if let Some(Shorter::Reduced(reduced)) = &found {
        // Misses are those of the whole stream, so ratios are too.
        simulated.references = reduced.references;
    }
    Ok(simulated)
}

/// The sizes for a stream of so many pages.
type OfPages<'a> = dyn Fn(u32) -> Result<Vec<u32>, Unanswerable> + 'a;

/// Whether a trace is replayed as it is read.
fn is_fed(wanted: &Wanted) -> bool {
    let sizes = match &wanted.sizes {
        Sizes::Given(frames) => Some(frames.len()),
        _ => None,
    };
    wanted.systems.is_empty()
        && (wanted.policies.is_empty() || sizes.is_some_and(|n| n * wanted.policies.len() <= SIDE_BY_SIDE))
        && !wanted.policies.iter().any(PolicyKind::needs_future)
}

/// What is taken beside the stream, with so many tables at once.
fn cost(wanted: &Wanted, at_once: usize) -> Cost {
    let distances = if wanted.lru { DISTANCES } else { Cost::default() };
    let times = if wanted.working_set { TIMES } else { Cost::default() };
    spread::cost(wanted.policies, at_once).and(&distances).and(&times)
}

/// Replays a trace as it is read.
fn fed(
    path: &Path,
    options: &Options,
    wanted: &Wanted,
    sizes: &OfPages,
    watch: &dyn Watch,
) -> Result<Simulated> {
    let runs = match &wanted.sizes {
        Sizes::Given(frames) => Wanted::runs(wanted.policies, frames),
        _ => Vec::new(),
    };
    let mut feeds: Vec<Feed> = runs.chunk_by(Feed::together).map(Feed::new).collect();
    if wanted.records.is_some_and(|records| records.writes) {
        feeds = feeds.into_iter().map(Feed::counting_writes).collect();
    }
    let mut curve = wanted.lru.then(LruCounting::default);
    let mut times = wanted.working_set.then(ReuseTimes::default);
    let policies = feeds.iter_mut().map(|feed| feed as &mut dyn Consumer);
    let curves = curve.as_mut().map(|curve| curve as &mut dyn Consumer);
    let check = times.as_mut().map(|times| times as &mut dyn Consumer);
    let consumers = policies.chain(curves).chain(check).collect();
    watch.begin("reading the trace");
    let read = feed::feed(path, options, wanted.records, &cost(wanted, runs.len()), consumers, watch)?;
    Ok(Simulated {
        references: read.references,
        pages: read.pages,
        reading: Some(read.reading),
        through_window: false,
        frames: sizes(read.pages)?,
        policies: feeds.into_iter().flat_map(Feed::finish).collect(),
        systems: Vec::new(),
        lru: curve.map(LruCounting::finish),
        working_set: times.map(|times| times.curve()),
    })
}

/// Replays a stream that is in memory.
fn from_memory(source: &Source, wanted: &Wanted, sizes: &OfPages, watch: &dyn Watch) -> Result<Simulated> {
    let tables = if wanted.policies.is_empty() && wanted.systems.is_empty() { 0 } else { wanted.threads };
    let cost = cost(wanted, tables);
    let (loaded, writes) = match wanted.records {
        Some(records) => {
            let (path, options) = source.recorded(records.option())?;
            let cost = cost.and(&STREAM).and(&Cost { page: 0, reference: 1 });
            let (all, reading) = records::load(path, options, records, &cost, watch)?;
            let (pages, references) = (all.pages, all.references.into());
            (source::Loaded { pages, references, reading: Some(reading) }, Some(all.writes))
        }
        None => (source.load(&cost, watch)?, None),
    };
    let (pages, references) = (loaded.pages, &loaded.references[..]);
    let frames = sizes(pages)?;
    let lru = if wanted.lru { Some(lru(pages, references, watch)?) } else { None };
    let working_set = wanted.working_set.then(|| {
        let mut times = ReuseTimes::default();
        times.take(pages, references);
        times.curve()
    });
    watch.begin("replaying");
    let runs = Wanted::runs(wanted.policies, &frames);
    let known = match source {
        Source::Memory { future, .. } => future.clone(),
        _ => None,
    };
    let mut replays = Replays::of(pages, references, &runs, known);
    if let Some(writes) = writes.as_deref().filter(|_| wanted.records.is_some_and(|records| records.writes)) {
        replays = replays.with_writes(writes);
    }
    let policies = spread::perform(&replays, wanted.threads, watch)?;
    let systems = spread::systems(pages, references, &Wanted::runs(wanted.systems, &frames), watch)?;
    Ok(Simulated {
        references: references.len() as u64,
        pages,
        reading: loaded.reading,
        through_window: false,
        frames,
        policies,
        systems,
        lru,
        working_set,
    })
}

/// LRU's exact curve.
fn lru(pages: u32, references: &[u32], watch: &dyn Watch) -> Result<LruCurve> {
    watch.begin("measuring distances");
    let mut counting = LruCounting::default();
    for (n, chunk) in references.chunks(STEP).enumerate() {
        watch.at((n * STEP) as f64 / references.len() as f64);
        watch.go_on()?;
        counting.take(pages, chunk);
    }
    Ok(counting.finish())
}
