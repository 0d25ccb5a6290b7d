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

impl Level {
    /// Every level.
    pub const ALL: [Self; 4] = [Self::Fine, Self::Unknown, Self::Strained, Self::Short];

    /// The level in a word, and what it means.
    pub fn described(self) -> super::super::Described {
        match self {
            Self::Fine => ("fine", "no sign of a memory shortage"),
            Self::Unknown => ("unknown", "neither pressure nor /proc/vmstat can be read"),
            Self::Strained => ("strained", "signs of a memory shortage, marked with !"),
            Self::Short => ("short", "a memory shortage, marked with #; the exit status is 1"),
        }
    }
}
