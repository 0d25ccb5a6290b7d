//! `fileread` on Solaris: random reads through segmap or segkpm, through a mapping, and with a first try that
//! does not wait.
//!
//! A mapping spares the call and the window: a page that was touched before costs the copy alone, another a
//! fault that maps it, from memory or from disk. A read that does not wait finds a page that is not in memory
//! at the cost of the call without the copy, and is made again.

use pagelab_experiment::build::{ReadCosts, Sheet, case_names, metric, metrics, note};
use pagelab_experiment::experiments::{Access, Fileread};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::tables::fileread as table;
use pagelab_experiment::{Failure, Recorder, Setting};

use crate::pagecache;
use crate::pagecache::path::{Costs, Path, random_reads};
use crate::parameter::{Parameter, Parts};
use crate::parameter_table;

/// Bytes of a page (SPARC), and of the reads whose costs are known.
pub(super) const PAGE: u64 = 8192;
const READ: u64 = PAGE;

/// A machine with a page cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cached {
    path: Path,
    costs: Costs,
    machine: Machine,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Machine {
    /// CPU time of copying 8 KiB, in µs; the rest of `Costs::call` is the call itself.
    copy: f64,
    /// Share of memory for segmap's windows, in percent.
    windows: u64,
    processors: u32,
}

const MACHINE: &[Parameter<Machine>] = parameter_table! {
    number "copy" "µs" [0.0, 10000.0] "copy of 8 KiB", assumed("500 MB/s"), (copy);
    whole "windows" "%" [1.0, 90.0] "segmap's share of memory", documented("12% on SPARC"), (windows);
    whole "processors" "" [1.0, 1024.0] "CPUs of the machine", assumed("not published"), (processors);
};

impl Cached {
    pub(super) const fn by(path: Path) -> Self {
        let machine = Machine { copy: 16.0, windows: 12, processors: 2 };
        Self { path, costs: Costs::SOLARIS, machine }
    }

    pub(super) fn parts(&mut self) -> Parts<'_> {
        Parts::default().and(pagecache::parameters::COSTS, &mut self.costs).and(MACHINE, &mut self.machine)
    }
}

/// What the model of a page cache does not honour.
pub(super) fn refuses(fileread: &Fileread) -> Option<super::Refused> {
    if fileread.read_size().bytes(READ) != READ {
        return super::refused("read", "knows the costs of reads of 8 KiB", "use --read 8K");
    }
    if !fileread.write_share().is_none() {
        return super::refused("writes", "knows the costs of reads only", "leave --writes out");
    }
    if !fileread.sequential.is_none() {
        return super::refused("sequential", "reads at random", "leave --sequential out");
    }
    if fileread.access.iter().any(|access| access.is_direct() || access.is_queued()) {
        let why = "has neither a way past the page cache nor io_uring";
        return super::refused("access", why, "use --access pread,mmap,nowait");
    }
    fileread
        .rate
        .is_some()
        .then(|| super::refusal("rate", "makes one read after the other", "leave --rate out"))
}

/// Random reads of files of the sizes asked for.
pub(super) fn perform(
    cached: &Cached,
    fileread: &Fileread,
    setting: &Setting,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let Cached { path, costs, machine: Machine { copy, windows: share, processors } } = *cached;
    let sizes = fileread.case_sizes().bytes(READ);
    let most = sizes.last().map_or(READ, |&size| 2 * size);
    let memory = setting.limit().map_or(most, |size| size.bytes(READ)) / READ;
    let memory = memory.clamp(16, u64::from(u32::MAX)) as u32;
    let windows = ((u64::from(memory) * share / 100) as u32).max(1);
    let absent = [
        table::WRITES,
        table::ACCESS_MEAN,
        table::ACCESS_P50,
        table::ACCESS_P99,
        table::TIME_USER,
        table::IO_READ,
        table::CACHED_BEFORE,
        table::CACHED_AFTER,
        table::RECENTLY_EVICTED,
        table::REFAULTS,
    ];
    let mut sheet = Sheet::without(table::TABLE, &absent);
    let mut total = 0.0;
    let mut headline = ReadCosts::default();
    for (index, (&size, case)) in sizes.iter().zip(case_names(sizes.len())).enumerate() {
        recorder.progress("cases", index as u64, sizes.len() as u64);
        // A place is a page: the pages of several files are numbered one after the other.
        let places = fileread.places(size, READ);
        let size = places.files * places.file_bytes();
        let pages = places.total().clamp(1, u64::from(u32::MAX)) as u32;
        let reads = fileread.reads.max(1) as f64;
        for &access in &fileread.access {
            let mapped = access == Access::Mmap;
            // A mapping holds on to every page that is in memory.
            let windows = if mapped { memory - 1 } else { windows };
            let shares = random_reads(pages, windows, memory, fileread.reads.max(1), fileread.seed);
            let found = shares.window + shares.cached;
            let once = costs.read(path, &shares, processors).own;
            let (each, calls, hits) = match access {
                Access::Pread | Access::Direct | Access::IoUring | Access::IoUringDirect => {
                    (once, 1.0, f64::NAN)
                }
                Access::Nowait => (once + (1.0 - found) * (costs.call - copy), 2.0 - found, found),
                Access::Mmap => {
                    let fault = costs.map + costs.reclaim;
                    (copy + (1.0 - shares.window) * fault + (1.0 - found) * costs.input, 0.0, f64::NAN)
                }
            };
            let each = each * 1000.0;
            headline.add(fileread, case, access, each);
            total += each * reads;
            let faults = if mapped { [shares.cached, 1.0 - found] } else { [0.0; 2] };
            let row = [
                size as f64,
                reads,
                each,
                each * reads,
                calls * reads,
                hits,
                faults[0] * reads,
                faults[1] * reads,
            ];
            sheet.named([&format!("{case} {access}")], row.map(Some));
        }
    }
    sheet.record(recorder)?;
    metrics(recorder, headline.figures())?;
    metric(recorder, metrics::TIME_SYSTEM, Some(total))?;
    note(
        recorder,
        Level::Info,
        format!("{memory} pages of 8 KiB for files, {windows} of them in windows; {processors} processors"),
    )
}
