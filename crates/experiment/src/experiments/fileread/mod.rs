//! `fileread` and `seqread`: what reading a file costs (Richard McDougall, 2005).

pub mod metrics;
mod preset;

use serde::{Deserialize, Serialize};

use super::declaration::{Bounds, Contradiction, Declaration, Footprint};
use super::share::{Draws, Share};
use crate::declaration::{declared, positive, some, words};
use crate::metrics::{
    BANDWIDTH_BUFFERED, BANDWIDTH_DIRECT, BANDWIDTH_IO_URING, BANDWIDTH_IO_URING_DIRECT, BANDWIDTH_MAPPED,
    IO_READ, MetricId, READ_CPU_BEYOND, READ_CPU_LARGE, READ_CPU_SMALL, TIME_CPU,
};
use crate::size::Size;
use crate::sizes::Sizes;
use crate::tables::{TableId, tables};

pub use preset::Preset;

tables! {
    fileread = "fileread", "case" {
        CASE = "case", Text, "small, large or beyond, and the way to read";
        SIZE = "size", Bytes, "size of the file, or of all files";
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
        MODE = "mode", Text, "buffered, direct, mapped, io-uring or io-uring-direct";
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
    /// io_uring(7), several reads in flight.
    IoUring,
    /// The same with O_DIRECT.
    IoUringDirect,
}
words!(Access);

/// What `seqread` calls each way to read, in the order of its sentences.
pub const SEQREAD_MODES: [&str; 5] = ["buffered", "direct", "mapped", "io-uring", "io-uring-direct"];

impl Access {
    /// What `seqread` calls it, and the metric of its bandwidth.
    pub fn seqread_mode(self) -> (&'static str, MetricId) {
        let [buffered, direct, mapped, io_uring, io_uring_direct] = SEQREAD_MODES;
        match self {
            Self::Pread | Self::Nowait => (buffered, BANDWIDTH_BUFFERED),
            Self::Direct => (direct, BANDWIDTH_DIRECT),
            Self::Mmap => (mapped, BANDWIDTH_MAPPED),
            Self::IoUring => (io_uring, BANDWIDTH_IO_URING),
            Self::IoUringDirect => (io_uring_direct, BANDWIDTH_IO_URING_DIRECT),
        }
    }

    /// Whether it goes past the page cache, with O_DIRECT.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::IoUringDirect)
    }

    /// Whether its reads are submitted to io_uring(7).
    pub fn is_queued(self) -> bool {
        matches!(self, Self::IoUring | Self::IoUringDirect)
    }

    /// Reads in flight with these ways to read, of which `depth` were requested: 1 without io_uring.
    fn in_flight(ways: &[Self], depth: Option<u32>) -> u32 {
        match ways.iter().any(|way| way.is_queued()) {
            true => depth.unwrap_or(16),
            false => 1,
        }
    }

    /// Why a queue depth means nothing with these ways to read.
    fn contradicts_depth(ways: &[Self], depth: Option<u32>) -> Option<Contradiction> {
        let unused = depth.is_some() && !ways.iter().any(|way| way.is_queued());
        unused.then_some(("depth", "is the number of reads in flight with io_uring", "use --access io-uring"))
    }
}

/// Maximum number of reads in flight.
const MAX_DEPTH: i64 = 1024;

/// Maximum number of files, all of which are open at once.
const MAX_FILES: i64 = 1000;

/// The places of the reads of a case, numbered through all of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Number of files.
    pub files: u64,
    /// Places of each file, at least one.
    pub per_file: u64,
    /// Bytes per place.
    pub read: u64,
}

impl Places {
    /// Number of places of all files.
    pub fn total(self) -> u64 {
        self.files * self.per_file
    }

    /// Bytes that the reads reach in each file.
    pub fn file_bytes(self) -> u64 {
        self.per_file * self.read
    }

