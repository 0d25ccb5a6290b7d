//! `faultscale`: how memory management scales with workers (Matthew Dillon, 2011).

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Contradiction, Declaration, Feature, Footprint, Programs, Tasks};
use crate::declaration::{declared, positive, words};
use crate::metrics::{MetricId, THROUGHPUT_BEST, THROUGHPUT_FIRST, THROUGHPUT_LAST, TIME_CPU};
use crate::tables::{TableId, tables};

/// What the workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// First writes to private anonymous pages.
    Anon,
    /// The same, of a mapping that stays and whose pages are given back.
    Refill,
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

/// What another thread of the same address space does meanwhile, to mappings of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// There is none.
    None,
    /// It maps a page and unmaps it.
    Map,
    /// It takes and gives the right to write a populated mapping.
    Protect,
}
words!(Beside);

tables! {
    faultscale = "faultscale", "number of workers" {
        WORKERS = "workers", Count, "the workers";
        THROUGHPUT = "throughput", PerSecond, "operations of all workers per second";
        TIME_ELAPSED;
        TIME_USER;
        TIME_SYSTEM;
        FAULTS_MINOR;
        LOCK_WAIT = "lock.wait", Share, "share of all threads' time waiting for kernel locks";
        OPERATION_P50;
        OPERATION_P99;
    }
    locks = "locks", "kernel lock and number of workers" {
        LOCK = "lock", Text, "the lock";
        WORKERS = "workers", Count, "the workers";
        WAITS = "waits", Count, "number of waits";
        TIME = "time", Nanoseconds, "time waited";
        SHARE = "share", Share, "share of all threads' time";
    }
    beside = "beside", "number of workers, alone and with the other thread", compare(THROUGHPUT, WAITS) {
        WORKERS = "workers", Text, "the workers, alone or with the other thread";
        THROUGHPUT = "throughput", PerSecond, "operations of all workers per second";
        P50 = "p50", Nanoseconds, "time of an operation, median";
        P99 = "p99", Nanoseconds, "time of an operation, 99th percentile";
        WAITS = "waits", Count, "sleeps of a worker per million operations";
        CALLS = "calls", PerSecond, "calls of the other thread per second";
        LOCK_WAIT = "lock.wait", Share, "share of all threads' time waiting for kernel locks";
    }
}

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Faultscale {
    /// The workers' task
    #[arg(long, value_enum, default_value = "anon")]
    pub work: Work,
    /// The kind of workers
    #[arg(long = "as", value_enum, default_value = "threads")]
    pub as_: Workers,
    /// Numbers of workers, in this order
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "1,2,3,4,6,8", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub workers: Vec<u32>,
    /// Seconds for each number of workers (not for a build)
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = positive)]
    pub seconds: f64,
    /// Pages of a worker's mapping
    #[arg(long, value_name = "PAGES", default_value = "1024", value_parser = clap::value_parser!(u64).range(1..))]
    pub pages: u64,
    /// Also measure with another thread of the address space that changes mappings of its own
    /// (threads; not fork and build)
    #[arg(long, value_enum, default_value = "none")]
    pub beside: Beside,
    /// Pages of the mapping that --beside protect changes
    #[arg(long, value_name = "PAGES", default_value = "16384", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub beside_pages: u64,
    /// build: concurrent copies
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub copies: u32,
    /// build: source files to write and compile
    #[arg(long, value_name = "N", default_value = "24", value_parser = clap::value_parser!(u32).range(1..))]
    pub sources: u32,
    /// build: run a command instead; {jobs} is the number of workers: 'make -j{jobs}'
    #[arg(long, value_name = "COMMAND")]
    pub cmd: Option<String>,
}
declared!(Faultscale);

impl Faultscale {
    fn most(&self) -> u64 {
        u64::from(self.workers.iter().copied().max().unwrap_or(1))
    }
}

impl Declaration for Faultscale {
    /// The mappings of all workers; for a build, what its compilers take.
    fn footprint(&self, page_size: u64) -> Footprint {
        let most = self.most();
        let beside = if self.beside == Beside::Protect { self.beside_pages } else { 0 };
        let mappings = most.saturating_mul(self.pages).saturating_add(beside).saturating_mul(page_size);
        match self.work {
            Work::Build => {
                let compilers = most.saturating_mul(u64::from(self.copies));
                Footprint {
                    anonymous: compilers.saturating_mul(48 << 20),
                    file: 1 << 20,
                    ..Footprint::default()
                }
            }
            Work::File => Footprint {
                anonymous: beside.saturating_mul(page_size),
                file: self.pages.saturating_mul(page_size),
                ..Footprint::default()
            },
            _ => Footprint::anonymous(mappings),
        }
    }

    fn primary(&self) -> Option<MetricId> {
        Some(THROUGHPUT_BEST)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[THROUGHPUT_FIRST, THROUGHPUT_LAST, TIME_CPU]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn tasks(&self, _: u64) -> Tasks {
        /// A compiler's driver, the compiler and the assembler.
        const COMPILER: u64 = 3;
        let beside = u64::from(self.beside != Beside::None);
        match (self.work, self.as_) {
            (Work::Build, _) => {
                let commands = if self.cmd.is_some() { 1 } else { 0 };
                let compilers = self.most().saturating_mul(COMPILER).saturating_add(commands);
                Tasks::processes(compilers.saturating_mul(u64::from(self.copies)))
            }
            (Work::Fork, Workers::Threads) => {
                let most = self.most();
                Tasks { processes: most.saturating_add(2), threads: most.saturating_mul(2).saturating_add(2) }
            }
            (Work::Fork, Workers::Processes) => Tasks::processes(self.most().saturating_mul(2)),
            (_, Workers::Processes) => Tasks::processes(self.most()),
            // The worker forks the process that has the threads.
            (_, Workers::Threads) => Tasks { processes: 2, threads: self.most().saturating_add(2 + beside) },
        }
    }

    fn contradiction(&self) -> Option<Contradiction> {
        if self.beside == Beside::None {
            return None;
        }
        if self.as_ == Workers::Processes {
            return Some((
                "beside",
                "is a thread of the workers' address space, and each process has its own",
                "use --as threads",
            ));
        }
        matches!(self.work, Work::Fork | Work::Build).then_some((
            "beside",
            "needs worker threads, and this work starts processes",
            "use --work anon, refill, file or map",
        ))
    }

    fn requires(&self) -> Vec<Feature> {
        let programs = match (&self.cmd, self.work) {
            (Some(cmd), Work::Build) => {
                let words = ["/bin/sh", "-c", cmd].map(str::to_owned).to_vec();
                Some(Programs { parameter: "cmd", words, script: None, many: false })
            }
            (None, Work::Build) => {
                Some(Programs { parameter: "work", words: vec!["cc".to_owned()], script: None, many: true })
            }
            _ => None,
        };
        [Feature::Parallel].into_iter().chain(programs.map(Feature::Programs)).collect()
    }

    fn forks_itself(&self) -> bool {
        self.work == Work::Fork
    }

    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        (self.work != Work::Build).then_some(self.workers.len() as f64 * self.seconds)
    }
}
