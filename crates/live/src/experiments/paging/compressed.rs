//! How far the pages of a load that are in zram or in zswap were compressed, while they are there,
//! and what went through zswap during the load.
//!
//! Of the run's own zram device: `mm_stat` (Documentation/admin-guide/blockdev/zram.rst). Of zswap:
//! `zswapped` and `zswap` of the cgroup's `memory.stat` (version 2, Linux 5.19), else `Zswapped`
//! and `Zswap` of /proc/meminfo, which are the whole machine's. A page that was read back stays
//! stored until it is written or its slot is wanted. What went into zswap, came back from it and
//! was written from it to the swap behind is the growth of `zswpout`, `zswpin` (Linux 5.19) and
//! `zswpwb` (Linux 6.8), beside it that of `pswpout`, of the cgroup's `memory.stat` (version 2,
//! Linux 6.13), else of /proc/vmstat: from before the mapping was populated, for most of it goes to
//! swap then.

use std::fs;
use std::path::Path;

use pagelab_confine::zswap_is_on;
use pagelab_experiment::Recorder;
use pagelab_experiment::Result;
use pagelab_experiment::build::{metrics, note};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_kernel::region::page_size;

use pagelab_procfs::value;

use crate::harness::context::ExecutionContext;

/// Pages of which no ratio is given: the swap's header, one page or two, would be much of it.
const MIN_PAGES: u64 = 16;

/// What is stored and in how much memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Store {
    /// Bytes of the pages before they were compressed.
    stored: u64,
    /// Bytes of memory that they take, the allocator's included.
    memory: u64,
}

/// What zram says beside that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Zram {
    store: Store,
    /// Bytes that the compressor made.
    compressed: u64,
    /// Pages of one word again and again, which take none.
    same: u64,
    /// Pages that did not compress, stored as they are; `None` on a kernel that does not say.
    incompressible: Option<u64>,
}

/// Both, as they are, and what went through zswap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compressed {
    zram: Option<Zram>,
    zswap: Option<Store>,
    flow: Option<Flow>,
}

impl Compressed {
    /// Reads, and compares with what had gone through zswap `before`.
    pub fn read(context: &ExecutionContext, before: Option<Flow>) -> Self {
        let zram = context
            .zram
            .and_then(|number| zram(&fs::read_to_string(format!("/sys/block/zram{number}/mm_stat")).ok()?));
        let flow = Flow::read(context).zip(before).map(|(now, before)| now.since(before));
        Self { zram, zswap: if zswap_is_on() { zswap(context.memory_stat.as_deref()) } else { None }, flow }
    }

    /// Records what there is.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn report(&self, recorder: &mut dyn Recorder) -> Result<()> {
        let bytes = |value: u64| Some(value as f64);
        if let Some(zram) = self.zram {
            metrics(
                recorder,
                [
                    (metrics::ZRAM_STORED, bytes(zram.store.stored)),
                    (metrics::ZRAM_MEMORY, bytes(zram.store.memory)),
                    (metrics::ZRAM_RATIO, zram.given().and_then(|_| zram.store.ratio())),
                    (metrics::ZRAM_COMPRESSION, zram.given().and_then(|given| ratio(given, zram.compressed))),
                    (metrics::ZRAM_SAME, bytes(zram.same)),
                    (metrics::ZRAM_INCOMPRESSIBLE, zram.incompressible.map(|pages| pages as f64)),
                ],
            )?;
        }
        let Some(zswap) = self.zswap else { return Ok(()) };
        let flow = self.flow.unwrap_or_default();
        let pages = |count: Option<u64>| count.map(|count| count as f64);
        metrics(
            recorder,
            [
                (metrics::ZSWAP_STORED, bytes(zswap.stored)),
                (metrics::ZSWAP_MEMORY, bytes(zswap.memory)),
                (metrics::ZSWAP_RATIO, zswap.ratio()),
                (metrics::ZSWAP_OUT, pages(flow.taken)),
                (metrics::ZSWAP_IN, pages(flow.given)),
                (metrics::ZSWAP_WRITEBACK, pages(flow.written_back)),
                (metrics::ZSWAP_REJECTED, pages(flow.rejected())),
            ],
        )?;
        if flow.whole_machine && flow.taken.max(flow.given).max(flow.written_back) > Some(0) {
            note(
                recorder,
                Level::Info,
                "the zswap figures are those of the whole machine (/proc/vmstat), because this kernel does \
                not count them per cgroup; keep other programs idle",
            )?;
        }
        Ok(())
    }
}

/// Pages that went through zswap and past it: since boot, or between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    taken: Option<u64>,
    given: Option<u64>,
    written_back: Option<u64>,
    /// Written to the device, by zswap or past it.
    device: Option<u64>,
    /// Whether other programs' are counted too.
    whole_machine: bool,
}

impl Flow {
    /// Of the cgroup where its `memory.stat` counts all of it, else of the machine; `None` where
    /// zswap is off.
    pub fn read(context: &ExecutionContext) -> Option<Self> {
        if zswap_is_on() { Self::counted(context) } else { None }
    }

