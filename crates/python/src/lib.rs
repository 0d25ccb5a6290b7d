//! pagelab as a module of Python's: the rooms of the library behind functions that take numpy arrays and give tables
//! that every data frame takes. Nothing is computed here.

mod curve;
mod error;
mod fleet;
mod notebook;
mod patterns;
mod policy;
mod simulate;
mod source;
mod table;
mod trace;
mod watch;

/// The compiled part of the package `pagelab`.
#[pyo3::pymodule]
mod _pagelab {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::error::PagelabError;
    #[pymodule_export]
    use super::fleet::{Merge, Piece, Shard, chunk, replayed, sample, sampled_curve, shard};
    #[pymodule_export]
    use super::notebook::{Notebook, Shown};
    #[pymodule_export]
    use super::patterns::{pattern, patterns, policies};
    #[pymodule_export]
    use super::simulate::{mrc, replay, wss};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::trace::{Trace, read_trace};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
