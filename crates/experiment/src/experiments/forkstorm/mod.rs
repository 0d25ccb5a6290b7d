//! `forkstorm`: fork, exec and exit as fast as they go (Andrew Morton, 2002).

pub mod metrics;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Feature, Footprint, Programs, Tasks};
use crate::declaration::{declared, words};
use crate::metrics::{EXEC_COST, EXIT_COST, FORK_COST, FORKS_RATE, MetricId};

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
    /// Pages that a child writes
    #[arg(long, value_name = "PAGES", default_value = "32")]
    pub touch: u64,
    /// The end of a child: it exits, or executes a program that exits
    #[arg(long, value_enum, default_value = "exit")]
    pub child: Child,
    /// Run the published shell script over this file instead of the built-in storm
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
}
declared!(Forkstorm);

/// Programs that the published script calls.
const SCRIPT: &str = "test cat wc expr";

impl Declaration for Forkstorm {
    /// The copies' pages and those of as many children.
    fn footprint(&self, page_size: u64) -> Footprint {
        let each = self.pages.saturating_add(self.touch).saturating_mul(page_size).saturating_add(4 << 20);
        Footprint::anonymous(each.saturating_mul(u64::from(self.copies)))
    }

    fn primary(&self) -> Option<MetricId> {
        Some(FORKS_RATE)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[FORK_COST, EXIT_COST, EXEC_COST]
    }

    /// Each copy with its child; of the script its guard, its shell, a pipe's subshell and two
    /// programs.
    fn tasks(&self, _: u64) -> Tasks {
        let each = if self.script.is_some() { 5 } else { 2 };
        Tasks::processes(u64::from(self.copies).saturating_mul(each))
    }

    fn requires(&self) -> Vec<Feature> {
        let parallel = (self.copies > 1).then_some(Feature::Parallel);
        let script = self.script.as_ref().map(|file| {
            let words = ["/bin/sh", SCRIPT, &file.to_string_lossy()].map(str::to_owned).to_vec();
            Feature::Programs(Programs {
                parameter: "script",
                words,
                script: Some(file.clone()),
                many: false,
            })
        });
        parallel.into_iter().chain(script).collect()
    }

    fn profiles_kernel(&self) -> bool {
        true
    }

    fn forks_itself(&self) -> bool {
        self.script.is_none()
    }
}
