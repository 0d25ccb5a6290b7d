//! What there is to replay, and to replay with.

use pagelab_model::policy::PolicyKind;
use pagelab_reference::{Pattern, Stream};
use pagelab_simulation::Source;
use pagelab_simulation::cost::Cost;
use pyo3::prelude::*;

use crate::table::{Column, Table};
use crate::trace::Trace;
use crate::{error, watch};

fn texts<'a>(list: impl Iterator<Item = &'a str>) -> Column {
    Column::Text(list.map(|text| Some(text.to_owned())).collect())
}

/// The patterns: `pattern` (the name that `pattern()` takes) and `help`.
#[pyfunction]
pub fn patterns() -> Table {
    let list = Pattern::catalogue();
    Table::new(vec![
        ("pattern", "", texts(list.iter().map(|one| one.0))),
        ("help", "", texts(list.iter().map(|one| one.1))),
    ])
}

/// The replacement policies: `policy` (the name; TAU stands for a number that must be given), `help` and `source`.
#[pyfunction]
pub fn policies() -> Table {
    let list = PolicyKind::catalogue();
    Table::new(vec![
        ("policy", "", texts(list.iter().map(|one| one.form))),
        ("help", "", texts(list.iter().map(|one| &*one.help))),
        ("source", "", texts(list.iter().map(|one| one.source))),
    ])
}

/// A generated reference stream, the same bit for bit for the same arguments everywhere.
///
/// name: such as "smooth-sin" or "zipf:0.9" (see `patterns()`).
/// pages: the pages of the region.
/// references: the length of the stream.
/// seed: another gives another stream of the same kind.
#[pyfunction]
#[pyo3(signature = (name, pages=24_576, references=2_000_000, seed=1, page_size=4096))]
pub fn pattern(
    py: Python<'_>,
    name: &str,
    pages: u64,
    references: u64,
    seed: u64,
    page_size: u64,
) -> PyResult<Trace> {
    let pattern: Pattern = name.parse().map_err(error::value)?;
    let described = format!("{pattern}, seed {seed}");
    let source = Source::Pattern { pattern, pages, references, seed };
    let stream = watch::during(py, "making the stream", |watch| {
        let loaded = source.load(&Cost::default(), watch)?;
        Ok(Stream::new(loaded.pages, loaded.references.into_owned()))
    })?;
    Ok(Trace::own(stream, page_size, described))
}