    /// The file of a place, and its offset there.
    pub fn of(self, place: u64) -> (usize, u64) {
        ((place / self.per_file) as usize, place % self.per_file * self.read)
    }
}

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
    /// A mix of reads and writes after a personality of FileBench: values for --read, --writes and
    /// --files
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
    /// Bytes per read [default: 8K, or the preset's]
    #[arg(long, value_name = "SIZE", value_parser = some)]
    pub read: Option<Size>,
    /// Share of the reads that write instead [default: 0%, or the preset's]
    #[arg(long, value_name = "SHARE")]
    pub writes: Option<Share>,
    /// Share of the reads that follow the previous one in the file; the others are random
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub sequential: Share,
    /// Files that share each size, references included [default: 1, or the preset's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_FILES))]
    pub files: Option<u32>,
    /// Reads in flight with io-uring and io-uring-direct [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_DEPTH))]
    pub depth: Option<u32>,
    /// The sizes: small in memory, large in memory, beyond it [default: an eighth, a half and twice
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
    /// Bytes per read: as requested, else the preset's, else 8 KiB.
    pub fn read_size(&self) -> Size {
        self.read.or(self.preset.map(Preset::read)).unwrap_or(Size::Bytes(8 << 10))
    }

    /// The share of writes: as requested, else the preset's, else none.
    pub fn write_share(&self) -> Share {
        self.writes.or(self.preset.map(Preset::writes)).unwrap_or_default()
    }

    /// The number of files: as requested, else the preset's, else one.
    pub fn file_count(&self) -> u32 {
        self.files.or(self.preset.map(Preset::files)).unwrap_or(1)
    }

    /// Reads in flight: as requested, else 16; 1 without io_uring.
    pub fn in_flight(&self) -> u32 {
        Access::in_flight(&self.access, self.depth)
    }

    /// The places of a case of `size` bytes. Every target reads the same sequence of places.
    pub fn places(&self, size: u64, page_size: u64) -> Places {
        let (files, read) = (u64::from(self.file_count()), self.read_size().bytes(page_size).max(1));
        Places { files, per_file: (size / files / read).max(1), read }
    }

    /// The draws for `writes` and for `sequential`.
    pub fn drawn(&self) -> (Draws, Draws) {
        (self.write_share().drawn(self.seed), self.sequential.drawn(self.seed ^ IN_ORDER))
    }

    /// Whether all accesses are random reads of one file, as in the published measurements.
    pub fn is_plain(&self) -> bool {
        self.write_share().is_none() && self.sequential.is_none() && self.file_count() == 1
    }

    /// The default sizes under this limit; without one as under 64 MiB.
    pub fn sizes_for(limit: Option<u64>) -> Sizes {
        let limit = limit.unwrap_or(64 << 20).max(1 << 20);
        Sizes::List([limit / 8, limit / 2, limit.saturating_mul(2)].map(Size::Bytes).to_vec())
    }

    /// The sizes of the cases: as requested, else those under the default limit.
    pub fn case_sizes(&self) -> Sizes {
        self.sizes.clone().unwrap_or_else(|| Self::sizes_for(None))
    }
}

/// The parameters of `seqread`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Seqread {
    /// The ways to read, in this order; nowait does not apply
    #[arg(long, value_enum, value_delimiter = ',', default_value = "pread,direct")]
    pub access: Vec<Access>,
    /// The file's size
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = some)]
    pub size: Size,
    /// Bytes per read
    #[arg(long, value_name = "SIZES", default_value = "4K..16M:1")]
    pub transfers: Sizes,
    /// Reads in flight with io-uring and io-uring-direct, together 16M at most [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_DEPTH))]
    pub depth: Option<u32>,
    /// Seconds for each transfer size, at most
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = positive)]
    pub seconds: f64,
}
declared!(Seqread);

/// Most bytes that `seqread` has in flight, where that is more than one read.
const MAX_IN_FLIGHT: u64 = 16 << 20;

impl Seqread {
    /// Reads of this many bytes in flight: as requested, else 16, but at most 16 MiB of them; 1
    /// without io_uring.
    pub fn in_flight(&self, transfer: u64) -> u32 {
        let fit = (MAX_IN_FLIGHT / transfer.max(1)).clamp(1, 1024) as u32;
        Access::in_flight(&self.access, self.depth).min(fit)
    }
}

impl Declaration for Fileread {
    fn footprint(&self, page_size: u64) -> Footprint {
        let size = self.case_sizes().greatest(page_size);
        let places = self.places(size, page_size);
        Footprint::file(size.max(places.files * places.file_bytes().next_multiple_of(page_size)))
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
        let is_direct = self.access.iter().any(|access| access.is_direct());
        if is_direct && !self.read_size().bytes(4096).is_multiple_of(512) {
            return Some(("read", "reads with O_DIRECT in multiples of 512 bytes", "use --read 8K"));
        }
        Access::contradicts_depth(&self.access, self.depth)
    }

