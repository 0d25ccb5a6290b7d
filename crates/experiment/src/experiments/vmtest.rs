//! `vmtest`: throughput against active virtual memory (Gordon Irlam, 1990).
//!
//! N processes, forked from one parent, each read one byte of every page of their segment in turn,
//! again and again, while the parent wakes many times a second. N times the segment is the active
//! virtual memory, and it is swept. A size below the segment's is one process with a smaller segment.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Footprint, Parameter};
use crate::observation::Unit;
use crate::setting::words;
use crate::size::Size;
use crate::sizes::Sizes;

/// What the processes' segments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
words!(Mapping: Shared = "shared", Private = "private", File = "file");

/// The pages that a segment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PagesOf {
    /// Base pages (4 KiB on x86-64).
    #[serde(rename = "4k")]
    Base,
    /// Transparent huge pages, where the kernel has one to give.
    Thp,
    /// Huge pages that the administrator set aside.
    Hugetlb,
}
words!(PagesOf: Base = "4k", Thp = "thp", Hugetlb = "hugetlb");

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vmtest {
    /// The segment of one process.
    pub process_size: Size,
    /// Times that every process reads its segment, at most. The published 5,000 take a machine of
    /// today milliseconds, in which one process is done before the next begins; so the time bounds
    /// the reading, during all of which all processes are active.
    pub passes: u64,
    /// Seconds for each size, at most.
    pub seconds: f64,
    /// The sizes of active virtual memory.
    pub sizes: Sizes,
    /// Wake-ups of the parent a second.
    pub switch_rate: u32,
    /// What the segments are.
    pub mapping: Mapping,
    /// The pages they are made of.
    pub pages_of: PagesOf,
    /// Processors that the processes may use.
    pub cpus: u32,
}

/// The columns of the table `vmtest` that every target gives, a row for each size. A target may have more
/// behind them.
pub const COLUMNS: [(&str, Unit); 10] = [
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
];

/// The parameters as the command line has them.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "process-size", default: "2M", help: "the segment of one process" },
    Parameter {
        name: "passes",
        default: "1000000",
        help: "times that a process reads its segment, at most (published: 5000)",
    },
    Parameter { name: "seconds", default: "1", help: "seconds for each size, at most" },
    Parameter {
        name: "sizes",
        default: "16K to twice the limit",
        help: "active virtual memory: 1M,4M,16M or 64K..128M or 64K..128M:4 (points a doubling)",
    },
    Parameter { name: "switch-rate", default: "50", help: "wake-ups of the parent a second" },
    Parameter {
        name: "mapping",
        default: "private",
        help: "the segments: shared (one for all), private (written by each), file (parts of one file)",
    },
    Parameter { name: "pages-of", default: "4k", help: "4k (base pages), thp, hugetlb" },
    Parameter { name: "cpus", default: "1", help: "processors that the processes may use" },
];

impl Default for Vmtest {
    fn default() -> Self {
        Self {
            process_size: Size::Bytes(2 << 20),
            passes: 1_000_000,
            seconds: 1.0,
            sizes: Self::sizes_for(Some(64 << 20)),
            switch_rate: 50,
            mapping: Mapping::Private,
            pages_of: PagesOf::Base,
            cpus: 1,
        }
    }
}

impl Vmtest {
    /// The default sweep under this memory limit: to twice the limit, without one to 256 MiB.
    pub fn sizes_for(limit: Option<u64>) -> Sizes {
        let to = limit.map_or(256 << 20, |limit| limit.saturating_mul(2)).max(16 << 10);
        Sizes::Range { from: Size::Bytes(16 << 10), to: Size::Bytes(to), each: 2 }
    }

    /// What the greatest size holds at once.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        let greatest = self.sizes.greatest(page_size);
        match self.mapping {
            Mapping::Shared => {
                Footprint { anonymous: self.process_size.bytes(page_size).min(greatest), file: 0 }
            }
            Mapping::Private => Footprint { anonymous: greatest, file: 0 },
            Mapping::File => Footprint { anonymous: 0, file: greatest },
        }
    }
}

impl fmt::Display for Vmtest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process_size, passes, seconds, sizes, switch_rate, mapping, pages_of, cpus } = self;
        write!(
            f,
            "--process-size {process_size} --passes {passes} --seconds {seconds} --sizes {sizes} --switch-rate {switch_rate} --mapping {mapping} --pages-of {pages_of} --cpus {cpus}"
        )
    }
}
