//! The numbers of what a notebook holds.

use std::fmt;

use serde::Serialize;

/// A run in one notebook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A repetition in one notebook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepetitionId(pub(crate) i64);
