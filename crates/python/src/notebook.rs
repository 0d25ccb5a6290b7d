//! Notebooks: what runs observed, how they compare, what they say.

use std::path::PathBuf;

use pagelab_analysis::comparison::against_first;
use pagelab_analysis::findings::assess;
use pagelab_experiment::{Run, Setting};
use pagelab_notebook::export::rows;
use pagelab_report::text::Style;
use pagelab_report::{comparisons, findings, runs};
use pyo3::prelude::*;

use crate::error;
use crate::table::{Column, Table, framed};

/// How text is set.
const STYLE: Style = Style { color: false, width: 100 };

/// The runs of one file, which `pagelab run` and `pl.run` write. Opened anew at each call, so that
/// it may grow meanwhile; while there is no file, what reads raises PagelabError, and `keep` and
/// `import_from` make it.
#[pyclass(frozen, module = "pagelab")]
pub struct Notebook {
    path: PathBuf,
}

/// A run, a comparison or what runs say: text here, the report's page in a notebook.
#[pyclass(frozen, module = "pagelab")]
pub struct Shown {
    text: String,
    json: String,
    page: String,
}

#[pymethods]
impl Shown {
    /// The same as JSON's objects: what `pagelab show --json` and `compare --json` print.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))
    }

    /// The report's page as one HTML file's text.
    #[getter]
    fn html(&self) -> &str {
        &self.page
    }

    fn __repr__(&self) -> &str {
        &self.text
    }

    fn _repr_html_(&self) -> String {
        framed(&self.page)
    }
}

impl Notebook {
    fn open(&self) -> PyResult<pagelab_notebook::Notebook> {
        pagelab_notebook::Notebook::open_existing(&self.path).map_err(|e| error::of(e.into()))
    }

    fn load(&self, py: Python<'_>, names: &[String]) -> PyResult<Vec<Run>> {
        let notebook = self.open()?;
        let names: Vec<String> = match names {
            [] => {
                let list = notebook.list().map_err(|e| error::of(e.into()))?;
                list.into_iter().map(|one| one.id.to_string()).collect()
            }
            named => named.to_vec(),
        };
        let mut list = Vec::new();
        for name in names {
            py.check_signals()?;
            let run = notebook.resolve(&name).and_then(|id| notebook.load(id));
            list.push(run.map_err(|e| error::of(e.into()))?);
        }
        Ok(list)
    }
}

fn texts(list: impl Iterator<Item = String>) -> Column {
    Column::Text(list.map(Some).collect())
}

#[pymethods]
impl Notebook {
    #[new]
    #[pyo3(signature = (path="pagelab.db".into()), text_signature = "(path='pagelab.db')")]
    fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The runs, the oldest first: run (its name), experiment, target, conditions, started (RFC 3339, UTC),
    /// repetitions (begun), done (those wholly performed).
    fn runs(&self) -> PyResult<Table> {
        let list = self.open()?.list().map_err(|e| error::of(e.into()))?;
        let set = |setting: &Setting| {
            let pairs = setting.values().into_iter().map(|value| value.to_string());
            pairs.collect::<Vec<_>>().join(",")
        };
        Ok(Table::new(vec![
            ("run", "", texts(list.iter().map(|one| one.header.name.clone()))),
            ("experiment", "", texts(list.iter().map(|one| one.header.experiment.name().to_owned()))),
            ("target", "", texts(list.iter().map(|one| one.header.target.to_string()))),
            ("conditions", "", texts(list.iter().map(|one| set(&one.header.setting)))),
            ("started", "", texts(list.iter().map(|one| one.header.started.clone()))),
            (
                "repetitions",
                "repetitions",
                Column::Count(list.iter().map(|one| Some(one.repetitions.into())).collect()),
            ),
            ("done", "repetitions", Column::Count(list.iter().map(|one| Some(one.done.into())).collect())),
        ]))
    }

