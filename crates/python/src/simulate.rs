//! Replays, miss ratio curves and working sets of a trace.

use pagelab_experiment::build::Point;
use pagelab_experiment::memory::{Memory, frames};
use pagelab_model::mrc::lru::{LruCounting, LruCurve};
use pagelab_model::mrc::miniature::Miniature;
use pagelab_model::mrc::shards::{Sampling, Shards};
use pagelab_model::mrc::wss::working_set_of;
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::{Replayed, Replays};
use pagelab_simulation::cost::Cost;
use pagelab_simulation::{Stopped, spread};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::curve::{Curves, Named};
use crate::error;
use crate::policy::{self, Plug};
use crate::table::{Column, Table};
use crate::trace::{Trace, meant};

/// Sizes of a curve where none are asked for.
pub const POINTS: usize = 24;
/// References between two looks at the caller.
const STEP: usize = 1 << 20;
/// What the distances of the exact curve take.
const DISTANCES: Cost = Cost { page: 32, reference: 0 };
/// Another would sample other pages.
pub const SEED: u64 = 1;

/// One value, or a list of them.
fn each<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if argument.extract::<String>().is_ok() || argument.extract::<f64>().is_ok() || argument.is_callable() {
        return Ok(vec![argument.clone()]);
    }
    argument.try_iter()?.collect()
}

fn plugs_of(argument: &Bound<'_, PyAny>) -> PyResult<Vec<Plug>> {
    each(argument)?.iter().map(Plug::of).collect()
}

/// Sizes in frames of a stream with so many pages: numbers, or texts such as "64M", "400p", "10%".
pub fn sizes_of(argument: &Bound<'_, PyAny>, page_size: u64, pages: u32) -> PyResult<Vec<u32>> {
    let of = |one: Bound<'_, PyAny>| {
        if let Ok(number) = one.extract::<u32>() {
            return if number == 0 { Err(error::value("a size of 0 frames")) } else { Ok(number) };
        }
        let Ok(text) = one.extract::<String>() else {
            return Err(PyTypeError::new_err(
                "a size is a number of frames, or a text such as '64M' or '10%'",
            ));
        };
        let memory: Memory = text.parse().map_err(error::value)?;
        Ok(frames(&[memory], page_size, pages).map_err(error::value)?[0])
    };
    each(argument)?.into_iter().map(of).collect()
}

/// Every policy at every size: the built-in ones together, on so many threads.
fn replayed(
    py: Python<'_>,
    trace: &Trace,
    kinds: &[PolicyKind],
    sizes: &[u32],
    threads: usize,
) -> PyResult<Vec<Replayed>> {
    let runs: Vec<(PolicyKind, u32)> =
        kinds.iter().flat_map(|kind| sizes.iter().map(|&frames| (kind.clone(), frames))).collect();
    let pages = trace.page_count();
    trace.during(py, "replaying", |references, watch| {
        let cost = spread::cost(kinds, threads);
        cost.allow(pages.into(), references.len() as u64, 0)?;
        let replays = if kinds.iter().any(PolicyKind::needs_future) {
            Replays::knowing(pages, references, &runs, trace.future(references))
        } else {
            Replays::of(pages, references, &runs)
        };
        spread::perform(&replays, threads, watch)
    })
}

/// The points of every policy at every size.
fn points(
    py: Python<'_>,
    trace: &Trace,
    plugs: &[Plug],
    sizes: &[u32],
    threads: usize,
    lru: Option<&LruCurve>,
) -> PyResult<Vec<Named>> {
    let whole = |kind: &PolicyKind| lru.is_some() && *kind == PolicyKind::Lru;
    let kinds: Vec<PolicyKind> = plugs
        .iter()
        .filter_map(|plug| match plug {
            Plug::Kind(kind) if !whole(kind) => Some(kind.clone()),
            _ => None,
        })
        .collect();
    let mut list = replayed(py, trace, &kinds, sizes, threads)?.into_iter();
    let references = trace.references(py) as u64;
    let ratio = |misses: u64| (references > 0).then(|| misses as f64 / references as f64);
    let mut points = Vec::new();
    for plug in plugs {
        for &frames in sizes {
            let (misses, mean_resident) = match (plug, lru) {
                (Plug::Kind(PolicyKind::Lru), Some(curve)) => (curve.misses(frames), None),
                (Plug::Kind(_), _) => {
                    let one = list.next().expect("one result for each policy and size");
                    (one.misses, one.mean_resident)
                }
                (Plug::Own(class, _), _) => (policy::misses(py, class, trace, frames)?, None),
            };
            let point = Point { misses: Some(misses), ratio: ratio(misses), mean_resident, ..at(frames) };
            points.push(Named { policy: plug.name(), point });
        }
    }
    Ok(points)
}

