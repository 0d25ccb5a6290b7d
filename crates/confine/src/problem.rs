//! Why something is not set up.

use std::io;

/// Why something is not set up.
#[derive(Debug)]
pub enum Problem {
    /// This machine or user cannot have it: what, and what to do instead.
    Unavailable(String, String),
    /// It would press the machine: what, and what to do instead.
    Refused(String, String),
    /// The system refused what it should allow: doing what, and how.
    Failed(String, io::Error),
    /// The user ended the waiting.
    Interrupted,
}

/// The journal could not be written.
pub(crate) fn not_noted(error: io::Error) -> Problem {
    Problem::Failed("the journal of the set-up cannot be written".into(), error)
}