    /// Every figure of these runs (names, ids, "@1" for the newest; none: all), one a row, as
    /// docs/src/reference/notebook.md describes the long form: run, repetition, outcome, kind,
    /// name, item, row, unit, value, text.
    #[pyo3(signature = (*names))]
    fn observations(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Table> {
        let list = self.load(py, &names)?;
        let mut all = Vec::new();
        for run in &list {
            run.repetitions.iter().for_each(|repetition| all.extend(rows(run, repetition)));
        }
        let count = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        Ok(Table::new(vec![
            ("run", "", texts(all.iter().map(|row| row.run.clone()))),
            ("repetition", "", Column::Count(all.iter().map(|row| count(Some(row.repetition))).collect())),
            ("outcome", "", texts(all.iter().map(|row| row.outcome.to_owned()))),
            ("kind", "", texts(all.iter().map(|row| row.kind.to_owned()))),
            ("name", "", texts(all.iter().map(|row| row.name.clone()))),
            ("item", "", Column::Text(all.iter().map(|row| row.item.clone()).collect())),
            ("row", "", Column::Count(all.iter().map(|row| count(row.row)).collect())),
            ("unit", "", Column::Text(all.iter().map(|row| row.unit.clone()).collect())),
            ("value", "", Column::Number(all.iter().map(|row| row.value).collect())),
            ("text", "", Column::Text(all.iter().map(|row| row.text.clone()).collect())),
        ]))
    }

    /// These runs together (none: all): figures, comparisons with the first, what they say.
    #[pyo3(signature = (*names))]
    fn assess(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Shown> {
        let list = self.load(py, &names)?;
        let list: Vec<&Run> = list.iter().collect();
        let assessment = assess(&list);
        let figures =
            list.iter().map(|run| runs::terminal(run, false, &STYLE)).collect::<Vec<_>>().join("\n");
        let compared = comparisons::terminal_all(&assessment.comparisons, false, &STYLE);
        let text = format!("{figures}\n{compared}{}", runs::verdict(&assessment.findings, &STYLE));
        let json = runs::json(&assessment, None).to_string();
        Ok(Shown { text, json, page: pagelab_report::page(&assessment) })
    }

    /// Keeps what `replay` or `mrc` gave as runs, one for each built-in policy; their names. The file is made when
    /// absent. A class of Python's is left out: the record could not say what it is.
    #[pyo3(signature = (table, name=None))]
    fn keep(&self, table: &Bound<'_, Table>, name: Option<&str>) -> PyResult<Vec<String>> {
        let Some(curves) = table.get().curves() else {
            return Err(error::value("a table that replay or mrc gave is kept"));
        };
        let mut notebook = pagelab_notebook::Notebook::open(&self.path).map_err(|e| error::of(e.into()))?;
        let mut names = Vec::new();
        for (header, seen) in curves.runs(name) {
            let run = notebook.keep(&header, &seen).and_then(|run| notebook.load(run));
            names.push(run.map_err(|e| error::of(e.into()))?.header.name);
        }
        Ok(names)
    }

    /// One run ("@1": the newest): its figures, conditions and remarks; the report's page in a notebook.
    #[pyo3(signature = (name="@1"))]
    fn run(&self, py: Python<'_>, name: &str) -> PyResult<Shown> {
        let list = self.load(py, &[name.to_owned()])?;
        let assessment = assess(&[&list[0]]);
        let text =
            runs::terminal(&list[0], false, &STYLE) + "\n" + &runs::verdict(&assessment.findings, &STYLE);
        let json = runs::json(&assessment, None).to_string();
        Ok(Shown { text, json, page: pagelab_report::page(&assessment) })
    }

    /// The runs against the first of them, as `pagelab compare` does: the answer, what changed, what spoils it.
    #[pyo3(signature = (*names))]
    fn compare(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Shown> {
        if names.len() < 2 {
            return Err(error::value("compare takes two runs or more"));
        }
        let list = self.load(py, &names)?;
        let list: Vec<&Run> = list.iter().collect();
        let compared = against_first(&list, &[]);
        let print = |one| comparisons::terminal(one, comparisons::Options::default(), &STYLE);
        let text = compared.iter().map(print).collect::<Vec<_>>().join("\n");
        let json = serde_json::Value::Array(compared.iter().map(comparisons::json).collect()).to_string();
        Ok(Shown { text, json, page: pagelab_report::page(&assess(&list)) })
    }

    /// What these runs (none: all) say, one sentence a row: run, severity (info, warning, failure), text.
    #[pyo3(signature = (*names))]
    fn findings(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Table> {
        let list = self.load(py, &names)?;
        let list: Vec<&Run> = list.iter().collect();
        let found = assess(&list).findings;
        let severity =
            |one: &pagelab_analysis::finding::Finding| format!("{:?}", one.severity).to_lowercase();
        Ok(Table::new(vec![
            ("run", "", texts(found.iter().map(|one| one.run.clone()))),
            ("severity", "", texts(found.iter().map(severity))),
            ("text", "", texts(found.iter().map(findings::text))),
        ]))
    }

    /// Takes over what another notebook has: a run that is here already only gets the repetitions that it lacks.
    fn import_from(&self, path: PathBuf) -> PyResult<()> {
        let mut own = pagelab_notebook::Notebook::open(&self.path).map_err(|e| error::of(e.into()))?;
        own.import(&path).map(drop).map_err(|e| error::of(e.into()))
    }

    fn __repr__(&self) -> String {
        format!("<pagelab.Notebook: {}>", self.path.display())
    }
}