/// A point of which nothing is known yet.
pub fn at(frames: u32) -> Point {
    Point {
        frames,
        misses: None,
        ratio: None,
        error: None,
        mean_resident: None,
        write_backs: None,
        byte_ratio: None,
        read_ahead: None,
    }
}

/// Replays a trace on policies at several sizes.
///
/// trace: a Trace, a numpy array of page numbers (shape (n,)), or the path of a recorded trace.
/// policies: a name or a list of names, such as "lru", "opt", "s3-fifo:small=0.2" (see `policies()`); also classes of
///     your own, called with the frames, with `on_hit(page)` and `on_miss(page) -> victim or None`.
/// sizes: frames as numbers, or texts: "64M" (bytes), "400p" (pages), "10%" (of the trace's pages); one or a list.
/// threads: of the built-in policies; None: every core.
///
/// Gives a Table with a row for each policy and size: policy, frames (pages), references, misses (the first reference
/// to each page included), miss_ratio (misses a reference), mean_resident (pages; of policies of variable space).
/// Runs without the interpreter's lock, but for classes of your own; Ctrl-C ends it.
#[pyfunction]
#[pyo3(signature = (trace, policies, sizes, threads=None))]
pub fn replay(
    py: Python<'_>,
    trace: &Bound<'_, PyAny>,
    policies: &Bound<'_, PyAny>,
    sizes: &Bound<'_, PyAny>,
    threads: Option<usize>,
) -> PyResult<Table> {
    let name = name_of(trace);
    let trace = meant(trace)?;
    let trace = trace.get();
    let sizes = sizes_of(sizes, trace.bytes_of_page(), trace.page_count())?;
    let threads = threads.unwrap_or_else(spread::cores).max(1);
    let points = points(py, trace, &plugs_of(policies)?, &sizes, threads, None)?;
    Ok(Curves::of(trace, py, name, false, None, points).table())
}

/// What a stream is called in the record: its path, or what made it.
fn name_of(trace: &Bound<'_, PyAny>) -> Option<String> {
    trace.extract::<std::path::PathBuf>().ok().map(|path| path.display().to_string())
}

/// The miss ratio against memory.
///
/// trace: a Trace, a numpy array of page numbers (shape (n,)), or the path of a recorded trace.
/// policies: a name or a list, also classes of your own, as of `replay`; None: "lru".
/// sizes: as of `replay`; None: 24 from one page to all.
/// sample: a share of the pages (above 0, up to 1): LRU by SHARDS, others by miniature simulation.
///
/// Gives a Table with a row for each policy and size: policy, frames (pages), references, misses (None of a sample),
/// miss_ratio (misses a reference; None where fewer than 100 sampled pages would stand behind it), standard_error (of
/// a sampled miss_ratio). LRU is exact at every size from one pass. In a notebook the table is shown with its curves.
#[pyfunction]
#[pyo3(signature = (trace, policies=None, sizes=None, sample=None))]
pub fn mrc(
    py: Python<'_>,
    trace: &Bound<'_, PyAny>,
    policies: Option<&Bound<'_, PyAny>>,
    sizes: Option<&Bound<'_, PyAny>>,
    sample: Option<f64>,
) -> PyResult<Table> {
    let name = name_of(trace);
    let trace = meant(trace)?;
    let trace = trace.get();
    let plugs = policies.map_or_else(|| Ok(vec![Plug::Kind(PolicyKind::Lru)]), plugs_of)?;
    let sizes = match sizes {
        Some(sizes) => sizes_of(sizes, trace.bytes_of_page(), trace.page_count())?,
        None => pagelab_model::mrc::sizes(trace.page_count(), POINTS),
    };
    let points = match sample {
        None => {
            let lru = plugs.iter().any(|plug| matches!(plug, Plug::Kind(PolicyKind::Lru)));
            let lru = if lru { Some(lru_curve(py, trace)?) } else { None };
            points(py, trace, &plugs, &sizes, spread::cores(), lru.as_ref())?
        }
        Some(rate) if rate > 0.0 && rate <= 1.0 => sampled(py, trace, &plugs, &sizes, rate)?,
        Some(rate) => return Err(error::value(format!("sample={rate}: a share above 0 and up to 1"))),
    };
    Ok(Curves::of(trace, py, name, true, sample, points).table())
}

