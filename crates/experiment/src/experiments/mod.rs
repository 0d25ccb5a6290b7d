//! The experiments, one file each. An experiment is its parameters; targets know how to perform it.

pub mod addressing;
pub mod bandwidth;
pub mod clock;
pub mod command;
pub mod content;
pub mod curve;
pub mod faultscale;
pub mod fileread;
pub mod forkstorm;
pub mod fragment;
pub mod ksm;
pub mod latency;
pub mod neighbour;
pub mod oom;
pub mod paging;
pub mod reclaim;
pub mod recording;
pub mod tier;
pub mod tracing;
pub mod vmtest;
pub mod writes;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::declaration::{self, Declared};

pub use addressing::Addressing;
pub use bandwidth::Bandwidth;
pub use clock::{Clock, Suspicion};
pub use command::Command;
pub use content::Content;
pub use curve::{Curve, WorkingSet};
pub use faultscale::{Beside, Faultscale, Work, Workers};
pub use fileread::{Access, Fileread, Seqread};
pub use forkstorm::{Child, Forkstorm};
pub use fragment::Fragment;
pub use ksm::Ksm;
pub use latency::Latency;
pub use neighbour::Neighbour;
pub use oom::Oom;
pub use paging::{Backing, Paging, Touch};
pub use reclaim::Reclaim;
pub use recording::Recording;
pub use tier::Tier;
pub use tracing::Tracing;
pub use vmtest::{Mapping, PagesOf, Vmtest};
pub use writes::{WriteShare, Writes};

