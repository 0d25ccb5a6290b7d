//! Failures whose exit status differs from the general one.

use std::fmt;
use std::io;

use pagelab_reference::PatternError;
use pagelab_simulation::Unanswerable;

/// A failure with an exit status of its own.
#[derive(Debug)]
pub enum CommandError {
    /// The user asked for something that cannot be meant: status 2.
    Usage(String),
    /// The user ended it: 130, as shells report an interrupted program.
    Interrupted,
    /// The same of a command that keeps nothing in the notebook.
    Stopped,
}

impl CommandError {
    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Interrupted | Self::Stopped => 130,
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => f.write_str(text),
            Self::Interrupted => f.write_str("interrupted; finished repetitions are in the notebook"),
            Self::Stopped => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for CommandError {}

/// A wrong usage as an error.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    CommandError::Usage(text.into()).into()
}

/// The exit status of a command that failed: 2 where what was asked for cannot be had of the
/// stream, else 3.
pub fn status(error: &anyhow::Error) -> u8 {
    if let Some(own) = error.downcast_ref::<CommandError>() {
        return own.status();
    }
    let of_pattern = error.downcast_ref::<PatternError>();
    let is_usage =
        error.is::<Unanswerable>() || of_pattern.is_some_and(|e| !matches!(e, PatternError::Memory(_)));
    if is_usage { 2 } else { 3 }
}

/// Whether the user ended it.
pub fn is_interrupted(error: &anyhow::Error) -> bool {
    let ended = |error: &CommandError| matches!(error, CommandError::Interrupted | CommandError::Stopped);
    error.downcast_ref().is_some_and(ended)
}

/// Whether the reader of our output went away, which is no failure of ours.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
