//! `faultscale`: how memory management scales with workers (Matthew Dillon, 2011).

use serde::{Deserialize, Serialize};

use super::Footprint;
use crate::declaration::{declared, positive, words};

/// What the workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
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
words!(Work);

/// What the workers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workers {
    /// Threads of one process: one address space.
    Threads,
    /// Processes: one each.
    Processes,
}
words!(Workers);

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Faultscale {
    /// What the workers do
    #[arg(long, value_enum, default_value = "anon")]
    pub work: Work,
    /// What the workers are
    #[arg(long = "as", value_enum, default_value = "threads")]
    pub as_: Workers,
    /// How many workers, one after the other
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "1,2,3,4,6,8", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub workers: Vec<u32>,
    /// Seconds for each number of workers (not of a build, which is done when it is done)
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = positive)]
    pub seconds: f64,
    /// Pages of a worker's mapping
    #[arg(long, value_name = "PAGES", default_value = "1024", value_parser = clap::value_parser!(u64).range(1..))]
    pub pages: u64,
    /// build: copies at once
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub copies: u32,
    /// build: source files to write and compile
    #[arg(long, value_name = "N", default_value = "24", value_parser = clap::value_parser!(u32).range(1..))]
    pub sources: u32,
    /// build: a command instead, {jobs} being the number of workers: 'make -j{jobs}'
    #[arg(long, value_name = "COMMAND")]
    pub cmd: Option<String>,
}
declared!(Faultscale);

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
