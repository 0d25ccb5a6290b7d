//! `faultscale`: how memory management scales with workers (Matthew Dillon, 2011).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Footprint, Parameter};
use crate::setting::words;

/// What the workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// First writes to private anonymous pages.
    Anon,
    /// First reads of pages of one cached file that all map shared.
    File,
    /// Mapping and unmapping.
    Map,
    /// Forking a child that exits.
    Fork,
    /// Compiling sources.
    Build,
}
words!(Work: Anon = "anon", File = "file", Map = "map", Fork = "fork", Build = "build");

/// What the workers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workers {
    /// Threads of one process: one address space.
    Threads,
    /// Processes: one each.
    Processes,
}
words!(Workers: Threads = "threads", Processes = "processes");

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Faultscale {
    /// What the workers do.
    pub work: Work,
    /// What they are.
    pub as_: Workers,
    /// How many, one after the other.
    pub workers: Vec<u32>,
    /// Seconds for each number of workers (not of a build, which is done when it is done).
    pub seconds: f64,
    /// Pages of a worker's mapping.
    pub pages: u64,
    /// `build`: copies of the build at once.
    pub copies: u32,
    /// `build`: the source files that are written and compiled.
    pub sources: u32,
    /// `build`: instead, this command with {jobs} for the number of workers.
    pub cmd: Option<String>,
}

/// The parameters as the command line has them.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "work", default: "anon", help: "anon, file, map, fork, or build" },
    Parameter { name: "as", default: "threads", help: "workers are threads of one process, or processes" },
    Parameter { name: "workers", default: "1,2,3,4,6,8", help: "how many workers, one after the other" },
    Parameter { name: "seconds", default: "1", help: "seconds for each number of workers" },
    Parameter { name: "pages", default: "1024", help: "pages of a worker's mapping" },
    Parameter { name: "copies", default: "1", help: "build: copies at once" },
    Parameter { name: "sources", default: "24", help: "build: source files to write and compile" },
    Parameter { name: "cmd", default: "none", help: "build: a command instead, such as 'make -j{jobs}'" },
];

impl Default for Faultscale {
    fn default() -> Self {
        Self {
            work: Work::Anon,
            as_: Workers::Threads,
            workers: vec![1, 2, 3, 4, 6, 8],
            seconds: 1.0,
            pages: 1024,
            copies: 1,
            sources: 24,
            cmd: None,
        }
    }
}

impl Faultscale {
    /// The mappings of all workers; for a build, what its compilers take.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        let most = u64::from(self.workers.iter().copied().max().unwrap_or(1));
        let mappings = most.saturating_mul(self.pages).saturating_mul(page_size);
        match self.work {
            Work::Build => {
                let compilers = most.saturating_mul(u64::from(self.copies));
                Footprint { anonymous: compilers.saturating_mul(48 << 20), file: 1 << 20 }
            }
            Work::File => Footprint { anonymous: 0, file: self.pages.saturating_mul(page_size) },
            _ => Footprint { anonymous: mappings, file: 0 },
        }
    }
}

impl fmt::Display for Faultscale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, as_, workers, seconds, pages, copies, sources, cmd } = self;
        let workers: Vec<String> = workers.iter().map(u32::to_string).collect();
        write!(f, "--work {work} --as {as_} --workers {}", workers.join(","))?;
        match (work, cmd) {
            (Work::Build, Some(cmd)) => write!(f, " --copies {copies} --cmd '{cmd}'"),
            (Work::Build, None) => write!(f, " --copies {copies} --sources {sources}"),
            _ => write!(f, " --seconds {seconds} --pages {pages}"),
        }
    }
}
