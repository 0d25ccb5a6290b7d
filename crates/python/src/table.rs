//! Tables of results, which other libraries take through Arrow's C stream without a copy of the figures.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use pagelab_experiment::build::Point;
use pagelab_experiment::experiments::Curve;
use pagelab_report::text::{self, DASH, Style};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList, PyType};

use crate::curve::{Curves, Named};
use crate::error;

/// A table of results: columns of equal length, each with its unit.
///
/// pandas, polars, DuckDB and pyarrow take it through the Arrow PyCapsule interface:
/// `pandas.DataFrame.from_arrow(table)`, `polars.DataFrame(table)`, `duckdb.sql("select * from results")`,
/// `pyarrow.table(table)`. The unit of a column is in its field's metadata, under `unit`.
#[pyclass(frozen, module = "pagelab", subclass)]
pub struct Table {
    batch: RecordBatch,
    curves: Option<Curves>,
}

/// A column as it is made.
pub enum Column {
    /// Words.
    Text(Vec<Option<String>>),
    /// Counts.
    Count(Vec<Option<u64>>),
    /// Figures.
    Number(Vec<Option<f64>>),
}

impl Table {
    /// Columns: name, unit (empty: none), values.
    pub fn new(columns: Vec<(&str, &str, Column)>) -> Self {
        let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
        for (name, unit, column) in columns {
            let array: ArrayRef = match column {
                Column::Text(values) => Arc::new(StringArray::from(values)),
                Column::Count(values) => Arc::new(UInt64Array::from(values)),
                Column::Number(values) => Arc::new(Float64Array::from(values)),
            };
            let field = Field::new(name, array.data_type().clone(), true);
            let unit = (!unit.is_empty()).then(|| ("unit".to_owned(), unit.to_owned()));
            fields.push(field.with_metadata(unit.into_iter().collect::<HashMap<_, _>>()));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        Self { batch: batch.expect("the columns are of equal length"), curves: None }
    }

    /// The points of curves, which are drawn with it and can be kept.
    pub fn of_curves(curves: Curves) -> Self {
        let points = &curves.points;
        let counts = |of: &dyn Fn(&Named) -> Option<u64>| Column::Count(points.iter().map(of).collect());
        let numbers = |of: fn(&Named) -> Option<f64>| Column::Number(points.iter().map(of).collect());
        let (more, unit, column) = if curves.is_mrc {
            ("standard_error", "misses per reference", numbers(|one| one.point.error))
        } else {
            ("mean_resident", "pages", numbers(|one| one.point.mean_resident))
        };
        let columns = vec![
            ("policy", "", Column::Text(points.iter().map(|one| Some(one.policy.clone())).collect())),
            ("frames", "pages", counts(&|one| Some(one.point.frames.into()))),
            ("references", "references", counts(&|_| Some(curves.about.references))),
            ("misses", "misses", counts(&|one| one.point.misses)),
            ("miss_ratio", "misses per reference", numbers(|one| one.point.ratio)),
            (more, unit, column),
        ];
        Self { curves: Some(curves.clone()), ..Self::new(columns) }
    }

    /// The curves, where it is of such.
    pub fn curves(&self) -> Option<&Curves> {
        self.curves.as_ref()
    }

    /// The points of a table of curves.
    fn points(&self) -> Option<Vec<Named>> {
        let column = |name| self.batch.column_by_name(name);
        let policies = column("policy")?.as_any().downcast_ref::<StringArray>()?;
        let counts = |name| column(name)?.as_any().downcast_ref::<UInt64Array>();
        let numbers = |name| column(name)?.as_any().downcast_ref::<Float64Array>();
        let (frames, misses, ratios) = (counts("frames")?, counts("misses")?, numbers("miss_ratio")?);
        let (errors, means) = (numbers("standard_error"), numbers("mean_resident"));
        let number = |array: &Float64Array, row| array.is_valid(row).then(|| array.value(row));
        let point = |row| {
            let point = Point {
                frames: u32::try_from(frames.value(row)).ok()?,
                misses: misses.is_valid(row).then(|| misses.value(row)),
                ratio: number(ratios, row),
                error: errors.and_then(|array| number(array, row)),
                mean_resident: means.and_then(|array| number(array, row)),
                ..Point::default()
            };
            Some(Named { policy: policies.value(row).to_owned(), point })
        };
        (0..self.batch.num_rows()).map(point).collect()
    }

    fn list<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyList>> {
        let array = self.batch.column(index).as_any();
        if let Some(texts) = array.downcast_ref::<StringArray>() {
            return PyList::new(py, texts.iter().collect::<Vec<_>>());
        }
        if let Some(counts) = array.downcast_ref::<UInt64Array>() {
            return PyList::new(py, counts.iter().collect::<Vec<_>>());
        }
        let numbers = array.downcast_ref::<Float64Array>().expect("columns are of three kinds");
        PyList::new(py, numbers.iter().collect::<Vec<_>>())
    }

    /// The rows as they are shown: what is not known is a dash.
    fn cells(&self) -> Vec<Vec<String>> {
        let cell = |array: &ArrayRef, row: usize| {
            if array.is_null(row) {
                return DASH.to_owned();
            }
            let any = array.as_any();
            match array.data_type() {
                DataType::Utf8 => any.downcast_ref::<StringArray>().map(|texts| texts.value(row).to_owned()),
                DataType::UInt64 => {
                    any.downcast_ref::<UInt64Array>().map(|counts| text::count(counts.value(row) as f64))
                }
                _ => any.downcast_ref::<Float64Array>().map(|numbers| number(numbers.value(row))),
            }
            .expect("columns are of three kinds")
        };
        (0..self.batch.num_rows())
            .map(|row| self.batch.columns().iter().map(|array| cell(array, row)).collect())
            .collect()
    }
}

/// A number as it is shown: a whole one without decimals.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { text::count(value) } else { format!("{value:.6}") }
}

