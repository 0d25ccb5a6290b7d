//! Replays, miss ratio curves and working sets of a trace.

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

use crate::error;
use crate::table::{Column, Table};
use crate::trace::{Trace, meant};

/// Sizes of a curve where none are asked for.
const POINTS: usize = 24;
/// References between two looks at the caller.
const STEP: usize = 1 << 20;
/// What the distances of the exact curve take.
const DISTANCES: Cost = Cost { page: 32, reference: 0 };
/// Another would sample other pages.
const SEED: u64 = 1;

/// One value, or a list of them.
fn each<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if argument.extract::<String>().is_ok() || argument.extract::<f64>().is_ok() {
        return Ok(vec![argument.clone()]);
    }
    argument.try_iter()?.collect()
}

fn policies_of(argument: &Bound<'_, PyAny>) -> PyResult<Vec<PolicyKind>> {
    let of = |one: Bound<'_, PyAny>| one.extract::<String>()?.parse().map_err(error::value);
    each(argument)?.into_iter().map(of).collect()
}

/// Sizes in frames: numbers, or texts such as "64M", "400p", "10%".
fn sizes_of(argument: &Bound<'_, PyAny>, trace: &Trace) -> PyResult<Vec<u32>> {
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
        Ok(frames(&[memory], trace.bytes_of_page(), trace.page_count()).map_err(error::value)?[0])
    };
    each(argument)?.into_iter().map(of).collect()
}

/// Every policy at every size.
fn runs_of(policies: &[PolicyKind], sizes: &[u32]) -> Vec<(PolicyKind, u32)> {
    policies.iter().flat_map(|policy| sizes.iter().map(|&frames| (policy.clone(), frames))).collect()
}

fn replayed(
    py: Python<'_>,
    trace: &Trace,
    policies: &[PolicyKind],
    sizes: &[u32],
) -> PyResult<Vec<Replayed>> {
    let runs = runs_of(policies, sizes);
    trace.during(py, "replaying", |references, watch| {
        let cost = spread::cost(policies, spread::cores());
        cost.allow(trace.page_count().into(), references.len() as u64, 0)?;
        spread::perform(&Replays::of(trace.page_count(), references, &runs), watch)
    })
}

/// Replays a trace on policies at several sizes.
///
/// trace: a Trace, a numpy array of page numbers (shape (n,)), or the path of a recorded trace.
/// policies: a name or a list of names, such as "lru", "opt", "s3-fifo:small=0.2" (see `policies()`).
/// sizes: frames as numbers, or texts: "64M" (bytes), "400p" (pages), "10%" (of the trace's pages); one or a list.
///
/// Gives a Table with a row for each policy and size: policy, frames (pages), references, misses (the first reference
/// to each page included), miss_ratio (misses a reference), mean_resident (pages; of policies of variable space).
/// Runs on every core, without the interpreter's lock; Ctrl-C ends it.
#[pyfunction]
pub fn replay(
    py: Python<'_>,
    trace: &Bound<'_, PyAny>,
    policies: &Bound<'_, PyAny>,
    sizes: &Bound<'_, PyAny>,
) -> PyResult<Table> {
    let trace = meant(trace)?;
    let trace = trace.get();
    let list = replayed(py, trace, &policies_of(policies)?, &sizes_of(sizes, trace)?)?;
    Ok(Table::new(vec![
        ("policy", "", Column::Text(list.iter().map(|one| Some(one.policy.to_string())).collect())),
        ("frames", "pages", Column::Count(list.iter().map(|one| Some(one.frames.into())).collect())),
        ("references", "references", Column::Count(list.iter().map(|one| Some(one.references)).collect())),
        ("misses", "misses", Column::Count(list.iter().map(|one| Some(one.misses)).collect())),
        ("miss_ratio", "misses a reference", Column::Number(list.iter().map(Replayed::miss_ratio).collect())),
        ("mean_resident", "pages", Column::Number(list.iter().map(|one| one.mean_resident).collect())),
    ]))
}

/// A point of a curve.
struct Point {
    policy: String,
    frames: u32,
    misses: Option<u64>,
    ratio: Option<f64>,
    error: Option<f64>,
}

