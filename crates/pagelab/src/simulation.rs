//! Policies at several sizes on a stream, by the cheapest way: as the trace is read where nothing must be known of it
//! before, else from memory.

use anyhow::Result;
use pagelab_model::mrc::footprint::{ReuseTimes, WorkingSetCurve};
use pagelab_model::mrc::lru::{LruCounting, LruCurve};
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::{Feed, Replayed};
use pagelab_reference::Stream;
use pagelab_reference::trace::recorded::Reduced;
use pagelab_simulation::feed::{self, Consumer};
use pagelab_simulation::{Cost, spread};

use crate::context::Context;
use crate::failure::usage;
use crate::records;
use crate::stream::{Memory, StreamArguments, described, frames};
use crate::watching::Watching;

/// Runs that are fed side by side at most: each has its own tables.
const SIDE_BY_SIDE: usize = 16;

/// What the distances of the exact curve take beside the stream.
const DISTANCES: Cost = Cost { page: 32, reference: 0 };

/// What the times between references take beside the stream.
const TIMES: Cost = Cost { page: 16, reference: 0 };

/// What is to be simulated.
pub struct Wanted<'a> {
    /// Each is replayed at every size.
    pub policies: &'a [PolicyKind],
    /// Whether LRU is wanted at every size at once.
    pub lru: bool,
    /// Whether the miss ratio against the mean working set is wanted.
    pub working_set: bool,
    /// The sizes; empty: `default` of the stream's pages.
    pub memory: &'a [Memory],
    /// Whether the stream itself is wanted.
    pub whole: bool,
    /// What a trace must tell beside its pages; `None`: nothing.
    pub records: Option<records::Wanted>,
}

/// What came of it.
pub struct Simulated {
    pub references: u64,
    pub pages: u32,
    /// How a recorded stream was read.
    pub described: Option<String>,
    pub frames: Vec<u32>,
    /// The policies one after another, each at every size.
    pub replayed: Vec<Replayed>,
    pub lru: Option<LruCurve>,
    pub working_set: Option<WorkingSetCurve>,
    /// The stream, where it was wanted.
    pub stream: Option<Stream>,
}

/// The arguments, with which a trace that was reduced is read where what is wanted holds for it; how it was.
fn accepting(arguments: &StreamArguments, wanted: &Wanted) -> Result<(StreamArguments, Option<Reduced>)> {
    let mut arguments = arguments.clone();
    let reduced = arguments.accept_reduced()?;
    if let Some(reduced) = &reduced {
        let holds = |policy: &PolicyKind| match policy {
            PolicyKind::Lru => true,
            PolicyKind::Opt => reduced.method == "sad",
            _ => false,
        };
        if let Some(other) = wanted.policies.iter().find(|policy| !holds(policy)) {
            return Err(usage(format!(
                "{} was reduced ({}), which is exact for lru{} alone, and not for {other}: take the whole trace",
                arguments.stream,
                reduced.method,
                if reduced.method == "sad" { " and opt" } else { "" }
            )));
        }
        if wanted.whole || wanted.records.is_some() || wanted.working_set {
            return Err(usage(format!(
                "{} was reduced ({}): what is asked for needs the whole trace",
                arguments.stream, reduced.method
            )));
        }
    }
    Ok((arguments, reduced))
}

