//! What the workers of a fleet do and give back, for `pagelab.lab`: parts that travel as numpy arrays, and what puts
//! them together.

use numpy::{PyArray1, PyArrayMethods};
use pagelab_experiment::build::Point;
use pagelab_experiment::experiments::Curve;
use pagelab_model::mrc::chunks::{self, Part};
use pagelab_model::mrc::shards::{GROUPS, SampledCurve, Sampling, Shards, Weights};
use pagelab_model::mrc::sizes;
use pagelab_reference::trace::Options;
use pagelab_simulation::chunks::{distances, sample as sampled};
use pagelab_simulation::sampled::SEED;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::curve::{Curves, Named};
use crate::simulate::{POINTS, sizes_of};
use crate::source::Source;
use crate::table::Table;
use crate::trace::{list, plain};
use crate::{error, watch};

/// What a chunk of a trace tells; it is pickled as three arrays.
#[pyclass(frozen, module = "pagelab._pagelab")]
pub struct Piece {
    number: u32,
    begin: u64,
    part: Part,
}

#[pymethods]
impl Piece {
    /// Puts a pickled one together.
    #[classmethod]
    fn _of(
        _: &Bound<'_, PyType>,
        numbers: (u32, u64, u64),
        distances: &Bound<'_, PyAny>,
        first: &Bound<'_, PyAny>,
        last: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (number, begin, references) = numbers;
        let part = Part { references, distances: list(distances)?, first: list(first)?, last: list(last)? };
        Ok(Self { number, begin, part })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, own) = (slf.py(), slf.get());
        let arguments = (
            (own.number, own.begin, own.part.references),
            PyArray1::from_slice(py, &own.part.distances),
            PyArray1::from_slice(py, &own.part.first),
            PyArray1::from_slice(py, &own.part.last),
        );
        Ok((slf.get_type().getattr("_of")?, arguments.into_pyobject(py)?.into_any()))
    }

    /// References in the chunk.
    #[getter]
    fn references(&self) -> u64 {
        self.part.references
    }

    /// Different pages in the chunk.
    #[getter]
    fn pages(&self) -> usize {
        self.part.first.len()
    }

    /// Bytes of its arrays.
    #[getter]
    fn nbytes(&self) -> usize {
        8 * self.part.distances.len() + 12 * self.part.first.len()
    }
}

/// A format that is recognised.
fn options(page_size: u64) -> Options {
    Options { page_size, ..Options::default() }
}

/// Measures the stack distances within chunk `number` (from 0) of `count` of a trace.
#[pyfunction]
pub fn chunk(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    page_size: u64,
    number: u32,
    count: u32,
) -> PyResult<Piece> {
    if number >= count {
        return Err(error::value(format!("chunk {number} of {count}")));
    }
    let piece = Source::of(file)?.during(py, "measuring distances", |source, watch| {
        distances(&mut source.reader(&options(page_size))?, number, count, watch)
    })?;
    Ok(Piece { number, begin: piece.begin, part: piece.part })
}

/// Puts the pieces of a trace together, in their order.
#[pyclass(module = "pagelab._pagelab")]
#[derive(Default)]
pub struct Merge {
    merge: chunks::Merge,
    parts: usize,
    /// References of the file that is being put together.
    of_file: u64,
    references: u64,
}

#[pymethods]
impl Merge {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Pieces taken.
    #[getter]
    fn parts(&self) -> usize {
        self.parts
    }

    /// Takes the next piece.
    fn take(&mut self, py: Python<'_>, piece: &Bound<'_, Piece>) -> PyResult<()> {
        let piece = piece.get();
        if piece.number == 0 {
            self.of_file = 0;
        }
        if piece.begin != self.of_file {
            let (begin, wanted) = (piece.begin, self.of_file);
            return Err(error::of(anyhow::anyhow!(
                "the trace changed while it was read: a chunk begins at reference {begin} where {wanted} were before it"
            )));
        }
        let merge = &mut self.merge;
        py.detach(|| merge.take(&piece.part)).map_err(error::value)?;
        self.parts += 1;
        self.of_file += piece.part.references;
        self.references += piece.part.references;
        Ok(())
    }

    /// The exact LRU curve of all that was taken; what was taken is gone then.
    #[pyo3(signature = (stream, page_size, sizes))]
    fn curve(&mut self, stream: String, page_size: u64, sizes: Option<&Bound<'_, PyAny>>) -> PyResult<Table> {
        let curve = std::mem::take(self).merge.finish();
        let pages = curve.pages();
        let frames = sizes_or_usual(sizes, page_size, pages)?;
        let (references, of_all) = (curve.references(), pages.into());
        let about = Curve { stream, page_size, references, pages: of_all, ..Curve::default() };
        let point = |&frames: &u32| {
            let (misses, ratio) = (Some(curve.misses(frames)), curve.miss_ratio(frames));
            let point = Point { frames, misses, ratio, ..Point::default() };
            Named { policy: "lru".to_owned(), point }
        };
        let points = frames.iter().map(point).collect();
        Ok(Table::of_curves(Curves { about, is_mrc: true, points }))
    }
}

fn sizes_or_usual(argument: Option<&Bound<'_, PyAny>>, page_size: u64, pages: u32) -> PyResult<Vec<u32>> {
    argument.map_or_else(|| Ok(sizes(pages, POINTS)), |given| sizes_of(given, page_size, pages))
}

/// A class of a trace's sample: all references of the trace, and the sampled pages in the order of reference.
type Class<'py> = (u64, Bound<'py, PyArray1<u64>>);

