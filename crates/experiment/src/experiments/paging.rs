//! `mapanon` and `mapfile`: references to one mapping, each timed (Mel Gorman, VM Regress, 2002).
//!
//! One mapping of `pages` pages, anonymous or of a file, is referenced `references` times in the
//! order of `pattern`. The pages are populated first (anonymous memory by writing every page once,
//! a file by being written to disk): a read of anonymous memory that was never written only maps
//! the kernel's shared zero page and consumes nothing.

use std::fmt;
use std::str::FromStr;

use pagelab_reference::Pattern;
use serde::{Deserialize, Serialize};

use super::Parameter;
use crate::setting::words;

/// What a mapping is backed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Anonymous private memory.
    Anonymous,
    /// A shared mapping of a file of the mapping's size.
    File,
}

/// What one reference does to its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// Reads every byte of the page.
    Page,
    /// Reads one machine word.
    Word,
    /// Writes one machine word.
    Write,
}
words!(Touch: Page = "page", Word = "word", Write = "write");

/// The parameters of `mapanon` and `mapfile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Paging {
    /// The mapping's size in pages.
    pub pages: u64,
    /// The number of references.
    pub references: u64,
    /// The order of references.
    #[serde(with = "text")]
    pub pattern: Pattern,
    /// What a reference does.
    pub touch: Touch,
    /// The seed of the pattern.
    pub seed: u64,
    /// Whether every page is touched twice, from the last down, before the references start.
    pub warm: bool,
}

/// The parameters as the command line has them.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "pages", default: "24576", help: "the mapping's size in pages" },
    Parameter { name: "references", default: "2000000", help: "the number of references" },
    Parameter {
        name: "pattern",
        default: "smooth-sin",
        help: "the order of references (see: pagelab patterns)",
    },
    Parameter {
        name: "touch",
        default: "page",
        help: "what a reference does: page (reads it whole), word (reads a word), write (writes a word)",
    },
    Parameter { name: "seed", default: "1", help: "the seed of the pattern" },
    Parameter {
        name: "warm",
        default: "false",
        help: "touch every page twice, from the last down, before the references start",
    },
];

impl Default for Paging {
    fn default() -> Self {
        Self {
            pages: 24_576,
            references: 2_000_000,
            pattern: Pattern::SmoothSin,
            touch: Touch::Page,
            seed: 1,
            warm: false,
        }
    }
}

impl Paging {
    /// The pages that are touched before the first reference, in order: every page once where the
    /// memory is `populated` (anonymous), then the warm-up, where there is one.
    pub fn opening(&self, pages: u32, populated: bool) -> impl Iterator<Item = u32> {
        let populated = if populated { pages } else { 0 };
        (0..populated).chain(self.warming(pages))
    }

    /// The warm-up: every page twice, from the last down; empty without one.
    pub fn warming(&self, pages: u32) -> impl Iterator<Item = u32> {
        let warm = if self.warm { pages } else { 0 };
        (0..warm).rev().flat_map(|page| [page, page])
    }
}

impl fmt::Display for Paging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "--pages {} --references {} --pattern {} --touch {} --seed {}",
            self.pages, self.references, self.pattern, self.touch, self.seed
        )?;
        if self.warm { f.write_str(" --warm") } else { Ok(()) }
    }
}

/// A pattern in its text form.
mod text {
    use super::{FromStr, Pattern};
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(pattern: &Pattern, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(pattern)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        let text = String::deserialize(deserializer)?;
        Pattern::from_str(&text).map_err(de::Error::custom)
    }
}
