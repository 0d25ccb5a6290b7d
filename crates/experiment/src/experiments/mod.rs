//! The experiments, one folder each: the parameters, and what is declared of them
//! ([`Declaration`]). Targets know how to perform them.

pub mod addressing;
pub mod bandwidth;
pub mod clock;
pub mod command;
pub mod content;
pub mod curve;
mod declaration;
pub mod faultscale;
pub mod fileread;
pub mod forkstorm;
pub mod fragment;
pub mod ksm;
pub mod latency;
pub mod need;
pub mod neighbour;
pub mod oom;
pub mod paging;
pub mod reclaim;
pub mod recording;
pub mod restore;
pub mod share;
pub mod tier;
pub mod tracing;
pub mod vmtest;

use std::any::Any;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::declaration::subcommands;

pub use addressing::Addressing;
pub use bandwidth::Bandwidth;
pub use clock::{Clock, Suspicion};
pub use command::Command;
pub use content::Content;
pub use curve::{Curve, WorkingSet};
pub use declaration::{
    Bounds, Contradiction, Declaration, Declared, Dishonoured, Feature, Footprint, Load, Programs, Tasks,
    USUAL_LIMIT,
};
pub use faultscale::{Beside, Faultscale, Work, Workers};
pub use fileread::{Access, Fileread, Places, Preset, SEQREAD_MODES, Seqread};
pub use forkstorm::{Child, Forkstorm};
pub use fragment::Fragment;
pub use ksm::Ksm;
pub use latency::Latency;
pub use need::Need;
pub use neighbour::Neighbour;
pub use oom::Oom;
pub use paging::{Backing, Paging, Touch};
pub use reclaim::Reclaim;
pub use recording::Recording;
pub use restore::{Prefetch, Restore};
pub use share::{Draws, Share};
pub use tier::Tier;
pub use tracing::Tracing;
pub use vmtest::{Mapping, PagesOf, Vmtest};

/// Gathers the metrics that experiments declare in their folders.
macro_rules! declared_metrics {
    ($($folder:ident)*) => {
        /// The metrics of all experiments.
        pub(crate) mod declared_metrics {
            $(pub use super::$folder::metrics::*;)*
            /// The metrics, by the folder that declares them.
            pub(crate) const ALL: &[&[crate::metrics::MetricId]] = &[$(super::$folder::metrics::ALL),*];
        }
    };
}

declared_metrics! {
    paging vmtest clock command forkstorm faultscale fileread latency addressing neighbour bandwidth ksm
    tier oom reclaim fragment curve need restore
}

