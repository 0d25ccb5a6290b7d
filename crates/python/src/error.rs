//! Errors of the library as exceptions.

use std::io;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;

create_exception!(pagelab, PagelabError, PyException, "What pagelab could not do, and why.");

/// An error with its causes; a file that is not there as Python's own.
pub fn of(error: anyhow::Error) -> PyErr {
    let text = format!("{error:#}");
    let missing = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::NotFound)
    };
    if error.chain().any(missing) { PyFileNotFoundError::new_err(text) } else { PagelabError::new_err(text) }
}

/// A value that cannot be meant.
pub fn value(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