/// The sampled pages of a trace by hash classes.
#[pyfunction]
pub fn sample<'py>(
    py: Python<'py>,
    file: &Bound<'py, PyAny>,
    page_size: u64,
    rate: f64,
    shards: u32,
) -> PyResult<Vec<Class<'py>>> {
    Sampling::of_rate(rate).map_err(|wrong| error::value(format!("sample={wrong}")))?;
    if shards == 0 {
        return Err(error::value("shards=0 must be at least 1"));
    }
    let (references, classes) = Source::of(file)?.during(py, "sampling", |source, watch| {
        sampled(&mut source.reader(&options(page_size))?, rate, SEED, shards, watch)
    })?;
    Ok(classes.into_iter().map(|pages| (references, PyArray1::from_vec(py, pages))).collect())
}

/// What one hash class counts; it is pickled as arrays.
#[pyclass(frozen, module = "pagelab._pagelab")]
pub struct Shard(Weights);

#[pymethods]
impl Shard {
    /// Puts a pickled one together.
    #[classmethod]
    fn _of(
        _: &Bound<'_, PyType>,
        numbers: (u64, u64, f64, f64),
        first: Vec<f64>,
        weight: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (references, pages, rate, class_rate) = numbers;
        let groups = || error::value(format!("a shard has {GROUPS} groups"));
        let weight: Vec<Vec<f64>> = weight.iter().map(list).collect::<PyResult<_>>()?;
        Ok(Self(Weights {
            references,
            pages,
            rate,
            class_rate,
            first: first.try_into().map_err(|_| groups())?,
            weight: weight.try_into().map_err(|_| groups())?,
        }))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, own) = (slf.py(), &slf.get().0);
        let weight: Vec<_> = own.weight.iter().map(|list| PyArray1::from_slice(py, list)).collect();
        let numbers = (own.references, own.pages, own.rate, own.class_rate);
        let arguments = (numbers, own.first.to_vec(), weight);
        Ok((slf.get_type().getattr("_of")?, arguments.into_pyobject(py)?.into_any()))
    }
}

/// Measures one hash class of a sample: its parts in the order of time.
#[pyfunction]
pub fn shard(
    py: Python<'_>,
    parts: Vec<(u64, Bound<'_, PyAny>)>,
    rate: f64,
    shards: u32,
    number: u32,
) -> PyResult<Shard> {
    let lent = parts
        .iter()
        .map(|(references, pages)| {
            let pages = plain(pages)?.cast_into::<PyArray1<u64>>()?;
            Ok((*references, pages.try_readonly().map_err(error::value)?))
        })
        .collect::<PyResult<Vec<_>>>()?;
    let mut lists = Vec::new();
    for (references, pages) in &lent {
        lists.push((*references, pages.as_slice().map_err(error::value)?));
    }
    let weights = watch::during(py, "measuring distances", |_| {
        let mut class = Shards::of_class(rate, SEED, number, shards);
        for (references, pages) in lists {
            pages.iter().for_each(|&page| class.reference(page));
            class.pass_over(references - pages.len() as u64);
        }
        Ok(class.weights())
    })?;
    Ok(Shard(weights))
}

/// The curve of all hash classes of a sample.
#[pyfunction]
#[pyo3(signature = (shards, stream, page_size, sizes))]
pub fn sampled_curve(
    shards: Vec<Bound<'_, Shard>>,
    stream: String,
    page_size: u64,
    sizes: Option<&Bound<'_, PyAny>>,
) -> PyResult<Table> {
    let mut list = shards.iter();
    let mut all = list.next().ok_or_else(|| error::value("no shard"))?.get().0.clone();
    list.try_for_each(|shard| all.add(&shard.get().0)).map_err(error::value)?;
    let curve: SampledCurve = all.curve();
    let pages = (curve.sampled_pages as f64 / curve.rate).round().max(1.0) as u32;
    let frames = sizes_or_usual(sizes, page_size, pages)?;
    let about = Curve {
        stream,
        page_size,
        references: curve.references,
        pages: pages.into(),
        sample: Some(curve.rate),
        ..Curve::default()
    };
    let point = |&frames: &u32| {
        let (ratio, error) = curve.miss_ratio(frames).unzip();
        let point = Point { frames, ratio, error, ..Point::default() };
        Named { policy: "lru".to_owned(), point }
    };
    let points = frames.iter().map(point).collect();
    Ok(Table::of_curves(Curves { about, is_mrc: true, points }))
}

/// The table of replays that workers made one by one.
#[pyfunction]
pub fn replayed(stream: String, page_size: u64, pages: u64, columns: &Bound<'_, PyDict>) -> PyResult<Table> {
    fn column<'py, T: FromPyObjectOwned<'py>>(columns: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<T>> {
        let list = columns.get_item(name)?.ok_or_else(|| error::value(format!("no column {name}")))?;
        list.try_iter()?.map(|one| one?.extract().map_err(Into::into)).collect()
    }
    let policies: Vec<String> = column(columns, "policy")?;
    let frames: Vec<u32> = column(columns, "frames")?;
    let references: Vec<u64> = column(columns, "references")?;
    let misses: Vec<Option<u64>> = column(columns, "misses")?;
    let ratios: Vec<Option<f64>> = column(columns, "miss_ratio")?;
    let means: Vec<Option<f64>> = column(columns, "mean_resident")?;
    let about = Curve {
        stream,
        page_size,
        references: references.first().copied().unwrap_or(0),
        pages,
        ..Curve::default()
    };
    let mut points = Vec::new();
    for (n, policy) in policies.into_iter().enumerate() {
        let (misses, ratio, mean_resident) = (misses[n], ratios[n], means[n]);
        let point = Point { frames: frames[n], misses, ratio, mean_resident, ..Point::default() };
        points.push(Named { policy, point });
    }
    Ok(Table::of_curves(Curves { about, is_mrc: false, points }))
}
