//! `vmtest`: throughput against active virtual memory (Gordon Irlam, 1990).
//!
//! N processes, forked from one parent, each read one byte of every page of their segment in turn,
//! again and again, while the parent wakes many times a second. N times the segment is the active
//! virtual memory, and it is swept. A size below the segment's is one process with a smaller segment.

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Bounds, Contradiction, Declaration, Feature, Footprint, Tasks};
use crate::declaration::{declared, positive, some, words};
use crate::metrics::{FAULTS_MAJOR, MetricId, SPEED_FIRST, SPEED_LAST, TIME_CPU};
use crate::size::Size;
use crate::sizes::Sizes;
use crate::tables::{TableId, tables};

/// What the processes' segments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// One anonymous segment that all processes share: the published program. Virtual memory grows,
    /// memory does not.
    Shared,
    /// A segment of each process's own, every page written before: memory grows too.
    Private,
    /// Each process has its own part of one file.
    File,
}
words!(Mapping);

/// The pages that a segment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PagesOf {
    /// Base pages (4 KiB on x86-64).
    #[serde(rename = "4k")]
    #[value(name = "4k")]
    Base,
    /// Transparent huge pages, where the kernel has one to give.
    Thp,
    /// Huge pages that the administrator set aside.
    Hugetlb,
}
words!(PagesOf);

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Vmtest {
    /// The segment of one process
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = some)]
    pub process_size: Size,
    /// Maximum passes over a segment (published: 5000)
    ///
    /// The published value, 5,000, takes milliseconds on a current machine, so one process would end
    /// before the next begins. With --seconds all processes are active during the reading.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub passes: u64,
    /// Maximum seconds per size
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = positive)]
    pub seconds: f64,
    /// Active virtual memory: 1M,4M,16M or 64K..128M or 64K..128M:4 (points per doubling) [default:
    /// 16K to twice the limit]
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,
    /// Wake-ups of the parent per second
    #[arg(long, value_name = "HZ", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub switch_rate: u32,
    /// The segments: one for all processes, a private one each, or parts of one file
    #[arg(long, value_enum, default_value = "private")]
    pub mapping: Mapping,
    /// The kind of pages
    #[arg(long, value_enum, default_value = "4k")]
    pub pages_of: PagesOf,
    /// CPUs that the processes share
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: u32,
}
declared!(Vmtest);

tables! {
    vmtest = "vmtest", "size of active virtual memory" {
        SIZE = "size", Bytes, "active virtual memory";
        PROCESSES = "processes", Count, "number of processes";
        RELATIVE_SPEED = "relative.speed", Ratio, "reads per second, divided by those of the first size";
        TIME_ELAPSED;
        TIME_USER;
        TIME_SYSTEM;
        FAULTS_MINOR;
        FAULTS_MAJOR;
        READS = "reads", Count, "reads of all processes";
        ACCESS_MEAN;
        ACCESS_CPU = "access.cpu", Nanoseconds, "CPU time per read";
        SWAP_IN;
        TRANSLATION_MEAN = "translation.mean", Nanoseconds, "modelled time of a translation";
        WALKS = "walks", Share, "modelled share of the reads with a page-table walk";
    }
}

impl Vmtest {
    /// The default sweep under this memory limit: to twice the limit, without one to 256 MiB.
    pub fn sizes_for(limit: Option<u64>) -> Sizes {
        let to = limit.map_or(256 << 20, |limit| limit.saturating_mul(2)).max(16 << 10);
        Sizes::Range { from: Size::Bytes(16 << 10), to: Size::Bytes(to), each: 2 }
    }

    /// The sizes that are swept: those asked for, else those of a machine without a limit.
    pub fn sweep(&self) -> Sizes {
        self.sizes.clone().unwrap_or_else(|| Self::sizes_for(None))
    }
}

impl Declaration for Vmtest {
    fn footprint(&self, page_size: u64) -> Footprint {
        let greatest = self.sweep().greatest(page_size);
        match self.mapping {
            Mapping::Shared => Footprint::anonymous(self.process_size.bytes(page_size).min(greatest)),
            Mapping::Private => Footprint::anonymous(greatest),
            Mapping::File => Footprint::file(greatest),
        }
    }

    fn primary(&self) -> Option<MetricId> {
        Some(SPEED_LAST)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[SPEED_FIRST, TIME_CPU, FAULTS_MAJOR]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn tasks(&self, page_size: u64) -> Tasks {
        Tasks::processes(self.processes(self.sweep().greatest(page_size), page_size).0)
    }

    fn contradiction(&self) -> Option<Contradiction> {
        (self.mapping == Mapping::Shared && self.pages_of == PagesOf::Hugetlb).then_some((
            "pages-of",
            "makes no shared segment of hugetlb pages",
            "use --mapping private",
        ))
    }

    fn settle(&mut self, bounds: &Bounds) {
        self.sizes.get_or_insert_with(|| Self::sizes_for(bounds.limit));
    }

    fn requires(&self) -> Vec<Feature> {
        if self.cpus > 1 { vec![Feature::Parallel] } else { Vec::new() }
    }

    fn seconds(&self, _: Option<u64>, page_size: u64) -> Option<f64> {
        Some(self.sweep().bytes(page_size).len() as f64 * self.seconds)
    }
}