    fn counted(context: &ExecutionContext) -> Option<Self> {
        let own =
            context.memory_stat.as_deref().and_then(|path| Self::of(&fs::read_to_string(path).ok()?, false));
        let own = own.filter(|own| own.written_back.is_some() && own.device.is_some());
        own.or_else(|| Self::of(&fs::read_to_string("/proc/vmstat").ok()?, true))
    }

    fn of(text: &str, whole_machine: bool) -> Option<Self> {
        let of = |name| value(text, name);
        let taken = Some(of("zswpout")?);
        let (given, written_back, device) = (of("zswpin"), of("zswpwb"), of("pswpout"));
        Some(Self { taken, given, written_back, device, whole_machine })
    }

    fn since(self, before: Self) -> Self {
        let grown = |after: Option<u64>, before| {
            after.zip(before).map(|(after, before): (u64, u64)| after.saturating_sub(before))
        };
        Self {
            taken: grown(self.taken, before.taken),
            given: grown(self.given, before.given),
            written_back: grown(self.written_back, before.written_back),
            device: grown(self.device, before.device),
            whole_machine: self.whole_machine,
        }
    }

    /// Pages that went to the device without having been in zswap.
    fn rejected(self) -> Option<u64> {
        self.device.zip(self.written_back).map(|(device, written_back)| device.saturating_sub(written_back))
    }
}

impl Store {
    fn ratio(self) -> Option<f64> {
        ratio(self.stored, self.memory)
    }
}

impl Zram {
    /// Bytes that the compressor was given; `None` where they are so few that the swap's own header
    /// is much of them.
    fn given(&self) -> Option<u64> {
        let page = page_size() as u64;
        let given = self.store.stored.saturating_sub(self.same.saturating_mul(page));
        (given > MIN_PAGES * page).then_some(given)
    }
}

fn ratio(of: u64, to: u64) -> Option<f64> {
    (of > 0 && to > 0).then(|| of as f64 / to as f64)
}

/// Of the cgroup, else of the machine.
fn zswap(memory_stat: Option<&Path>) -> Option<Store> {
    let own = memory_stat.and_then(|path| fs::read_to_string(path).ok());
    let own = own
        .and_then(|text| Some(Store { stored: value(&text, "zswapped")?, memory: value(&text, "zswap")? }));
    own.or_else(|| machine(&fs::read_to_string("/proc/meminfo").ok()?))
}

fn machine(meminfo: &str) -> Option<Store> {
    Some(Store { stored: value(meminfo, "Zswapped")?, memory: value(meminfo, "Zswap")? })
}

/// The columns of `mm_stat`: original, compressed, used, limit, most used, same-filled pages, compacted pages, and from Linux
/// 4.19 on pages that do not compress.
fn zram(mm_stat: &str) -> Option<Zram> {
    let columns: Vec<u64> = mm_stat.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(Zram {
        store: Store { stored: *columns.first()?, memory: *columns.get(2)? },
        compressed: *columns.get(1)?,
        same: *columns.get(5)?,
        incompressible: columns.get(7).copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_through_zswap_is_the_growth_of_the_kernels_counters() {
        let folder = tempfile::tempdir().unwrap();
        let stat = folder.path().join("memory.stat");
        let context = ExecutionContext { memory_stat: Some(stat.clone()), ..ExecutionContext::default() };
        std::fs::write(&stat, "zswpin 1\nzswpout 10\nzswpwb 4\npswpout 100\n").unwrap();
        let before = Flow::counted(&context).unwrap();
        assert!(!before.whole_machine);
        std::fs::write(&stat, "zswpin 3\nzswpout 50\nzswpwb 14\npswpout 117\n").unwrap();
        let grown = Flow::counted(&context).unwrap().since(before);
        assert_eq!((grown.taken, grown.given, grown.written_back), (Some(40), Some(2), Some(10)));
        assert_eq!(grown.rejected(), Some(7), "17 were written to the device");
        let old = Flow::of("zswpin 3\nzswpout 50\npswpout 117\n", true).unwrap();
        assert_eq!((old.taken, old.written_back, old.rejected()), (Some(50), None, None), "before Linux 6.8");
        assert_eq!(Flow::of("pswpout 117\n", true), None, "a kernel without zswap");
    }

    #[test]
    fn forms_of_the_kernel() {
        let text = "  409600     8000    16384        0    20480        2        0        3        1\n";
        let read = zram(text).unwrap();
        assert_eq!(read.store, Store { stored: 409_600, memory: 16384 });
        assert_eq!((read.compressed, read.same, read.incompressible), (8000, 2, Some(3)));
        assert_eq!(read.given(), Some(409_600 - 2 * page_size() as u64));
        let header = format!("{} 64 4096 0 4096 9 0 0 0\n", 10 * page_size());
        assert_eq!(zram(&header).unwrap().given(), None, "the swap's header and pages of zeroes");
        assert_eq!(zram("1 2 3 4 5 6 7").unwrap().incompressible, None, "before 4.19");
        assert_eq!(zram("1 2"), None);
        let memory = "MemTotal: 5 kB\nZswap:      8 kB\nZswapped:  16 kB\n";
        assert_eq!(machine(memory), Some(Store { stored: 16 << 10, memory: 8 << 10 }));
        assert_eq!(machine("MemTotal: 5 kB\n"), None);
        assert_eq!(Store::default().ratio(), None, "nothing stored has no ratio");
    }
}