    fn settle(&mut self, bounds: &Bounds) {
        self.sizes.get_or_insert_with(|| Self::sizes_for(bounds.limit));
        self.read = Some(self.read_size());
        self.writes = Some(self.write_share());
        self.files = Some(self.file_count());
    }

    fn buffers(&self, page_size: u64) -> u64 {
        u64::from(self.in_flight()).saturating_mul(self.read_size().bytes(page_size))
    }

    fn seconds(&self, _: Option<u64>, page_size: u64) -> Option<f64> {
        let cases = self.case_sizes().bytes(page_size).len() * self.access.len();
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
        &[BANDWIDTH_DIRECT, BANDWIDTH_MAPPED, BANDWIDTH_IO_URING, BANDWIDTH_IO_URING_DIRECT, TIME_CPU]
    }

    fn contradiction(&self) -> Option<Contradiction> {
        if self.access.contains(&Access::Nowait) {
            let why = "reads a file that is not cached, where a read that must not wait finds nothing";
            return Some(("access", why, "use --access pread,mmap,direct"));
        }
        Access::contradicts_depth(&self.access, self.depth)
    }

    fn buffers(&self, page_size: u64) -> u64 {
        let of = |transfer| u64::from(self.in_flight(transfer)).saturating_mul(transfer);
        self.transfers.bytes(page_size).into_iter().map(of).max().unwrap_or(0)
    }

    fn tables(&self) -> &'static [TableId] {
        &[tables::seqread::TABLE]
    }

    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        Some((self.access.len() * self.transfers.bytes(1).len()) as f64 * self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Fileread {
        crate::declaration::default(words)
    }

    #[test]
    fn places_number_the_reads_of_all_files() {
        let places = of(&["--files", "3"]).places(100 << 10, 4096);
        assert_eq!((places.total(), places.file_bytes()), (12, 32 << 10));
        assert_eq!((places.of(3), places.of(4), places.of(11)), ((0, 24 << 10), (1, 0), (2, 24 << 10)));
        let tiny = of(&["--files", "3"]).places(8 << 10, 4096);
        assert_eq!((tiny.total(), tiny.of(2)), (3, (2, 0)), "a read in each file");
    }

    #[test]
    fn a_preset_sets_only_what_nobody_requested() {
        let preset = of(&["--preset", "webserver"]);
        assert_eq!(preset.read_size(), Size::Bytes(16 << 10));
        assert_eq!((preset.write_share().to_string(), preset.file_count()), ("9.0909%".to_owned(), 1000));
        let own = of(&["--preset", "webserver", "--files", "20", "--writes", "0%"]);
        assert_eq!((own.read_size(), own.file_count()), (Size::Bytes(16 << 10), 20));
        assert!(own.write_share().is_none());
        let mut settled = own.clone();
        settled.settle(&Bounds::default());
        assert_eq!((settled.preset, settled.files), (Some(Preset::Webserver), Some(20)));
        assert!(settled.to_string().contains("--preset webserver"), "{settled}");
    }

    #[test]
    fn a_queue_depth_needs_io_uring() {
        assert_eq!((of(&[]).in_flight(), of(&[]).contradiction()), (1, None));
        let deep = of(&["--depth", "4"]);
        assert_eq!(deep.contradiction().map(|(name, ..)| name), Some("depth"));
        let queued = of(&["--access", "pread,io-uring-direct", "--depth", "4"]);
        assert_eq!((queued.in_flight(), queued.contradiction()), (4, None));
        assert_eq!(queued.buffers(4096), 4 * (8 << 10));
        let sequential: Seqread = crate::declaration::default(&["--access", "io-uring"]);
        assert_eq!([4096, 1 << 20, 4 << 20, 64 << 20].map(|size| sequential.in_flight(size)), [16, 16, 4, 1]);
        assert_eq!(sequential.buffers(4096), 16 << 20);
    }

    #[test]
    fn a_settled_experiment_needs_as_much_disk_as_before() {
        for words in [&["--files", "7"][..], &["--preset", "fileserver"], &[]] {
            let (mut settled, asked) = (of(words), of(words));
            settled.settle(&Bounds::default());
            assert_eq!(settled.footprint(4096), asked.footprint(4096));
        }
    }
}
