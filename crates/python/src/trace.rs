//! Reference streams: recorded traces, patterns and numpy arrays.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use numpy::{Element, PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pagelab_model::policy::opt::NextUse;
use pagelab_reference::Stream;
use pagelab_reference::trace::csv::Columns;
use pagelab_reference::trace::{DEFAULT_PAGE_SIZE, Densifier, Options};
use pagelab_simulation::cost::{Cost, STREAM};
use pagelab_simulation::{Stopped, Watch, feed};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySequence, PyString, PyType};

use crate::source::{OPEN, Source};
use crate::{error, watch};

/// A reference stream: page numbers in the order of reference, one dimension, 32 bits each.
///
/// Made by `read_trace`, `pattern`, or from page numbers: `Trace(numbers)`, a numpy array or what
/// numpy makes one of (a list, a Series, an Arrow array). A contiguous array of dtype uint32 whose
/// numbers are dense (the greatest below four times the different ones) is used where it lies,
/// without a copy: do not change it while a call works on it. Others are numbered by their first
/// reference.
#[pyclass(frozen, module = "pagelab")]
pub struct Trace {
    references: References,
    pages: u32,
    page_size: u64,
    described: String,
    /// When each page is referenced next: made for the first replay that needs it.
    future: OnceLock<Arc<NextUse>>,
}

/// Where the references lie.
enum References {
    Own(Vec<u32>),
    Lent(Py<PyArray1<u32>>),
}

/// References between two checks of the caller.
const STEP: usize = 1 << 16;

/// Page numbers may be so many times the number of different pages.
const SPARSE: u64 = 4;

impl Trace {
    /// A stream that was made here.
    pub fn own(stream: Stream, page_size: u64, described: String) -> Self {
        let pages = stream.pages();
        Self {
            references: References::Own(stream.into_references()),
            pages,
            page_size,
            described,
            future: OnceLock::new(),
        }
    }

    /// Page numbers are below this.
    pub fn page_count(&self) -> u32 {
        self.pages
    }

    /// Bytes of a page.
    pub fn bytes_of_page(&self) -> u64 {
        self.page_size
    }

    /// How it was made.
    pub fn how(&self) -> &str {
        &self.described
    }

    /// The number of references.
    pub fn references(&self, py: Python<'_>) -> usize {
        match &self.references {
            References::Own(references) => references.len(),
            References::Lent(array) => array.bind(py).len(),
        }
    }

    /// When each of the trace's `references` is referenced next: 4 bytes a reference, kept with a trace whose references
    /// are its own; an array of the caller's may change between two calls.
    pub fn future(&self, references: &[u32]) -> Arc<NextUse> {
        let made = || Arc::new(NextUse::of(self.pages, references));
        match self.references {
            References::Own(_) => Arc::clone(self.future.get_or_init(made)),
            References::Lent(_) => made(),
        }
    }

    /// Works on the references while it holds the interpreter's lock.
    pub fn attached<T>(&self, py: Python<'_>, work: impl FnOnce(&[u32]) -> PyResult<T>) -> PyResult<T> {
        match &self.references {
            References::Own(references) => work(references),
            References::Lent(array) => {
                let array = array.bind(py).try_readonly().map_err(error::value)?;
                work(array.as_slice().map_err(error::value)?)
            }
        }
    }

    /// Works on the references without the interpreter's lock.
    pub fn during<T: Send>(
        &self,
        py: Python<'_>,
        name: &str,
        work: impl FnOnce(&[u32], &dyn Watch) -> anyhow::Result<T> + Send,
    ) -> PyResult<T> {
        match &self.references {
            References::Own(references) => watch::during(py, name, |watch| work(references, watch)),
            References::Lent(array) => {
                let array = array.bind(py).try_readonly().map_err(error::value)?;
                let references = array.as_slice().map_err(error::value)?;
                watch::during(py, name, |watch| work(references, watch))
            }
        }
    }

    /// Of an array of page numbers.
    fn of_array(array: &Bound<'_, PyUntypedArray>, page_size: u64) -> PyResult<Self> {
        let py = array.py();
        if array.ndim() != 1 {
            return Err(error::value(format!("an array of {} dimensions; a trace has one", array.ndim())));
        }
        let array = &plain(array)?;
        if let Ok(numbers) = array.cast::<PyArray1<u32>>() {
            let lent = numbers.try_readonly().map_err(error::value)?;
            if let Ok(references) = lent.as_slice() {
                let dense = watch::during(py, "counting pages", |watch| dense(references, watch))?;
                if let Some(pages) = dense {
                    let references = References::Lent(numbers.clone().unbind());
                    let described = "a numpy array".to_owned();
                    return Ok(Self { references, pages, page_size, described, future: OnceLock::new() });
                }
            }
            return numbered(py, numbers, u64::from, page_size);
        }
        if let Ok(numbers) = array.cast::<PyArray1<u64>>() {
            return numbered(py, numbers, |page| page, page_size);
        }
        if let Ok(numbers) = array.cast::<PyArray1<i64>>() {
            return numbered(py, numbers, |page| page as u64, page_size);
        }
        if let Ok(numbers) = array.cast::<PyArray1<i32>>() {
            return numbered(py, numbers, |page| page as u64, page_size);
        }
        let dtype = array.dtype();
        Err(PyTypeError::new_err(format!(
            "an array of dtype {}: page numbers are uint32, uint64, int32 or int64",
            dtype.typeobj().name()?
        )))
    }
}