/// An experiment with all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Subcommand, strum::IntoStaticStr)]
#[serde(tag = "experiment", rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Experiment {
    /// References to one anonymous mapping, each timed (Gorman 2002)
    #[command(
        before_help = "Examples:\n  pagelab run mapanon --pattern zipf:0.9 --memory 64M --repeat 5\n  pagelab run mapanon --on host,swap=file --on host,swap=zram --repeat 8\n"
    )]
    Mapanon(Paging),
    /// References to one mapping of a file, each timed
    #[command(
        before_help = "Examples:\n  pagelab run mapfile --pattern uniform --memory 128M\n  pagelab run mapfile --touch write --name dirty-pages\n  pagelab run mapfile --pattern zipf:0.9 --touch word --writes 5% --syncs 10 --memory 64M\n"
    )]
    Mapfile(Paging),
    /// Throughput against active virtual memory, and its knees (Irlam 1990)
    #[command(
        before_help = "Examples:\n  pagelab run vmtest --repeat 3\n  pagelab run vmtest --sizes 1M..256M:4 --pages-of thp --memory 128M\n"
    )]
    Vmtest(Vmtest),
    /// Fork, exec and exit as fast as they go (Morton 2002)
    #[command(
        before_help = "Examples:\n  pagelab run forkstorm --forks 5000 --repeat 5\n  pagelab run forkstorm --on host --on model:linux-6-folio\n"
    )]
    Forkstorm(Forkstorm),
    /// Faults, mappings, forks or a build against the number of workers (Dillon 2011)
    #[command(
        before_help = "Examples:\n  pagelab run faultscale --workers 1,2,4,8\n  pagelab run faultscale --as processes --workers 1,7\n  pagelab run faultscale --work refill --beside protect --workers 1,2\n"
    )]
    Faultscale(Faultscale),
    /// Random reads of files that fit in memory and do not (McDougall 2005)
    #[command(
        before_help = "Examples:\n  pagelab run fileread --memory 256M\n  pagelab run fileread --access pread --rate 2000 --reads 20000\n"
    )]
    Fileread(Fileread),
    /// Sequential reads against the transfer size (McDougall 2005)
    #[command(before_help = "Examples:\n  pagelab run seqread --size 256M --transfers 4K..16M:1\n")]
    Seqread(Seqread),
    /// What one access costs from the caches to a page fault (McVoy and Staelin 1996)
    #[command(
        before_help = "Examples:\n  pagelab run latency --repeat 3\n  pagelab run latency --sizes 16K..1G:2 --loads 1000000\n"
    )]
    Latency(Latency),
    /// What taking a mapping apart costs a page: munmap, mprotect, madvise
    #[command(
        before_help = "Examples:\n  pagelab run unmap --repeat 3\n  pagelab run unmap --pages 512 --sharers 3\n"
    )]
    Unmap(Addressing),
    /// What moving a mapping costs a page: mremap
    #[command(
        before_help = "Examples:\n  pagelab run mremap --repeat 3\n  pagelab run mremap --pages 65536\n"
    )]
    Mremap(Addressing),
    /// What filling a mapping costs a page: first writes, MAP_POPULATE, madvise
    #[command(
        before_help = "Examples:\n  pagelab run populate --repeat 3\n  pagelab run populate --sharers 3\n"
    )]
    Populate(Addressing),
    /// What a load pays for another one under the same limit, and what memory.low and memory.min spare it
    #[command(
        before_help = "Examples:\n  pagelab run neighbour --on kernel:vmlinuz\n  pagelab run neighbour --pages 4096 --neighbour 65536 --memory 64M --on kernel:vmlinuz,accel=icount\n"
    )]
    Neighbour(Neighbour),
    /// How many bytes a second memory gives: copy, scale, add and triad by working set and threads (McCalpin 1995)
    #[command(
        before_help = "Examples:\n  pagelab run bandwidth --repeat 3\n  pagelab run bandwidth --sizes 64M --threads 1,2,4\n"
    )]
    Bandwidth(Bandwidth),
    /// What merging equal pages takes and gives: frames, ksmd's time, the copy at a write
    #[command(
        before_help = "Examples:\n  pagelab run ksm --repeat 3\n  pagelab run ksm --equal 90% --contents 8 --on kernel:vmlinuz,accel=icount\n"
    )]
    Ksm(Ksm),
    /// Memory tiers and nodes: where a hot set's pages lie, what is promoted and demoted, and what it costs
    #[command(
        before_help = "Examples:\n  pagelab run tier --on kernel:vmlinuz,numa=256M+512M@slow\n  pagelab run tier --hot 2048 --positions 4 --on kernel:vmlinuz,numa=256M+512M@slow,accel=icount\n"
    )]
    Tier(Tier),
    /// Who is killed where a memory limit is reached and nothing is left to reclaim, and how long all wait for it
    #[command(
        before_help = "Examples:\n  pagelab run oom\n  pagelab run oom --held 256,2048 --memory 16M --on kernel:vmlinuz\n"
    )]
    Oom(Oom),
    /// What taking memory from a load in advance frees, how much of it was cold, and what it costs: memory.reclaim, DAMON
    #[command(
        before_help = "Examples:\n  pagelab run reclaim --on kernel:vmlinuz\n  pagelab run reclaim --by damon --on kernel:vmlinuz\n  pagelab run reclaim --hot 512 --cold 8192 --steps 16 --on kernel:vmlinuz,accel=icount\n"
    )]
    Reclaim(Reclaim),
    /// How many huge pages can still be had when free memory is in small pieces
    #[command(
        before_help = "Examples:\n  pagelab run fragment --on kernel:vmlinuz\n  pagelab run fragment --huge 16 --group 2 --on kernel:vmlinuz,accel=icount\n"
    )]
    Fragment(Fragment),
    /// Whether time is true on this machine (McDougall 2007)
    #[command(
        before_help = "Examples:\n  pagelab run clock --steps 30\n  pagelab run clock --reference otherhost:7071\n"
    )]
    Clock(Clock),
    /// Any program of yours, under a memory limit or none: command -- PROGRAM ARGUMENTS
    #[command(
        before_help = "Examples:\n  pagelab run command --memory 64M -- sort big.txt\n  pagelab run command --memory 64M --on host --on pager:arc -- sort big.txt\n  pagelab run command --sweep-memory 32M..1G -- sort big.txt\n"
    )]
    Command(Command),
    /// The kernel's counters over time (`pagelab record`); no target performs it.
    #[command(skip)]
    Record(Recording),
    /// A program's references (`pagelab trace`); no target performs it.
    #[command(skip)]
    Trace(Tracing),
    /// Misses of a stream at chosen memory sizes (`pagelab replay`).
    #[command(skip)]
    Replay(Curve),
    /// Misses of a stream against memory (`pagelab mrc`).
    #[command(skip)]
    Mrc(Curve),
    /// The working set over time (`pagelab wss`).
    #[command(skip)]
    Wss(WorkingSet),
}

