//! How bad a shortage is.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing to say.
    #[default]
    Fine,
    /// What would tell cannot be read.
    Unknown,
    /// Signs of it.
    Strained,
    /// A shortage.
    Short,
}