/// The array itself, where its numbers lie one after another and aligned, else a copy of which they do: what came
/// through a pickle, or is a part of something else, need not.
pub fn plain<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = array.py();
    let plain =
        py.import("numpy")?.call_method1("require", (array, py.None(), ["C_CONTIGUOUS", "ALIGNED"]))?;
    Ok(plain.cast_into::<PyUntypedArray>()?)
}

/// The numbers of an array.
pub fn list<T: Element + Copy>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let plain = plain(array)?;
    plain.cast::<PyArray1<T>>()?.try_readonly().map_err(error::value)?.to_vec().map_err(error::value)
}

/// The end of the page numbers, where these are dense.
fn dense(references: &[u32], watch: &dyn Watch) -> anyhow::Result<Option<u32>> {
    let greatest = references.iter().copied().max().unwrap_or(0);
    if u64::from(greatest) >= SPARSE * references.len() as u64 || greatest == u32::MAX {
        return Ok((references.is_empty()).then_some(0));
    }
    let mut seen = vec![0u64; greatest as usize / 64 + 1];
    for chunk in references.chunks(STEP) {
        chunk.iter().for_each(|&page| seen[page as usize / 64] |= 1 << (page % 64));
        if watch.stopped() {
            return Err(Stopped.into());
        }
    }
    let different: u64 = seen.iter().map(|word| u64::from(word.count_ones())).sum();
    Ok((u64::from(greatest) < SPARSE * different).then_some(greatest + 1))
}

/// The array's pages, numbered by their first reference.
fn numbered<T: Element + Copy + Sync>(
    py: Python<'_>,
    array: &Bound<'_, PyArray1<T>>,
    page: fn(T) -> u64,
    page_size: u64,
) -> PyResult<Trace> {
    let lent = array.try_readonly().map_err(error::value)?;
    let numbers = lent.as_slice().map_err(error::value)?;
    let stream = watch::during(py, "numbering pages", |watch| {
        STREAM.and(&pagelab_simulation::cost::NUMBERING).allow(0, numbers.len() as u64, 0)?;
        let mut densifier = Densifier::default();
        let mut list = Vec::with_capacity(numbers.len());
        let mut names = Vec::with_capacity(STEP);
        for chunk in numbers.chunks(STEP) {
            names.clear();
            names.extend(chunk.iter().map(|&number| page(number)));
            let many = |_| anyhow::anyhow!("the array has 2^32 - 2 different pages or more");
            densifier.number_all(&names, &mut list).map_err(many)?;
            watch.at(list.len() as f64 / numbers.len() as f64);
            if watch.stopped() {
                return Err(Stopped.into());
            }
        }
        Ok(Stream::new(densifier.pages(), list))
    })?;
    Ok(Trace::own(stream, page_size, "a numpy array, numbered by first reference".to_owned()))
}

/// The trace that an argument means: a `Trace`, an array, or a file's path.
pub fn meant<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Trace>> {
    if let Ok(trace) = argument.cast::<Trace>() {
        return Ok(trace.clone());
    }
    if let Ok(path) = argument.extract::<PathBuf>() {
        let options = Options { page_size: DEFAULT_PAGE_SIZE, ..Options::default() };
        return Bound::new(argument.py(), read(argument.py(), Source::Path(path), &options)?);
    }
    Bound::new(argument.py(), Trace::of_array(&array_of(argument)?, DEFAULT_PAGE_SIZE)?)
}

/// The numpy array of page numbers that an argument is or holds.
fn array_of<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    if let Ok(array) = argument.cast::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    let holds_numbers = argument.cast::<PySequence>().is_ok() || argument.hasattr("__array__")?;
    if argument.is_instance_of::<PyString>() || argument.is_instance_of::<PyBytes>() || !holds_numbers {
        return Err(PyTypeError::new_err(
            "a trace is a Trace, an array or list of page numbers, or the path of a file",
        ));
    }
    let numpy = argument.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (argument,))?.cast_into::<PyUntypedArray>()?;
    // Of nothing numpy makes floats.
    if array.is_empty() {
        return Ok(numpy.call_method1("zeros", (array.shape().to_vec(), "uint32"))?.cast_into()?);
    }
    Ok(array)
}