/// Makes the enum of the experiments and what follows from their list. A line is a variant, the
/// type of its parameters, and, where several share that type, whose declaration is meant.
macro_rules! experiments {
    ($($(#[$attribute:meta])* $variant:ident($parameters:ident $(as $one:path)?),)*) => {
        /// An experiment with all its parameters.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Subcommand, strum::IntoStaticStr)]
        #[serde(tag = "experiment", rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case")]
        pub enum Experiment {
            $($(#[$attribute])* $variant($parameters),)*
        }

        impl Experiment {
            /// What is declared of it.
            pub fn declaration(&self) -> Declared<'_> {
                match self {
                    $(Self::$variant(parameters) => experiments!(@declared parameters $(, $one)?),)*
                }
            }

            /// The same with the sizes that nobody asked for.
            pub fn settled(&self, bounds: &Bounds) -> Self {
                let mut settled = self.clone();
                match &mut settled {
                    $(Self::$variant(parameters) => experiments!(@settle parameters, bounds $(, $one)?),)*
                }
                settled
            }

            /// Its parameters, where they are of this type.
            pub fn parameters<T: Any>(&self) -> Option<&T> {
                let parameters: &dyn Any = match self {
                    $(Self::$variant(parameters) => parameters,)*
                };
                parameters.downcast_ref()
            }
        }

        impl fmt::Display for Experiment {
            /// The command line that performs it; `{:#}`: without the options that have their first defaults.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let parameters = match self {
                    $(Self::$variant(parameters) if f.alternate() => format!("{parameters:#}"),)*
                    $(Self::$variant(parameters) => parameters.to_string(),)*
                };
                f.write_str(format!("{} {parameters}", self.name()).trim_end())

            }
        }
    };
    (@settle $parameters:ident, $bounds:ident) => { $parameters.settle($bounds) };
    (@settle $parameters:ident, $bounds:ident, $one:path) => { _ = ($parameters, $bounds) };
    (@declared $parameters:ident) => { Declared::Parameters($parameters) };
    (@declared $parameters:ident, $one:path) => { Declared::One(Box::new($one($parameters))) };
}

experiments! {
    /// References to one mapping of memory, each timed (Gorman 2002)
    #[command(
        before_help = "Examples:\n  pagelab run mapanon --pattern zipf:0.9 --memory 64M --repeat 5\n  pagelab run mapanon --on host,swap=file --on host,swap=zram --repeat 8\n  pagelab run mapanon --backing shmem --memory 64M --swap zram\n",
        mut_args(|option| if option.get_id() == "syncs" { option.hide(true) } else { option })
    )]
    Mapanon(Paging as paging::anonymous),
    /// References to one mapping of a file, each timed
    #[command(
        before_help = "Examples:\n  pagelab run mapfile --pattern uniform --memory 128M\n  pagelab run mapfile --touch write --name dirty-pages\n  pagelab run mapfile --touch word --writes 5% --syncs 10 --memory 64M\n",
        mut_args(|option| match option.get_id().as_str() {
            "backing" | "evictions" => option.hide(true),
            _ => option,
        })
    )]
    Mapfile(Paging as paging::file),
    /// Throughput against active virtual memory, and its knees (Irlam 1990)
    #[command(
        before_help = "Examples:\n  pagelab run vmtest --repeat 3\n  pagelab run vmtest --sizes 1M..256M:4 --pages-of thp --memory 128M\n"
    )]
    Vmtest(Vmtest),
    /// Fork, exec and exit at full rate (Morton 2002)
    #[command(
        before_help = "Examples:\n  pagelab run forkstorm --forks 5000 --repeat 5\n  pagelab run forkstorm --on host --on model:linux-6-folio\n"
    )]
    Forkstorm(Forkstorm),
    /// Faults, mappings, forks or a build against the number of workers (Dillon 2011)
    #[command(
        before_help = "Examples:\n  pagelab run faultscale --workers 1,2,4,8\n  pagelab run faultscale --as processes --workers 1,7\n  pagelab run faultscale --work refill --beside protect --workers 1,2\n"
    )]
    Faultscale(Faultscale),
    /// Random reads of files smaller and larger than memory (McDougall 2005)
    #[command(
        before_help = "Examples:\n  pagelab run fileread --memory 256M\n  pagelab run fileread --access pread --rate 2000 --reads 20000\n  pagelab run fileread --preset webserver --memory 64M\n"
    )]
    Fileread(Fileread),
    /// Sequential reads against the transfer size (McDougall 2005)
    #[command(before_help = "Examples:\n  pagelab run seqread --size 256M --transfers 4K..16M:1\n  pagelab run seqread --access pread,mmap --transfers 4K,128K,1M\n")]
    Seqread(Seqread),
    /// Time to the first answer of a process restored lazily from a snapshot, by prefetch order
    #[command(
        before_help = "Examples:\n  pagelab run restore --repeat 3\n  pagelab run restore --prefetch none,recorded,lru --changed 30%\n  pagelab run restore --pattern trace:sort.trace --references 100000\n"
    )]
    Restore(Restore),
    /// One access at each level, from the caches to a page fault (McVoy and Staelin 1996)
    #[command(
        before_help = "Examples:\n  pagelab run latency --repeat 3\n  pagelab run latency --sizes 16K..1G:2 --loads 1000000\n"
    )]
    Latency(Latency),
    /// The cost per page of taking a mapping apart: munmap, mprotect, madvise
    #[command(
        before_help = "Examples:\n  pagelab run unmap --repeat 3\n  pagelab run unmap --pages 512 --sharers 3\n"
    )]
    Unmap(Addressing as addressing::unmap),
    /// The cost per page of moving a mapping: mremap
    #[command(
        before_help = "Examples:\n  pagelab run mremap --repeat 3\n  pagelab run mremap --pages 65536\n"
    )]
    Mremap(Addressing as addressing::mremap),
    /// The cost per page of filling a mapping: first writes, MAP_POPULATE, madvise
    #[command(
        before_help = "Examples:\n  pagelab run populate --repeat 3\n  pagelab run populate --sharers 3\n"
    )]
    Populate(Addressing as addressing::populate),
    /// The cost of another load under the same limit, with and without memory.low and memory.min
    #[command(
        before_help = "Examples:\n  pagelab run neighbour --on kernel:vmlinuz\n  pagelab run neighbour --neighbour 65536 --on kernel:vmlinuz,accel=icount\n"
    )]
    Neighbour(Neighbour),
    /// Memory bandwidth by working set and threads: copy, scale, add and triad (McCalpin 1995)
    #[command(
        before_help = "Examples:\n  pagelab run bandwidth --repeat 3\n  pagelab run bandwidth --sizes 64M --threads 1,2,4\n"
    )]
    Bandwidth(Bandwidth),
    /// Merging equal pages: frames saved, ksmd's CPU time, copies at writes
    #[command(
        before_help = "Examples:\n  pagelab run ksm --repeat 3\n  pagelab run ksm --equal 90% --contents 8 --on kernel:vmlinuz,accel=icount\n"
    )]
    Ksm(Ksm),
    /// Memory tiers and nodes: the place of a hot set, promotions, demotions and their cost
    #[command(
        before_help = "Examples:\n  pagelab run tier --on kernel:vmlinuz,numa=256M+512M@slow\n  pagelab run tier --hot 2048 --on kernel:vmlinuz,numa=256M+512M@slow\n"
    )]
    Tier(Tier),
    /// The OOM victim at a memory limit, and the time until the kill
    #[command(
        before_help = "Examples:\n  pagelab run oom\n  pagelab run oom --held 256,2048 --memory 16M --on kernel:vmlinuz\n"
    )]
    Oom(Oom),
    /// Proactive reclaim with memory.reclaim or DAMON: memory freed, share that was cold, cost
    #[command(
        before_help = "Examples:\n  pagelab run reclaim --on kernel:vmlinuz\n  pagelab run reclaim --by damon --on kernel:vmlinuz\n  pagelab run reclaim --hot 512 --cold 8192 --steps 16 --on kernel:vmlinuz\n"
    )]
    Reclaim(Reclaim),
    /// Huge pages that can be allocated in fragmented memory, and the cost of compaction
    #[command(
        before_help = "Examples:\n  pagelab run fragment --on kernel:vmlinuz\n  pagelab run fragment --huge 16 --group 2 --on kernel:vmlinuz,accel=icount\n"
    )]
    Fragment(Fragment),
    /// Whether the machine's clocks agree (McDougall 2007)
    #[command(
        before_help = "Examples:\n  pagelab run clock --steps 30\n  pagelab run clock --reference otherhost:7071\n"
    )]
    Clock(Clock),
    /// Any program, with or without a memory limit: command -- PROGRAM ARGUMENTS
    #[command(
        before_help = "Examples:\n  pagelab run command --memory 64M -- sort big.txt\n  pagelab run command --memory 64M --on host --on pager:arc -- sort big.txt\n"
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
    /// The memory that running tasks need (`pagelab need`).
    #[command(skip)]
    Need(Need),
}

