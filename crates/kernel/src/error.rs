//! Why the kernel did not do something.

use std::io;

/// An error of an interface that needs several system calls or files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine, kernel or user cannot have it.
    #[error("{what}")]
    Unsupported {
        /// What is not supported.
        what: String,
        /// What to do instead.
        remedy: String,
    },
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Error {
    /// An [`Error::Unsupported`].
    pub fn unsupported(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), remedy: remedy.into() }
    }
}
