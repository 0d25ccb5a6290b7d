//! Why a study could not be made.

/// Why a study could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// The published figures cannot be read.
    #[error("published/{file}: {what}")]
    Published {
        /// The file.
        file: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The claims cannot be read, or the model does not answer them.
    #[error("published/claims/{study}.toml: {what}")]
    Claims {
        /// The study.
        study: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The rows to fit cannot be used.
    #[error("--fit: {0}")]
    Fit(String),
    /// There is no such parameter, or the value is not allowed.
    #[error("{0}")]
    Parameter(String),
    /// There is no such change of the model.
    #[error("{study} has no ablation '{name}'; it has {known}")]
    Ablation {
        /// The study.
        study: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}