/// The most that an experiment holds at once, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Anonymous memory: without memory enough, this goes to swap.
    pub anonymous: u64,
    /// Files of its own.
    pub file: u64,
}

impl Footprint {
    /// Both together.
    pub fn total(self) -> u64 {
        self.anonymous.saturating_add(self.file)
    }
}

impl Experiment {
    /// What it holds at once where a page has `page_size` bytes.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        match self {
            Self::Mapanon(paging) => Footprint { anonymous: paging.pages.saturating_mul(page_size), file: 0 },
            Self::Mapfile(paging) => Footprint { anonymous: 0, file: paging.pages.saturating_mul(page_size) },
            Self::Vmtest(vmtest) => vmtest.footprint(page_size),
            Self::Forkstorm(forkstorm) => forkstorm.footprint(page_size),
            Self::Faultscale(faultscale) => faultscale.footprint(page_size),
            Self::Fileread(fileread) => fileread.footprint(page_size),
            Self::Seqread(seqread) => seqread.footprint(page_size),
            Self::Latency(latency) => latency.footprint(page_size),
            Self::Unmap(addressing) | Self::Mremap(addressing) | Self::Populate(addressing) => {
                addressing.footprint(page_size)
            }
            Self::Neighbour(neighbour) => neighbour.footprint(page_size),
            Self::Bandwidth(bandwidth) => bandwidth.footprint(page_size),
            Self::Ksm(ksm) => ksm.footprint(page_size),
            Self::Tier(tier) => tier.footprint(page_size),
            Self::Oom(oom) => oom.footprint(page_size),
            Self::Reclaim(reclaim) => reclaim.footprint(page_size),
            Self::Fragment(fragment) => fragment.footprint(page_size),
            Self::Clock(_) => Footprint::default(),
            Self::Command(command) => command.footprint(page_size),
            Self::Record(_) | Self::Trace(_) | Self::Replay(_) | Self::Mrc(_) | Self::Wss(_) => {
                Footprint::default()
            }
        }
    }

    /// A parameter that means nothing beside the others, on any target: its name, why a target cannot have it, and what to
    /// do instead.
    pub fn contradiction(&self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Self::Mapanon(paging) => paging.contradiction(Backing::Anonymous),
            Self::Mapfile(paging) => paging.contradiction(Backing::File),
            Self::Faultscale(faultscale) => faultscale.contradiction(),
            Self::Ksm(ksm) => ksm.contradiction(),
            Self::Reclaim(reclaim) => reclaim.contradiction(),
            _ => None,
        }
    }

    /// Every experiment, as the command line has it: name, one line, parameters.
    pub fn catalogue() -> Vec<Declared> {
        declaration::subcommands::<Self>()
    }

    /// The same with what depends on the memory limit settled: the sizes that nobody asked for.
    pub fn settled(&self, limit: Option<u64>) -> Self {
        let mut settled = self.clone();
        match &mut settled {
            Self::Vmtest(vmtest) => {
                vmtest.sizes.get_or_insert_with(|| Vmtest::sizes_for(limit));
            }
            Self::Fileread(fileread) => {
                fileread.sizes.get_or_insert_with(|| Fileread::sizes_for(limit));
            }
            Self::Latency(latency) => {
                latency.sizes.get_or_insert_with(|| Latency::sizes_for(limit, None));
            }
            Self::Bandwidth(bandwidth) => {
                bandwidth.sizes.get_or_insert_with(|| Bandwidth::sizes_for(limit, None));
            }
            _ => {}
        }
        settled
    }

    /// The experiment's name on the command line.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Experiment {
    /// The command line that performs it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.name())?;
        match self {
            Self::Mapanon(parameters) | Self::Mapfile(parameters) => parameters.fmt(f),
            Self::Vmtest(parameters) => parameters.fmt(f),
            Self::Forkstorm(parameters) => parameters.fmt(f),
            Self::Faultscale(parameters) => parameters.fmt(f),
            Self::Fileread(parameters) => parameters.fmt(f),
            Self::Seqread(parameters) => parameters.fmt(f),
            Self::Latency(parameters) => parameters.fmt(f),
            Self::Unmap(parameters) | Self::Mremap(parameters) | Self::Populate(parameters) => {
                parameters.fmt(f)
            }
            Self::Clock(parameters) => parameters.fmt(f),
            Self::Command(parameters) => parameters.fmt(f),
            Self::Record(parameters) => parameters.fmt(f),
            Self::Trace(parameters) => parameters.fmt(f),
            Self::Replay(parameters) | Self::Mrc(parameters) => parameters.fmt(f),
            Self::Wss(parameters) => parameters.fmt(f),
            Self::Neighbour(parameters) => parameters.fmt(f),
            Self::Bandwidth(parameters) => parameters.fmt(f),
            Self::Ksm(parameters) => parameters.fmt(f),
            Self::Tier(parameters) => parameters.fmt(f),
            Self::Oom(parameters) => parameters.fmt(f),
            Self::Reclaim(parameters) => parameters.fmt(f),
            Self::Fragment(parameters) => parameters.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser, Debug)]
    struct Line {
        #[command(subcommand)]
        experiment: Experiment,
    }

    fn parsed(line: &str) -> Experiment {
        let words = std::iter::once("pagelab").chain(line.split_whitespace());
        <Line as clap::Parser>::try_parse_from(words).unwrap().experiment
    }

    #[test]
    fn the_printed_command_line_is_the_experiment() {
        for line in [
            "mapanon",
            "mapfile --pages 7 --pattern zipf:0.9 --touch write --warm",
            "vmtest",
            "vmtest --sizes 1M..4M:3 --pages-of thp --seconds 0.5",
            "forkstorm --child exec --script /tmp/x",
            "faultscale --as processes --workers 1,7",
            "faultscale --work refill --beside protect --beside-pages 64",
            "fileread --access nowait,pread --rate 2.5",
            "seqread",
            "latency --sizes 16K..1M:1 --loads 5",
            "clock --reference here:1",
            "command --most 1G --allow-failure -- sort -r",
        ] {
            let experiment = parsed(line);
            assert_eq!(parsed(&experiment.to_string()), experiment, "{line}: {experiment}");
            let json = serde_json::to_string(&experiment).unwrap();
            assert_eq!(serde_json::from_str::<Experiment>(&json).unwrap(), experiment, "{json}");
        }
    }

    #[test]
    fn a_parameter_that_an_older_pagelab_did_not_know_has_its_default() {
        for declared in Experiment::catalogue() {
            let bare = serde_json::json!({ "experiment": declared.name });
            let experiment: Experiment = serde_json::from_value(bare).unwrap();
            assert_eq!(experiment.name(), declared.name);
            for parameter in declared.parameters.iter().filter(|p| p.default.is_some()) {
                let shown = experiment.to_string();
                let wanted = format!("--{} {}", parameter.name, parameter.default.as_deref().unwrap());
                assert!(shown.contains(&wanted), "{shown}: {wanted}");
            }
        }
    }
}