/// The miss ratio against memory.
///
/// trace: a Trace, a numpy array of page numbers (shape (n,)), or the path of a recorded trace.
/// policies: a name or a list of names.
/// sizes: as of `replay`; None: 24 from one page to all.
/// sample: a share of the pages (above 0, up to 1): LRU by SHARDS, others by miniature simulation.
///
/// Gives a Table with a row for each policy and size: policy, frames (pages), misses (None of a sample), miss_ratio
/// (misses a reference; None where fewer than 100 sampled pages would stand behind it), standard_error (of a sampled
/// miss_ratio). LRU is exact at every size from one pass.
#[pyfunction]
#[pyo3(signature = (trace, policies=None, sizes=None, sample=None))]
pub fn mrc(
    py: Python<'_>,
    trace: &Bound<'_, PyAny>,
    policies: Option<&Bound<'_, PyAny>>,
    sizes: Option<&Bound<'_, PyAny>>,
    sample: Option<f64>,
) -> PyResult<Table> {
    let trace = meant(trace)?;
    let trace = trace.get();
    let policies = policies.map_or_else(|| Ok(vec![PolicyKind::Lru]), policies_of)?;
    let sizes = match sizes {
        Some(sizes) => sizes_of(sizes, trace)?,
        None => pagelab_model::mrc::sizes(trace.page_count(), POINTS),
    };
    let points = match sample {
        None => exact(py, trace, &policies, &sizes)?,
        Some(rate) if rate > 0.0 && rate <= 1.0 => sampled(py, trace, &policies, &sizes, rate)?,
        Some(rate) => return Err(error::value(format!("sample={rate}: a share above 0 and up to 1"))),
    };
    Ok(Table::new(vec![
        ("policy", "", Column::Text(points.iter().map(|point| Some(point.policy.clone())).collect())),
        ("frames", "pages", Column::Count(points.iter().map(|point| Some(point.frames.into())).collect())),
        ("misses", "misses", Column::Count(points.iter().map(|point| point.misses).collect())),
        (
            "miss_ratio",
            "misses a reference",
            Column::Number(points.iter().map(|point| point.ratio).collect()),
        ),
        (
            "standard_error",
            "misses a reference",
            Column::Number(points.iter().map(|point| point.error).collect()),
        ),
    ]))
}

fn exact(py: Python<'_>, trace: &Trace, policies: &[PolicyKind], sizes: &[u32]) -> PyResult<Vec<Point>> {
    let others: Vec<PolicyKind> = policies.iter().filter(|kind| **kind != PolicyKind::Lru).cloned().collect();
    let mut list = replayed(py, trace, &others, sizes)?.into_iter();
    let lru = if policies.contains(&PolicyKind::Lru) { Some(lru_curve(py, trace)?) } else { None };
    let mut points = Vec::new();
    for policy in policies {
        for &frames in sizes {
            let (misses, ratio) = match (&lru, policy) {
                (Some(curve), PolicyKind::Lru) => (curve.misses(frames), curve.miss_ratio(frames)),
                _ => {
                    let one = list.next().expect("one result for each policy and size");
                    (one.misses, one.miss_ratio())
                }
            };
            points.push(Point {
                policy: policy.to_string(),
                frames,
                misses: Some(misses),
                ratio,
                error: None,
            });
        }
    }
    Ok(points)
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

fn sampled(
    py: Python<'_>,
    trace: &Trace,
    policies: &[PolicyKind],
    sizes: &[u32],
    rate: f64,
) -> PyResult<Vec<Point>> {
    let others: Vec<PolicyKind> = policies.iter().filter(|kind| **kind != PolicyKind::Lru).cloned().collect();
    let jobs: Vec<(&PolicyKind, u32)> =
        others.iter().flat_map(|policy| sizes.iter().map(move |&frames| (policy, frames))).collect();
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
        for policy in policies {
            for &frames in sizes {
                let figure = match policy {
                    PolicyKind::Lru => curve.miss_ratio(frames),
                    _ => simulated.next().expect("one result for each policy and size"),
                };
                let (ratio, error) = figure.unzip();
                points.push(Point { policy: policy.to_string(), frames, misses: None, ratio, error });
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