fn lru_curve(py: Python<'_>, trace: &Trace) -> PyResult<LruCurve> {
    trace.during(py, "measuring distances", |references, watch| {
        DISTANCES.allow(trace.page_count().into(), 0, 0)?;
        let mut counting = LruCounting::default();
        for (number, chunk) in references.chunks(STEP).enumerate() {
            watch.at((number * STEP) as f64 / references.len() as f64);
            if watch.stopped() {
                return Err(Stopped.into());
            }
            counting.take(trace.page_count(), chunk);
        }
        Ok(counting.finish())
    })
}

fn sampled(py: Python<'_>, trace: &Trace, plugs: &[Plug], sizes: &[u32], rate: f64) -> PyResult<Vec<Named>> {
    let kind = |plug: &Plug| match plug {
        Plug::Kind(kind) => Ok(kind.clone()),
        Plug::Own(_, name) => Err(error::value(format!("{name}: sample is for built-in policies"))),
    };
    let kinds: Vec<PolicyKind> = plugs.iter().map(kind).collect::<PyResult<_>>()?;
    let others: Vec<&PolicyKind> = kinds.iter().filter(|kind| **kind != PolicyKind::Lru).collect();
    let jobs: Vec<(&PolicyKind, u32)> =
        others.iter().flat_map(|&kind| sizes.iter().map(move |&frames| (kind, frames))).collect();
    trace.during(py, "sampling", |references, watch| {
        let mut shards = Shards::new(Sampling::Rate(rate), SEED);
        let mut miniature = (!others.is_empty()).then(|| Miniature::new(rate, SEED));
        let mut names = Vec::with_capacity(STEP);
        for (number, chunk) in references.chunks(STEP).enumerate() {
            names.clear();
            names.extend(chunk.iter().map(|&page| u64::from(page)));
            names.iter().for_each(|&page| shards.reference(page));
            if let Some(miniature) = &mut miniature {
                miniature.take(&names);
            }
            watch.at((number * STEP) as f64 / references.len() as f64);
            if watch.stopped() {
                return Err(Stopped.into());
            }
        }
        let curve = shards.curve();
        let mut simulated = match &miniature {
            Some(miniature) => spread::miniatures(miniature, &jobs, watch)?,
            None => Vec::new(),
        }
        .into_iter();
        let mut points = Vec::new();
        for kind in &kinds {
            for &frames in sizes {
                let figure = match kind {
                    PolicyKind::Lru => curve.miss_ratio(frames),
                    _ => simulated.next().expect("one result for each policy and size"),
                };
                let (ratio, error) = figure.unzip();
                points.push(Named { policy: kind.to_string(), point: Point { ratio, error, ..at(frames) } });
            }
        }
        Ok(points)
    })
}

/// Denning's working set over time: the different pages among the last `window` references.
///
/// trace: a Trace, a numpy array of page numbers (shape (n,)), or the path of a recorded trace.
/// window: references; None: a 50th of the trace.
/// step: references between two rows; None: a 50th of the trace.
///
/// Gives a Table: reference (references made), pages (the working set just after the last of them). Exact.
#[pyfunction]
#[pyo3(signature = (trace, window=None, step=None))]
pub fn wss(
    py: Python<'_>,
    trace: &Bound<'_, PyAny>,
    window: Option<usize>,
    step: Option<usize>,
) -> PyResult<Table> {
    let trace = meant(trace)?;
    let trace = trace.get();
    if window == Some(0) || step == Some(0) {
        return Err(error::value("window and step are at least 1"));
    }
    let found = trace.during(py, "working set", |references, _| {
        let usual = (references.len() / 50).max(1);
        let (window, step) = (window.unwrap_or(usual), step.unwrap_or(usual));
        Ok(working_set_of(trace.page_count(), references, window, step))
    })?;
    Ok(Table::new(vec![
        ("reference", "references", Column::Count(found.sizes.iter().map(|size| Some(size.0)).collect())),
        ("pages", "pages", Column::Count(found.sizes.iter().map(|size| Some(size.1.into())).collect())),
    ]))
}
