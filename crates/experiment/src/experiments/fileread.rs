//! `fileread` and `seqread`: what reading a file costs (Richard McDougall, 2005).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Footprint, Parameter};
use crate::setting::words;
use crate::size::Size;
use crate::sizes::Sizes;

/// The way to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// pread(2).
    Pread,
    /// A shared mapping, copied from.
    Mmap,
    /// preadv2(2) with RWF_NOWAIT, and without it where that finds nothing: tells hits exactly.
    Nowait,
}
words!(Access: Pread = "pread", Mmap = "mmap", Nowait = "nowait");

/// The parameters of `fileread`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fileread {
    /// The ways to read, one after the other.
    pub access: Vec<Access>,
    /// Random reads in each case.
    pub reads: u64,
    /// Bytes of a read.
    pub read: Size,
    /// The files' sizes: small and large in memory, larger than the limit.
    pub sizes: Sizes,
    /// Seconds for each case, at most.
    pub seconds: f64,
    /// Reads offered a second; none: as fast as they go.
    pub rate: Option<f64>,
    /// The seed of the offsets.
    pub seed: u64,
}

/// The parameters of `fileread` as the command line has them.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "access", default: "pread,mmap,nowait", help: "the ways to read: pread, mmap, nowait" },
    Parameter { name: "reads", default: "20000", help: "random reads in each case" },
    Parameter { name: "read", default: "8K", help: "bytes of a read" },
    Parameter {
        name: "sizes",
        default: "an eighth, a half and twice the limit",
        help: "the files: small in memory, large in memory, larger than memory",
    },
    Parameter { name: "seconds", default: "5", help: "seconds for each case, at most" },
    Parameter { name: "rate", default: "none", help: "reads offered a second; none: as fast as they go" },
    Parameter { name: "seed", default: "1", help: "the seed of the offsets" },
];

impl Default for Fileread {
    fn default() -> Self {
        Self {
            access: vec![Access::Pread, Access::Mmap, Access::Nowait],
            reads: 20_000,
            read: Size::Bytes(8192),
            sizes: Self::sizes_for(Some(64 << 20)),
            seconds: 5.0,
            rate: None,
            seed: 1,
        }
    }
}

impl Fileread {
    /// The default sizes under this limit; without one as under 64 MiB.
    pub fn sizes_for(limit: Option<u64>) -> Sizes {
        let limit = limit.unwrap_or(64 << 20).max(1 << 20);
        Sizes::List([limit / 8, limit / 2, limit.saturating_mul(2)].map(Size::Bytes).to_vec())
    }

    /// The greatest file.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        Footprint { anonymous: 0, file: self.sizes.greatest(page_size) }
    }
}

impl fmt::Display for Fileread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access, reads, read, sizes, seconds, rate, seed } = self;
        let access: Vec<String> = access.iter().map(Access::to_string).collect();
        let access = access.join(",");
        write!(
            f,
            "--access {access} --reads {reads} --read {read} --sizes {sizes} --seconds {seconds} --seed {seed}"
        )?;
        rate.iter().try_for_each(|rate| write!(f, " --rate {rate}"))
    }
}

/// The parameters of `seqread`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seqread {
    /// The file's size.
    pub size: Size,
    /// Bytes of a read.
    pub transfers: Sizes,
    /// Seconds for each transfer size, at most.
    pub seconds: f64,
}

/// The parameters of `seqread` as the command line has them.
pub const SEQUENTIAL: &[Parameter] = &[
    Parameter { name: "size", default: "32M", help: "the file's size" },
    Parameter { name: "transfers", default: "4K..16M:1", help: "bytes of a read" },
    Parameter { name: "seconds", default: "2", help: "seconds for each transfer size, at most" },
];

impl Default for Seqread {
    fn default() -> Self {
        Self {
            size: Size::Bytes(32 << 20),
            transfers: Sizes::Range { from: Size::Bytes(4096), to: Size::Bytes(16 << 20), each: 1 },
            seconds: 2.0,
        }
    }
}

impl Seqread {
    /// The file.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        Footprint { anonymous: 0, file: self.size.bytes(page_size) }
    }
}

impl fmt::Display for Seqread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, transfers, seconds } = self;
        write!(f, "--size {size} --transfers {transfers} --seconds {seconds}")
    }
}