/// A page of the report's within a notebook.
pub fn framed(page: &str) -> String {
    let page = escaped(page).replace('"', "&quot;");
    format!(r#"<iframe srcdoc="{page}" style="width:100%;height:36em;border:0" title="pagelab"></iframe>"#)
}

/// A pickled column: name, unit, kind, values.
type Pickled<'py> = (String, String, String, Bound<'py, PyAny>);

/// The stream of pickled curves: whether they are of `mrc`, name, page size, references, pages,
/// sample.
type PickledStream = (bool, String, u64, u64, u64, Option<f64>);

/// The kinds of pickled columns.
const TEXT: &str = "text";
const COUNT: &str = "count";
const NUMBER: &str = "number";

/// How a table is printed.
const STYLE: Style = Style { color: false, width: 100 };

/// Rows of a table that are shown.
const SHOWN: usize = 60;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The unit of each column that has one.
    #[getter]
    fn units(&self) -> HashMap<String, String> {
        let unit = |field: &Arc<Field>| Some((field.name().clone(), field.metadata().get("unit")?.clone()));
        self.batch.schema().fields().iter().filter_map(unit).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// A column as a list; what is not known is None.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let index = self.batch.schema().index_of(name).map_err(|_| {
            PyKeyError::new_err(format!("no column '{name}'; must be one of {}", self.columns().join(", ")))
        })?;
        self.list(py, index)
    }

    /// The rows, each a dict by the columns' names.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let names = self.columns();
        let lists: Vec<_> = (0..names.len()).map(|index| self.list(py, index)).collect::<PyResult<_>>()?;
        let rows = PyList::empty(py);
        for number in 0..self.batch.num_rows() {
            let row = PyDict::new(py);
            for (name, list) in names.iter().zip(&lists) {
                row.set_item(name, list.get_item(number)?)?;
            }
            rows.append(row)?;
        }
        rows.try_iter()
    }

    /// Puts a pickled one together.
    #[classmethod]
    fn _of(
        _: &Bound<'_, PyType>,
        columns: Vec<Pickled<'_>>,
        stream: Option<PickledStream>,
    ) -> PyResult<Self> {
        let mut list = Vec::new();
        for (name, unit, kind, values) in &columns {
            let column = match kind.as_str() {
                TEXT => Column::Text(values.extract()?),
                COUNT => Column::Count(values.extract()?),
                _ => Column::Number(values.extract()?),
            };
            list.push((name.as_str(), unit.as_str(), column));
        }
        let table = Self::new(list);
        let Some((is_mrc, stream, page_size, references, pages, sample)) = stream else { return Ok(table) };
        let about = Curve { stream, page_size, references, pages, sample, ..Curve::default() };
        let points = table.points().ok_or_else(|| error::value("no table of curves"))?;
        Ok(Self { curves: Some(Curves { about, is_mrc, points }), ..table })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, own) = (slf.py(), slf.get());
        let (units, schema) = (own.units(), own.batch.schema());
        let columns: Vec<Pickled<'_>> = schema
            .fields()
            .iter()
            .enumerate()
            .map(|(index, field)| {
                let unit = units.get(field.name()).cloned().unwrap_or_default();
                let kind = match field.data_type() {
                    DataType::Utf8 => TEXT,
                    DataType::UInt64 => COUNT,
                    _ => NUMBER,
                };
                Ok((field.name().clone(), unit, kind.to_owned(), own.list(py, index)?.into_any()))
            })
            .collect::<PyResult<_>>()?;
        let stream: Option<PickledStream> = own.curves.as_ref().map(|curves| {
            let Curve { stream, page_size, references, pages, sample, .. } = curves.about.clone();
            (curves.is_mrc, stream, page_size, references, pages, sample)
        });
        Ok((slf.get_type().getattr("_of")?, (columns, stream).into_pyobject(py)?.into_any()))
    }

    /// The columns as lists, by their names.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dictionary = PyDict::new(py);
        for (index, field) in self.batch.schema().fields().iter().enumerate() {
            dictionary.set_item(field.name(), self.list(py, index)?)?;
        }
        Ok(dictionary)
    }

    /// Arrow's C stream of the table.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer that asks for other types casts itself: the protocol lets a producer ignore the wish.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        let names = self.columns();
        let headings: Vec<&str> = names.iter().map(String::as_str).collect();
        let rows: Vec<Vec<String>> = self.cells().into_iter().take(SHOWN).collect();
        let shown = text::table(&headings, &rows, &STYLE);
        match self.batch.num_rows().checked_sub(SHOWN + 1) {
            Some(more) => format!("{shown}\n… {} more rows", more + 1),
            None => shown,
        }
    }

    /// The table; of curves the report's page, with their figures.
    fn _repr_html_(&self) -> String {
        if let Some(curves) = &self.curves {
            return framed(&curves.page());
        }
        let row = |cells: &[String], tag: &str| {
            let cells: String =
                cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
            format!("<tr>{cells}</tr>")
        };
        let rows: String = self.cells().iter().take(SHOWN).map(|cells| row(cells, "td")).collect();
        let more = self.batch.num_rows().saturating_sub(SHOWN);
        let more = if more > 0 { format!("<caption>{more} more rows</caption>") } else { String::new() };
        format!("<table>{more}<thead>{}</thead><tbody>{rows}</tbody></table>", row(&self.columns(), "th"))
    }
}
