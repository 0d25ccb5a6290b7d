//! `forkstorm`: fork, exec and exit as fast as they go (Andrew Morton, 2002).

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Footprint, Parameter};
use crate::setting::words;

/// How a child ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Child {
    /// It exits.
    Exit,
    /// It executes another program, which exits.
    Exec,
}
words!(Child: Exit = "exit", Exec = "exec");

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forkstorm {
    /// Copies that run at once.
    pub copies: u32,
    /// Forks of each copy (of the script: iterations, of five forks each).
    pub forks: u32,
    /// Pages that a copy has written before it forks, and of which a child writes as many as `touch`.
    pub pages: u64,
    /// Pages that a child writes.
    pub touch: u64,
    /// How a child ends.
    pub child: Child,
    /// Instead of the built-in storm: the published shell script over this file.
    pub script: Option<PathBuf>,
}

/// The parameters as the command line has them.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "copies", default: "2", help: "copies that run at once" },
    Parameter { name: "forks", default: "1000", help: "forks of each copy (with --script: iterations)" },
    Parameter { name: "pages", default: "256", help: "pages that a copy has written before it forks" },
    Parameter { name: "touch", default: "32", help: "pages of those that a child writes" },
    Parameter {
        name: "child",
        default: "exit",
        help: "a child's end: exit, or exec of a program that exits",
    },
    Parameter {
        name: "script",
        default: "none",
        help: "a file: run the published shell script over it instead of the built-in storm",
    },
];

impl Default for Forkstorm {
    fn default() -> Self {
        Self { copies: 2, forks: 1000, pages: 256, touch: 32, child: Child::Exit, script: None }
    }
}

impl Forkstorm {
    /// The copies' pages and those of as many children.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        let each = self.pages.saturating_add(self.touch).saturating_mul(page_size).saturating_add(4 << 20);
        Footprint { anonymous: each.saturating_mul(u64::from(self.copies)), file: 0 }
    }
}

impl fmt::Display for Forkstorm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { copies, forks, pages, touch, child, script } = self;
        write!(f, "--copies {copies} --forks {forks} --pages {pages} --touch {touch} --child {child}")?;
        script.iter().try_for_each(|file| write!(f, " --script {}", file.display()))
    }
}
