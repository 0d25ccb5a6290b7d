//! `mapanon` and `mapfile`: references to one mapping, each timed (Mel Gorman, VM Regress, 2002).
//!
//! One mapping of `pages` pages, anonymous or of a file, is referenced `references` times in the
//! order of `pattern`. The pages are populated first (anonymous memory by writing every page once,
//! a file by being written to disk): a read of anonymous memory that was never written only maps
//! the kernel's shared zero page and consumes nothing.

use std::str::FromStr;

use pagelab_reference::Pattern;
use serde::{Deserialize, Serialize};

use super::{Content, WriteShare, Writes};
use crate::declaration::{declared, words};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// Reads every byte of the page.
    Page,
    /// Reads one machine word.
    Word,
    /// Writes one machine word.
    Write,
}
words!(Touch);

/// The parameters of `mapanon` and `mapfile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Paging {
    /// The mapping's size in pages
    #[arg(long, value_name = "PAGES", default_value = "24576", value_parser = clap::value_parser!(u64).range(1..))]
    pub pages: u64,
    /// The number of references
    #[arg(long, value_name = "N", default_value = "2000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub references: u64,
    /// The order of references (see: pagelab patterns)
    #[arg(long, value_name = "PATTERN", default_value = "smooth-sin")]
    #[serde(with = "text")]
    pub pattern: Pattern,
    /// What a reference does: reads its whole page, reads a word, or writes a word
    #[arg(long, value_enum, default_value = "page")]
    pub touch: Touch,
    /// The share of references that write a word whatever the others do, such as 5%, drawn by the seed
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    pub writes: WriteShare,
    /// mapfile, where references write: fsync(2) so many times, equally far apart, the last after the last reference
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(0..=240))]
    pub syncs: u32,
    /// Time one reference of each N, drawn at random; the time of all is that of their throughput
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub sample: u64,
    /// The seed of the pattern
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// What pages hold: compressible:SHARE (so much of each repeats one word), zero, random or file:PATH
    #[arg(long, value_name = "CONTENT", default_value = "compressible:0.5")]
    pub content: Content,
    /// Touch every page twice, from the last down, before the references start
    #[arg(long)]
    pub warm: bool,
}
declared!(Paging);

impl Paging {
    /// The share of references that write.
    pub fn write_share(&self) -> WriteShare {
        if self.touch == Touch::Write { WriteShare::ALL } else { self.writes }
    }

    /// See [`super::Experiment::contradiction`].
    pub(super) fn contradiction(
        &self,
        backing: Backing,
    ) -> Option<(&'static str, &'static str, &'static str)> {
        let syncs = self.syncs != Self::default().syncs;
        if self.touch == Touch::Write && !self.writes.is_none() {
            return Some((
                "writes",
                "writes with every reference where --touch is write",
                "give one of the two",
            ));
        }
        // One bit of a reference says whether it writes.
        if self.writes.is_mixed() && self.pages > 1 << 31 {
            return Some((
                "pages",
                "numbers at most 2147483648 of them where some references write",
                "use fewer",
            ));
        }
        if syncs && backing == Backing::Anonymous {
            return Some(("syncs", "has no file to bring to the disk in mapanon", "use mapfile"));
        }
        if syncs && self.write_share().is_none() {
            return Some((
                "syncs",
                "has nothing to bring to the disk where no reference writes",
                "give --writes 5%",
            ));
        }
        None
    }

    /// Which references write, in the order of the stream.
    pub fn drawn_writes(&self) -> Writes {
        self.write_share().drawn(self.seed)
    }

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

/// A pattern in its text form.
pub(super) mod text {
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
