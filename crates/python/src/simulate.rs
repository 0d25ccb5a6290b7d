//! Replays, miss ratio curves and working sets of a trace.

use pagelab_experiment::build::Point;
use pagelab_experiment::memory::{Memory, frames};
use pagelab_model::mrc::shards::Sampling;
use pagelab_model::policy::PolicyKind;
use pagelab_simulation::working_set::working_set;
use pagelab_simulation::{Sizes, Source, Wanted, sampled, spread};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::curve::{Curves, Named};
use crate::error;
use crate::policy::{self, Plug};
use crate::table::{Column, Table};
use crate::trace::{Trace, meant};

/// Sizes of a curve where none are asked for.
pub const POINTS: usize = 24;
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

/// The points of every policy at every size: the built-in ones together, on so many threads; with
/// `exact`, LRU from its exact curve.
fn points(
    py: Python<'_>,
    trace: &Trace,
    plugs: &[Plug],
    sizes: &[u32],
    threads: usize,
    exact: bool,
) -> PyResult<Vec<Named>> {
    let from_curve = |kind: &PolicyKind| exact && *kind == PolicyKind::Lru;
    let all: Vec<PolicyKind> = plugs
        .iter()
        .filter_map(|plug| match plug {
            Plug::Kind(kind, _) => Some(kind.clone()),
            Plug::Own(..) => None,
        })
        .collect();
    let kinds: Vec<PolicyKind> = all.iter().filter(|kind| !from_curve(kind)).cloned().collect();
    let lru = all.iter().any(from_curve);
    let simulated = trace.during(py, "replaying", |references, watch| {
        let known = kinds.iter().any(PolicyKind::needs_future).then(|| trace.future(references));
        let source = Source::Memory { pages: trace.page_count(), references, future: known };
        let wanted = Wanted { policies: &kinds, lru, threads, ..Wanted::at(Sizes::Given(sizes.to_vec())) };
        pagelab_simulation::replay(&source, &wanted, watch)
    })?;
    let mut list = simulated.policies.into_iter();
    let references = simulated.references;
    let ratio = |misses: u64| (references > 0).then(|| misses as f64 / references as f64);
    let mut points = Vec::new();
    for plug in plugs {
        for &frames in sizes {
            let (misses, mean_resident) = match (plug, &simulated.lru) {
                (Plug::Kind(PolicyKind::Lru, _), Some(curve)) => (curve.misses(frames), None),
                (Plug::Kind(..), _) => {
                    let one = list.next().expect("one result for each policy and size");
                    (one.misses, one.mean_resident)
                }
                (Plug::Own(class, _), _) => (policy::misses(py, class, trace, frames)?, None),
            };
            let point = Point {
                frames,
                misses: Some(misses),
                ratio: ratio(misses),
                mean_resident,
                ..Point::default()
            };
            points.push(Named { policy: plug.name().to_owned(), point });
        }
    }
    Ok(points)
}

/// Replays a trace on policies at several sizes.
///
/// trace: a Trace, page numbers as `Trace` takes them, or the path of a recorded trace. policies: a
/// name or a list of names, such as "lru", "opt", "s3-fifo:small=0.2" (see `policies()`); also
/// classes of your own, called with the frames, with `on_hit(page)` and `on_miss(page) -> victim or
/// None`. sizes: frames as numbers, or texts: "64M" (bytes), "400p" (pages), "10%" (of the trace's
/// pages); one or a list. threads: of the built-in policies; None: every core.
///
/// Gives a Table with a row for each policy and size: policy (as asked for), frames (pages),
/// references, misses (the first reference to each page included), miss_ratio (misses per
/// reference), mean_resident (pages; of policies of variable space). Runs without the interpreter's
/// lock, but for classes of your own; Ctrl-C ends it.
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
    let points = points(py, trace, &plugs_of(policies)?, &sizes, threads, false)?;
    Ok(Table::of_curves(Curves::of(trace, py, name, false, None, points)))
}

/// What a stream is called in the record: its path, or what made it.
fn name_of(trace: &Bound<'_, PyAny>) -> Option<String> {
    trace.extract::<std::path::PathBuf>().ok().map(|path| path.display().to_string())
}

/// The miss ratio against memory.
///
/// trace: a Trace, page numbers as `Trace` takes them, or the path of a recorded trace.
/// policies: a name or a list, also classes of your own, as of `replay`; None: "lru".
/// sizes: as of `replay`; None: 24 from one page to all.
/// sample: a share of the pages (above 0, up to 1): LRU by SHARDS, others by miniature simulation.
///
/// Gives a Table with a row for each policy and size: policy, frames (pages), references, misses (None of a sample),
/// miss_ratio (misses per reference; None where fewer than 100 sampled pages would stand behind it), standard_error (of
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
    let plugs = policies.map_or_else(|| Ok(vec![Plug::Kind(PolicyKind::Lru, "lru".to_owned())]), plugs_of)?;
    let sizes = match sizes {
        Some(sizes) => sizes_of(sizes, trace.bytes_of_page(), trace.page_count())?,
        None => pagelab_model::mrc::sizes(trace.page_count(), POINTS),
    };
    let points = match sample {
        None => points(py, trace, &plugs, &sizes, spread::cores(), true)?,
        Some(rate) => sample_of(py, trace, &plugs, &sizes, rate)?,
    };
    Ok(Table::of_curves(Curves::of(trace, py, name, true, sample, points)))
}

fn sample_of(
    py: Python<'_>,
    trace: &Trace,
    plugs: &[Plug],
    sizes: &[u32],
    rate: f64,
) -> PyResult<Vec<Named>> {
    let kind = |plug: &Plug| match plug {
        Plug::Kind(kind, _) => Ok(kind.clone()),
        Plug::Own(_, name) => Err(error::value(format!("{name}: sample is for built-in policies"))),
    };
    let kinds: Vec<PolicyKind> = plugs.iter().map(kind).collect::<PyResult<_>>()?;
    let sampling = Sampling::of_rate(rate).map_err(|wrong| error::value(format!("sample={wrong}")))?;
    let found = trace.during(py, "sampling", |references, watch| {
        let source = Source::Memory { pages: trace.page_count(), references, future: None };
        sampled::sampled(&source, &kinds, &Sizes::Given(sizes.to_vec()), sampling, watch)
    })?;
    let cells = plugs.iter().flat_map(|plug| sizes.iter().map(move |&frames| (plug, frames)));
    let point = |((plug, frames), figure): ((&Plug, u32), &Option<(f64, f64)>)| {
        let (ratio, error) = figure.unzip();
        Named { policy: plug.name().to_owned(), point: Point { frames, ratio, error, ..Point::default() } }
    };
    Ok(cells.zip(&found.ratios).map(point).collect())
}

/// Denning's working set over time: the different pages among the last `window` references.
///
/// trace: a Trace, page numbers as `Trace` takes them, or the path of a recorded trace.
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
    let (found, _) = trace.during(py, "working set", |references, watch| {
        let source = Source::Memory { pages: trace.page_count(), references, future: None };
        working_set(&source, window, step, watch)
    })?;
    Ok(Table::new(vec![
        ("reference", "references", Column::Count(found.sizes.iter().map(|size| Some(size.0)).collect())),
        ("pages", "pages", Column::Count(found.sizes.iter().map(|size| Some(size.1.into())).collect())),
    ]))
}
