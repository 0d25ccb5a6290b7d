//! `fileread` and `seqread`: what reading a file costs (Richard McDougall, 2005).

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Bounds, Contradiction, Declaration, Footprint};
use super::share::{Draws, Share};
use crate::declaration::{declared, positive, some, words};
use crate::metrics::{
    BANDWIDTH_BUFFERED, BANDWIDTH_DIRECT, IO_READ, MetricId, READ_CPU_BEYOND, READ_CPU_LARGE, READ_CPU_SMALL,
    TIME_CPU,
};
use crate::size::Size;
use crate::sizes::Sizes;
use crate::tables::{TableId, tables};

tables! {
    fileread = "fileread", "case" {
        CASE = "case", Text, "small, large or beyond, and the way to read";
        SIZE = "size", Bytes, "size of the file";
        READS = "reads", Count, "number of reads, writes included";
        WRITES = "writes", Count, "number of reads that wrote instead";
        CPU_EACH = "cpu.each", Nanoseconds, "CPU time per read";
        ACCESS_MEAN;
        ACCESS_P50;
        ACCESS_P99;
        TIME_USER;
        TIME_SYSTEM;
        CALLS = "calls", Count, "system calls";
        HITS = "hits", Share, "share of the reads found in the page cache";
        FAULTS_MINOR;
        FAULTS_MAJOR;
        IO_READ;
        CACHED_BEFORE = "cached.before", Bytes, "part of the file in the page cache before the reads";
        CACHED_AFTER = "cached.after", Bytes, "part of the file in the page cache after the reads";
        RECENTLY_EVICTED = "recently-evicted", Bytes, "part of the file that was evicted a short time ago";
        REFAULTS = "refaults", Pages, "refaults";
    }
    seqread = "seqread", "mode and transfer size" {
        MODE = "mode", Text, "buffered or direct";
        TRANSFER = "transfer", Bytes, "bytes per read";
        BANDWIDTH = "bandwidth", BytesPerSecond, "bytes read per second";
        BYTES = "bytes", Bytes, "bytes read";
        TIME_ELAPSED;
        TIME_USER;
        TIME_SYSTEM;
        DEVICE_READS = "device.reads", Count, "reads of the device";
        DEVICE_TRANSFER = "device.transfer", Bytes, "bytes per read of the device";
        DEVICE_SERVICE = "device.service", Nanoseconds, "busy time of the device per read";
        DEVICE_WAIT = "device.wait", Nanoseconds, "time per read of the device, in its queue and served";
        DEVICE_BUSY = "device.busy", Share, "share of the time in which the device was busy";
    }
}

/// The way to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// pread(2).
    Pread,
    /// A shared mapping, copied from.
    Mmap,
    /// preadv2(2) with RWF_NOWAIT, and without it where that finds nothing: tells hits exactly.
    Nowait,
    /// pread(2) with O_DIRECT, past the page cache.
    Direct,
}
words!(Access);

/// The parameters of `fileread`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Fileread {
    /// The ways to read, in this order
    #[arg(long, value_enum, value_delimiter = ',', default_value = "pread,mmap,nowait")]
    pub access: Vec<Access>,
    /// Random reads in each case
    #[arg(long, value_name = "N", default_value = "20000", value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: u64,
    /// Bytes per read
    #[arg(long, value_name = "SIZE", default_value = "8K", value_parser = some)]
    pub read: Size,
    /// Share of the reads that write instead
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub writes: Share,
    /// Share of the reads that follow the previous one in the file; the others are random
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub sequential: Share,
    /// The files: small in memory, large in memory, beyond it [default: an eighth, a half and twice
    /// the limit]
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,
    /// Seconds for each case, at most
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = positive)]
    pub seconds: f64,
    /// Reads offered per second [default: as fast as they go]
    #[arg(long, value_name = "HZ", value_parser = positive)]
    pub rate: Option<f64>,
    /// The seed of the offsets
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}
declared!(Fileread);

/// Separates the draws for `sequential` from those for `writes`.
const IN_ORDER: u64 = 0x6f72_6465_7200;

impl Fileread {
    /// The draws for `writes` and for `sequential`.
    pub fn drawn(&self) -> (Draws, Draws) {
        (self.writes.drawn(self.seed), self.sequential.drawn(self.seed ^ IN_ORDER))
    }

    /// Whether all accesses are random reads, as in the published measurements.
    pub fn is_plain(&self) -> bool {
        self.writes.is_none() && self.sequential.is_none()
    }

    /// The default sizes under this limit; without one as under 64 MiB.
    pub fn sizes_for(limit: Option<u64>) -> Sizes {
        let limit = limit.unwrap_or(64 << 20).max(1 << 20);
        Sizes::List([limit / 8, limit / 2, limit.saturating_mul(2)].map(Size::Bytes).to_vec())
    }

    /// The files that are read: those asked for, else those under the default limit.
    pub fn files(&self) -> Sizes {
        self.sizes.clone().unwrap_or_else(|| Self::sizes_for(None))
    }
}

/// The parameters of `seqread`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Seqread {
    /// The file's size
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = some)]
    pub size: Size,
    /// Bytes per read
    #[arg(long, value_name = "SIZES", default_value = "4K..16M:1")]
    pub transfers: Sizes,
    /// Seconds for each transfer size, at most
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = positive)]
    pub seconds: f64,
}
declared!(Seqread);

impl Declaration for Fileread {
    fn footprint(&self, page_size: u64) -> Footprint {
        Footprint::file(self.files().greatest(page_size))
    }

    fn primary(&self) -> Option<MetricId> {
        Some(READ_CPU_LARGE)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[READ_CPU_SMALL, READ_CPU_BEYOND, IO_READ]
    }

    fn tables(&self) -> &'static [TableId] {
        &[tables::fileread::TABLE]
    }

    fn contradiction(&self) -> Option<Contradiction> {
        let unaligned = self.access.contains(&Access::Direct) && !self.read.bytes(4096).is_multiple_of(512);
        unaligned.then_some(("read", "reads with O_DIRECT in multiples of 512 bytes", "use --read 8K"))
    }

    fn settle(&mut self, bounds: &Bounds) {
        self.sizes.get_or_insert_with(|| Self::sizes_for(bounds.limit));
    }

    fn seconds(&self, _: Option<u64>, page_size: u64) -> Option<f64> {
        let cases = self.files().bytes(page_size).len() * self.access.len();
        Some(cases as f64 * self.seconds)
    }
}

impl Declaration for Seqread {
    fn footprint(&self, page_size: u64) -> Footprint {
        Footprint::file(self.size.bytes(page_size))
    }

    fn primary(&self) -> Option<MetricId> {
        Some(BANDWIDTH_BUFFERED)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[BANDWIDTH_DIRECT, TIME_CPU]
    }

    fn tables(&self) -> &'static [TableId] {
        &[tables::seqread::TABLE]
    }

    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        Some(2.0 * self.transfers.bytes(1).len() as f64 * self.seconds)
    }
}
