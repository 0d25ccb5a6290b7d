//! `forkstorm`: fork, exec and exit as fast as they go (Andrew Morton, 2002).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Footprint;
use crate::declaration::{declared, words};

/// How a child ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Child {
    /// It exits.
    Exit,
    /// It executes another program, which exits.
    Exec,
}
words!(Child);

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Forkstorm {
    /// Copies that run at once
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub copies: u32,
    /// Forks of each copy (with --script: iterations, of five forks each)
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..))]
    pub forks: u32,
    /// Pages that a copy has written before it forks
    #[arg(long, value_name = "PAGES", default_value = "256")]
    pub pages: u64,
    /// Pages of those that a child writes
    #[arg(long, value_name = "PAGES", default_value = "32")]
    pub touch: u64,
    /// How a child ends: it exits, or executes a program that exits
    #[arg(long, value_enum, default_value = "exit")]
    pub child: Child,
    /// Run the published shell script over this file instead of the built-in storm
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
}
declared!(Forkstorm);

impl Forkstorm {
    /// The copies' pages and those of as many children.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        let each = self.pages.saturating_add(self.touch).saturating_mul(page_size).saturating_add(4 << 20);
        Footprint { anonymous: each.saturating_mul(u64::from(self.copies)), file: 0 }
    }
}
