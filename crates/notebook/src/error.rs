//! What can go wrong with a notebook: always with the file's path, and with what to do next.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// A problem with one notebook.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct Error {
    /// The notebook's file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a notebook, or with what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There is no such file.
    #[error(
        "this folder has no notebook yet\nhint: 'pagelab run' creates one, --notebook FILE names another"
    )]
    Missing,
    /// The file is something else. It was not touched.
    #[error(
        "this is not a notebook of pagelab but {0}; it was not changed\nhint: name another file with \
        --notebook"
    )]
    Foreign(String),
    /// A later pagelab made it. It was not touched.
    #[error(
        "a newer pagelab made this notebook (version {found}; this one reads up to {known}); it was not \
        changed\nhint: update pagelab"
    )]
    Newer {
        /// The file's version.
        found: i32,
        /// The last version that this program knows.
        known: i32,
    },
    /// It was a notebook, and is torn or overwritten.
    #[error(
        "the notebook is damaged ({0})\nhint: restore a copy, or recover the readable part: sqlite3 FILE .recover"
    )]
    Damaged(String),
    /// One run cannot be understood; the others are not concerned.
    #[error("the run '{run}' cannot be read: {why}")]
    Unreadable {
        /// Its name.
        run: String,
        /// What cannot be understood, and which pagelab made it where that was another.
        why: String,
    },
    /// No room for what was to be written.
    #[error(
        "the disk is full; finished repetitions are stored\nhint: free space, or name a notebook \
        elsewhere with --notebook"
    )]
    Full,
    /// Another program holds the file for too long.
    #[error("another program has locked the notebook for 30 seconds\nhint: retry when it has ended")]
    Busy,
    /// It may not be written.
    #[error("the notebook cannot be written\nhint: check the permissions of the file and its folder")]
    ReadOnly,
    /// It cannot be opened at all.
    #[error("the notebook cannot be opened\nhint: check that its folder exists and is writable")]
    CannotOpen,
    /// A name or number that no run has.
    #[error("no run '{name}' in this notebook\nhint: {}'pagelab list' lists all", meant.as_ref().map(|run| format!("did you mean {run}? ")).unwrap_or_default())]
    NoRun {
        /// What was asked for.
        name: String,
        /// The run that was probably meant.
        meant: Option<String>,
    },
    /// A name that another run has.
    #[error("a run '{0}' exists already\nhint: choose another --name")]
    NameTaken(String),
    /// A name that reads like something else.
    #[error(
        "{0:?} cannot name a run: a name is not only digits, does not start with @, has no control characters and at most 200 bytes"
    )]
    NameImpossible(String),
    /// A number beyond what the file can hold.
    #[error("{0} is beyond the notebook's whole numbers (2^63 - 1)")]
    TooLarge(u64),
    /// Anything else of the file system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file system failed under SQLite, or a limit on the size of files was met.
    #[error(
        "the notebook cannot be read or written further ({0})\nhint: see the kernel's log and the limits of this shell (ulimit -f)"
    )]
    Device(String),
    /// Anything else of SQLite, in its words.
    #[error("the notebook's library failed: {0}")]
    Sqlite(String),
}

/// SQLite's message without the statement that it is about.
fn words(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    }
}

impl Problem {
    pub(crate) fn at(self, path: &Path) -> Error {
        Error { path: path.to_owned(), problem: self }
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match &error {
            E::FromSqlConversionFailure(..)
            | E::IntegralValueOutOfRange(..)
            | E::Utf8Error(..)
            | E::InvalidColumnType(..) => Self::Damaged(error.to_string()),
            // The statement fits every notebook of ours.
            E::SqlInputError { msg, .. } => Self::Damaged(msg.clone()),
            _ => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => Self::Full,
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    Self::Damaged(error.to_string())
                }
                Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly,
                Some(ErrorCode::CannotOpen) => Self::CannotOpen,
                Some(ErrorCode::SystemIoFailure) => Self::Device(words(&error)),
                _ => Self::Sqlite(words(&error)),
            },
        }
    }
}