impl Experiment {
    /// What it holds at once where a page has `page_size` bytes.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        self.declaration().footprint(page_size)
    }

    /// Every experiment, as the command line has it: name, one line, parameters.
    pub fn catalogue() -> Vec<crate::declaration::Declared> {
        subcommands::<Self>()
    }

    /// The experiment's name on the command line.
    pub fn name(&self) -> &'static str {
        self.into()
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
            "restore --pages 9 --pattern zipf:0.9 --prefetch lru,none --changed 0%",
            "latency --sizes 16K..1M:1 --loads 5",
            "clock --reference here:1",
            "command --max-memory 1G --allow-failure -- sort -r",
        ] {
            let experiment = parsed(line);
            assert_eq!(parsed(&experiment.to_string()), experiment, "{line}: {experiment}");
            let json = serde_json::to_string(&experiment).unwrap();
            assert_eq!(serde_json::from_str::<Experiment>(&json).unwrap(), experiment, "{json}");
        }
    }

    /// The names that series have in dashboards. A default that changes changes one of them: add the former default to
    /// `FIRST_DEFAULTS` instead of changing a name here.
    #[test]
    fn series_are_named_by_what_differs_from_their_first_defaults() {
        // The workers depend on the machine, and a command is not one without a program.
        let own = |declared: &&crate::declaration::Declared| {
            !["faultscale", "command"].contains(&declared.name.as_str())
        };
        for declared in Experiment::catalogue().iter().filter(own) {
            assert_eq!(format!("{:#}", parsed(&declared.name)), declared.name);
        }
        for line in [
            "mapanon --pattern zipf:0.9 --touch write --writes 5%",
            "vmtest --sizes 1M..4M:3",
            "forkstorm --child exec --script /tmp/x",
            "command --allow-failure -- sort -r",
        ] {
            assert_eq!(format!("{:#}", parsed(line)), line);
        }
        let recorded = "mapanon --pages 24576 --references 2000000 --pattern smooth-sin --touch page --writes 0% \
             --syncs 1 --sample 1 --seed 1 --content compressible:0.5 --backing anon";
        assert_eq!(format!("{:#}", parsed(recorded)), "mapanon");
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
