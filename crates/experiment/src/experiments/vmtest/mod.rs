//! `vmtest`: throughput against active virtual memory (Gordon Irlam, 1990).
//!
//! N processes, forked from one parent, each read one byte of every page of their segment in turn,
//! again and again, while the parent wakes many times a second. N times the segment is the active
//! virtual memory, and it is swept. A size below the segment's is one process with a smaller segment.

use serde::{Deserialize, Serialize};

use super::Footprint;
use crate::declaration::{declared, positive, some, words};
use crate::observation::Unit;
use crate::size::Size;
use crate::sizes::Sizes;

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
    /// Times that a process reads its segment, at most (published: 5000)
    ///
    /// The published 5,000 take a machine of today milliseconds, in which one process is done before the next
    /// begins; so --seconds bounds the reading, during all of which all processes are active.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub passes: u64,
    /// Seconds for each size, at most
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = positive)]
    pub seconds: f64,
    /// Active virtual memory: 1M,4M,16M or 64K..128M or 64K..128M:4 (points a doubling) [default: 16K to twice the limit]
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,
    /// Wake-ups of the parent a second
    #[arg(long, value_name = "HZ", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub switch_rate: u32,
    /// The segments: one for all processes, one each that is written, or parts of one file
    #[arg(long, value_enum, default_value = "private")]
    pub mapping: Mapping,
    /// The pages they are made of
    #[arg(long, value_enum, default_value = "4k")]
    pub pages_of: PagesOf,
    /// Processors that the processes may use
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: u32,
}
declared!(Vmtest);

/// The columns of the table `vmtest` that every target gives, a row for each size. `access.mean` is the wall time of a
/// read, times the processors at work; `access.cpu` its processor time, which other load does not lengthen. A target may
/// have more behind them.
pub const COLUMNS: [(&str, Unit); 11] = [
    ("size", Unit::Bytes),
    ("processes", Unit::Count),
    ("relative.speed", Unit::Ratio),
    ("time.elapsed", Unit::Nanoseconds),
    ("time.user", Unit::Nanoseconds),
    ("time.system", Unit::Nanoseconds),
    ("faults.minor", Unit::Count),
    ("faults.major", Unit::Count),
    ("reads", Unit::Count),
    ("access.mean", Unit::Nanoseconds),
    ("access.cpu", Unit::Nanoseconds),
];

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

    /// What the greatest size holds at once.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        let greatest = self.sweep().greatest(page_size);
        match self.mapping {
            Mapping::Shared => {
                Footprint { anonymous: self.process_size.bytes(page_size).min(greatest), file: 0 }
            }
            Mapping::Private => Footprint { anonymous: greatest, file: 0 },
            Mapping::File => Footprint { anonymous: 0, file: greatest },
        }
    }
}