/// The page numbers of a trace, one by one.
#[pyclass(module = "pagelab._pagelab")]
pub struct Numbers {
    trace: Py<Trace>,
    at: usize,
}

#[pymethods]
impl Trace {
    #[new]
    #[pyo3(signature = (array, page_size=4096))]
    fn new(array: &Bound<'_, PyAny>, page_size: u64) -> PyResult<Self> {
        if array.extract::<PathBuf>().is_ok() {
            return Err(PyTypeError::new_err("Trace takes page numbers; read_trace takes a file"));
        }
        Self::of_array(&array_of(array)?, page_size)
    }

    /// Page numbers are below this; of numbered pages as many are referenced.
    #[getter]
    fn pages(&self) -> u32 {
        self.pages
    }

    /// Bytes of a page.
    #[getter]
    fn page_size(&self) -> u64 {
        self.page_size
    }

    /// How it was read or made.
    #[getter]
    fn described(&self) -> &str {
        &self.described
    }

    /// Whether it lies in a numpy array of the caller's.
    #[getter]
    fn is_lent(&self) -> bool {
        matches!(self.references, References::Lent(_))
    }

    /// The number of references.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.references(py)
    }

    /// The page numbers in the order of reference: shape (len,), dtype uint32. The caller's own array where it lies
    /// in one, else a copy.
    fn to_numpy<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        match &self.references {
            References::Own(references) => PyArray1::from_slice(py, references),
            References::Lent(array) => array.bind(py).clone(),
        }
    }

    /// The page numbers in the order of reference.
    fn __iter__(slf: &Bound<'_, Self>) -> Numbers {
        Numbers { trace: slf.clone().unbind(), at: 0 }
    }

    /// Puts a pickled one together.
    #[classmethod]
    fn _of(
        _: &Bound<'_, PyType>,
        references: &Bound<'_, PyAny>,
        pages: u32,
        page_size: u64,
        described: String,
    ) -> PyResult<Self> {
        let references: Vec<u32> = list(references)?;
        if references.iter().any(|&page| page >= pages) {
            return Err(error::value(format!("a page number is not below {pages}")));
        }
        Ok(Self::own(Stream::new(pages, references), page_size, described))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let own = slf.get();
        let arguments = (own.to_numpy(slf.py()), own.pages, own.page_size, &own.described);
        Ok((slf.get_type().getattr("_of")?, arguments.into_pyobject(slf.py())?.into_any()))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let count = |number: f64| pagelab_report::text::count(number);
        let (references, pages) = (count(self.__len__(py) as f64), count(f64::from(self.pages)));
        format!("<pagelab.Trace: {references} references to {pages} pages; {}>", self.described)
    }
}

#[pymethods]
impl Numbers {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<u32>> {
        let next = self.trace.get().attached(py, |references| Ok(references.get(self.at).copied()))?;
        self.at += 1;
        Ok(next)
    }
}

/// Reads a recorded trace whole: 4 bytes a reference.
///
/// path: the file, or an open one with `read`, `seek` and `tell`; plain or in gzip, zstd, bzip2 or xz.
/// format: one of the names that `pagelab mrc --help` lists, whatever the case and with or without
///     hyphens (`oracleGeneral`); None recognises it.
/// page_size: bytes of a page, for traces of byte addresses.
/// columns: of a csv whose first line does not name them, such as "time,address,rw".
///
/// Raises PagelabError where it is no trace, or would take more than half of the memory that is available.
#[pyfunction]
#[pyo3(signature = (path, format=None, page_size=4096, columns=None))]
pub fn read_trace(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    format: Option<&str>,
    page_size: u64,
    columns: Option<&str>,
) -> PyResult<Trace> {
    let format = format.map(str::parse).transpose().map_err(error::value)?;
    let columns = match columns {
        None => None,
        Some(names) => Some(
            Columns::of_header(names.as_bytes())
                .ok_or_else(|| error::value(format!("columns '{names}': name address or page among them")))?,
        ),
    };
    read(py, Source::of(path)?, &Options { format, page_size, columns, ..Options::default() })
}

fn read(py: Python<'_>, source: Source, options: &Options) -> PyResult<Trace> {
    let cost: Cost = STREAM;
    let trace = source.during(py, "reading the trace", |source, watch| match source {
        Source::Path(path) => feed::load(&path, options, &cost, watch),
        open => feed::load_from(open.reader(options)?, Path::new(OPEN), &cost, watch),
    })?;
    let described = format!("{} ({})", trace.reading.format, trace.reading.why);
    Ok(Trace::own(trace.stream, options.page_size, described))
}
