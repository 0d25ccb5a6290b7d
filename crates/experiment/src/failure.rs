//! Why an experiment was not performed wholly: a kind, what was being done, and what caused it.
//!
//! A failure crosses processes (worker, guest) and is kept in the notebook, so it is data: no code reads
//! its text to decide. The text is made by `Display`, where it is shown; the causes follow as sources.

use std::error::Error;
use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// What kind of failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FailureKind {
    /// The user ended it.
    Interrupted,
    /// The target cannot do this experiment or this condition here.
    Unsupported {
        /// What to do instead.
        remedy: String,
    },
    /// It would endanger the machine.
    Refused {
        /// What to do instead.
        remedy: String,
    },
    /// The kernel, or the model of one, found no memory for the load inside its limit.
    OutOfMemory {
        /// The limit in bytes.
        limit: u64,
    },
    /// The kernel of a guest did not boot.
    NeverBooted,
    /// A guest that had booted panicked or ended in the middle.
    GuestDied,
    /// Nothing was heard for so long that it was given up.
    TimedOut {
        /// How long, in seconds.
        seconds: u64,
    },
    /// A program of the user's, or one that the experiment runs, ended badly.
    ProgramFailed {
        /// Its exit status, where it exited.
        status: Option<i32>,
        /// The signal that ended it, where one did.
        signal: Option<i32>,
    },
    /// A process of pagelab's own that performed the experiment died.
    WorkerDied {
        /// The signal that ended it, where one did.
        signal: Option<i32>,
    },
    /// The system refused something that it should allow.
    System {
        /// The system's error number, where there is one.
        errno: Option<i32>,
    },
    /// The parameters contradict each other or what they name (a trace that cannot be read).
    Parameters,
    /// The observations could not be kept.
    Recorder,
    /// From a notebook of before failures had kinds.
    Unclassified,
}

impl FailureKind {
    /// The kind in a word, as the notebook has it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Unsupported { .. } => "unsupported",
            Self::Refused { .. } => "refused",
            Self::OutOfMemory { .. } => "out-of-memory",
            Self::NeverBooted => "never-booted",
            Self::GuestDied => "guest-died",
            Self::TimedOut { .. } => "timed-out",
            Self::ProgramFailed { .. } => "program-failed",
            Self::WorkerDied { .. } => "worker-died",
            Self::System { .. } => "system",
            Self::Parameters => "parameters",
            Self::Recorder => "recorder",
            Self::Unclassified => "unclassified",
        }
    }
}

/// One error behind a failure, with what caused it in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<Box<Cause>>,
}

impl Cause {
    /// `error` and its sources, as texts that can be kept and sent.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        Self { text: error.to_string(), source: error.source().map(|source| Box::new(Self::of(source))) }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|cause| cause as _)
    }
}

/// Why an experiment was not performed wholly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind: what code decides by.
    #[serde(flatten)]
    pub kind: FailureKind,
    /// What was being done, or what is wrong, without the causes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// What caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// What was performed, or why it was not.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure of this kind without a cause.
    pub fn new(kind: FailureKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), cause: None }
    }

    /// The same with its cause.
    pub fn because(self, error: &(dyn Error + 'static)) -> Self {
        Self { cause: Some(Cause::of(error)), ..self }
    }

    /// The user ended it.
    pub fn interrupted() -> Self {
        Self::new(FailureKind::Interrupted, "")
    }

    /// What is impossible on this target or machine, and what to do instead.
    pub fn unsupported(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(FailureKind::Unsupported { remedy: remedy.into() }, what)
    }

    /// What would be too much for the machine, and what to do instead.
    pub fn refused(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(FailureKind::Refused { remedy: remedy.into() }, what)
    }

    /// The load was killed inside its limit of `limit` bytes.
    pub fn out_of_memory(limit: u64) -> Self {
        Self::new(FailureKind::OutOfMemory { limit }, "")
    }

    /// The system refused something while `doing` it.
    pub fn system(doing: impl Into<String>, error: &io::Error) -> Self {
        Self::new(FailureKind::System { errno: error.raw_os_error() }, doing).because(error)
    }

    /// Parameters that cannot be performed.
    pub fn parameters(what: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        Self::new(FailureKind::Parameters, what).because(error)
    }

    /// A program that the experiment runs ended with `status` instead of success.
    pub fn program(what: impl Into<String>, status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let kind = FailureKind::ProgramFailed { status: status.code(), signal: status.signal() };
        Self::new(kind, format!("{} ended with {status}", what.into()))
    }

    /// Whether the user ended it.
    pub fn is_interrupted(&self) -> bool {
        self.kind == FailureKind::Interrupted
    }

    /// Whether the machine, the target or the system refused it: what it was to measure did not fail.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Unsupported { .. }
                | FailureKind::Refused { .. }
                | FailureKind::System { .. }
                | FailureKind::Parameters
        )
    }

    /// Whether memory ran out inside the limit.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.kind, FailureKind::OutOfMemory { .. })
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<&str> {
        match &self.kind {
            FailureKind::Unsupported { remedy } | FailureKind::Refused { remedy } => Some(remedy),
            FailureKind::OutOfMemory { .. } => Some(OUT_OF_MEMORY_REMEDY),
            _ => None,
        }
    }

    /// The whole text on one line: what, each cause, the remedy.
    pub fn full(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(cause) = source {
            text += &format!(": {cause}");
            source = cause.source();
        }
        text
    }
}

const OUT_OF_MEMORY_REMEDY: &str = "give more memory or more swap";

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match &self.kind {
            FailureKind::Interrupted => f.write_str("interrupted"),
            FailureKind::Unsupported { remedy } => write!(f, "{what}; {remedy}"),
            FailureKind::Refused { remedy } => write!(f, "refused: {what}; {remedy}"),
            FailureKind::OutOfMemory { limit } => write!(
                f,
                "out of memory: the load was killed inside its memory limit of {limit} bytes; {OUT_OF_MEMORY_REMEDY}"
            ),
            FailureKind::Recorder => f.write_str("the run could not be written"),
            _ => f.write_str(what),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

/// An observation could not be kept.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RecorderError(#[from] Box<dyn Error + Send + Sync>);

impl RecorderError {
    /// From whatever kept the recorder from keeping.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

impl From<RecorderError> for Failure {
    fn from(error: RecorderError) -> Self {
        Self::new(FailureKind::Recorder, "").because(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_json_with_its_kind_and_causes() {
        let refused = io::Error::from_raw_os_error(13);
        for failure in [
            Failure::interrupted(),
            Failure::unsupported("no perf", "run as root"),
            Failure::out_of_memory(1 << 20),
            Failure::system("mapping 3 pages", &refused),
            RecorderError::new("full").into(),
            Failure::new(FailureKind::ProgramFailed { status: Some(3), signal: None }, "sort"),
        ] {
            let json = serde_json::to_value(&failure).unwrap();
            assert_eq!(json["kind"], failure.kind.word());
            assert_eq!(serde_json::from_value::<Failure>(json).unwrap(), failure);
        }
        let failure = Failure::system("mapping 3 pages", &refused);
        assert_eq!(failure.kind, FailureKind::System { errno: Some(13) });
        assert_eq!(failure.full(), "mapping 3 pages: Permission denied (os error 13)");
        assert_eq!(failure.to_string(), "mapping 3 pages");
        assert_eq!(Failure::unsupported("no perf", "run as root").full(), "no perf; run as root");
    }
}