/// Reads or makes the stream and simulates.
///
/// # Errors
/// When the stream cannot be had, a size is wrong, or the user interrupts.
pub fn simulate(
    arguments: &StreamArguments,
    wanted: &Wanted,
    default: impl Fn(u32) -> Vec<u32>,
    context: &Context,
) -> Result<Simulated> {
    let (arguments, reduced) = &accepting(arguments, wanted)?;
    let least = reduced.as_ref().map_or(1, |reduced| reduced.frames);
    let frames_of = |pages| {
        let given = frames(wanted.memory, arguments.page_size(), pages)?;
        if let (Some(small), Some(reduced)) = (given.iter().find(|&&frames| frames < least), reduced)
            && pages > 1
        {
            return Err(usage(format!(
                "a memory of {small} pages: {} was reduced ({}) for {least} pages and more",
                arguments.stream, reduced.method
            )));
        }
        let default = || default(pages).into_iter().filter(|&frames| frames >= least).collect();
        anyhow::Ok(if given.is_empty() { default() } else { given })
    };
    // Misses are those of the whole stream, so ratios are too.
    let of_all = |references| reduced.as_ref().map_or(references, |reduced| reduced.references);
    let runs_of = |frames: &[u32]| -> Vec<(PolicyKind, u32)> {
        let at = |policy: &PolicyKind, frames: u32| (policy.clone(), frames);
        wanted
            .policies
            .iter()
            .flat_map(|policy| frames.iter().map(move |&frames| at(policy, frames)))
            .collect()
    };
    pagelab_live::allocator::ask_for_huge_pages();
    // Wrong sizes are refused before a long trace is read.
    frames_of(1)?;
    let of_the_pages =
        wanted.memory.is_empty() || wanted.memory.iter().any(|m| matches!(m, Memory::Percent(_)));
    let runs = wanted.policies.len() * wanted.memory.len();
    let fed = !wanted.whole
        && (wanted.policies.is_empty() || !of_the_pages)
        && runs <= SIDE_BY_SIDE
        && !wanted.policies.iter().any(PolicyKind::needs_future);
    // The tables of those that are replayed at once.
    let at_once = match (fed, wanted.policies.is_empty() && !wanted.whole) {
        (_, true) => 0,
        (true, _) => runs,
        (false, _) => spread::cores(),
    };
    let distances = if wanted.lru { DISTANCES } else { Cost::default() };
    let times = if wanted.working_set { TIMES } else { Cost::default() };
    let cost = spread::cost(wanted.policies, at_once).and(&distances).and(&times);
    if let (Some(path), true) = (arguments.trace(), fed) {
        let runs = if wanted.policies.is_empty() { Vec::new() } else { runs_of(&frames_of(1)?) };
        let mut feeds: Vec<Feed> = runs.chunk_by(Feed::together).map(Feed::new).collect();
        let mut curve = wanted.lru.then(LruCounting::default);
        let mut times = wanted.working_set.then(ReuseTimes::default);
        let read = match wanted.records {
            Some(records) => {
                if records.writes {
                    feeds = feeds.into_iter().map(Feed::counting_writes).collect();
                }
                records::feed(path, &arguments.options(), records, &cost, &mut feeds, context.quiet)?
            }
            None => {
                let policies = feeds.iter_mut().map(|feed| feed as &mut dyn Consumer);
                let curves = curve.as_mut().map(|curve| curve as &mut dyn Consumer);
                let check = times.as_mut().map(|times| times as &mut dyn Consumer);
                let consumers = policies.chain(curves).chain(check).collect();
                let watching = Watching::new("reading the trace", context.quiet)?;
                feed::feed(path, &arguments.options(), &cost, consumers, &watching)?
            }
        };
        return Ok(Simulated {
            references: of_all(read.references),
            pages: read.pages,
            described: Some(described(&read.reading)),
            frames: frames_of(read.pages)?,
            replayed: feeds.into_iter().flat_map(Feed::finish).collect(),
            lru: curve.map(LruCounting::finish),
            working_set: times.map(|times| times.curve()),
            stream: None,
        });
    }
    let (loaded, writes) = match wanted.records {
        Some(wanted) => arguments.load_records(wanted, &cost, context)?,
        None => (arguments.load(&cost, context)?, None),
    };
    let described = loaded.described();
    let stream = loaded.stream;
    let frames = frames_of(stream.pages())?;
    let lru = wanted.lru.then(|| {
        let work = crate::progress::Work::new("measuring distances", context.quiet);
        LruCurve::with(&stream, |fraction| work.at(fraction))
    });
    let working_set = wanted.working_set.then(|| {
        let mut times = ReuseTimes::default();
        times.take(stream.pages(), stream.references());
        times.curve()
    });
    let watching = Watching::new("replaying", context.quiet)?;
    Ok(Simulated {
        references: of_all(stream.len() as u64),
        pages: stream.pages(),
        described,
        replayed: spread::policies(&stream, writes.as_deref(), &runs_of(&frames), &watching)?,
        frames,
        lru,
        working_set,
        stream: wanted.whole.then_some(stream),
    })
}
