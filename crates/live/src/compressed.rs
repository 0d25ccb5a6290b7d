//! How far the pages of a load that are in zram or in zswap were compressed, while they are there.
//!
//! Of the run's own zram device: `mm_stat` (Documentation/admin-guide/blockdev/zram.rst). Of zswap: `zswapped` and `zswap`
//! of the cgroup's `memory.stat` (version 2, Linux 5.19), else `Zswapped` and `Zswap` of /proc/meminfo, which are the whole
//! machine's. A page that was read back stays stored until it is written or its slot is wanted.

use std::fs;
use std::path::Path;

use pagelab_experiment::Failure;
use pagelab_experiment::Recorder;
use pagelab_experiment::build::metrics;
use pagelab_experiment::catalogue::name;

use crate::kernel;
use crate::place::Place;
use crate::region::page_size;

/// Pages of which no ratio is given: the swap's header, one page or two, would be much of it.
const FEW: u64 = 16;

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

/// Both, as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compressed {
    zram: Option<Zram>,
    zswap: Option<Store>,
}

impl Compressed {
    /// Reads.
    pub fn read(place: &Place) -> Self {
        let zram = place
            .zram
            .and_then(|number| zram(&fs::read_to_string(format!("/sys/block/zram{number}/mm_stat")).ok()?));
        Self { zram, zswap: if zswap_is_on() { zswap(place.memory_stat.as_deref()) } else { None } }
    }

    /// Records what there is.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn report(&self, recorder: &mut dyn Recorder) -> Result<(), Failure> {
        let bytes = |value: u64| Some(value as f64);
        if let Some(zram) = self.zram {
            metrics(
                recorder,
                [
                    (name::ZRAM_STORED, bytes(zram.store.stored)),
                    (name::ZRAM_MEMORY, bytes(zram.store.memory)),
                    (name::ZRAM_RATIO, zram.given().and_then(|_| zram.store.ratio())),
                    (name::ZRAM_COMPRESSION, zram.given().and_then(|given| ratio(given, zram.compressed))),
                    (name::ZRAM_SAME, bytes(zram.same)),
                    (name::ZRAM_INCOMPRESSIBLE, zram.incompressible.map(|pages| pages as f64)),
                ],
            )?;
        }
        if let Some(zswap) = self.zswap {
            metrics(
                recorder,
                [
                    (name::ZSWAP_STORED, bytes(zswap.stored)),
                    (name::ZSWAP_MEMORY, bytes(zswap.memory)),
                    (name::ZSWAP_RATIO, zswap.ratio()),
                ],
            )?;
        }
        Ok(())
    }
}

impl Store {
    fn ratio(self) -> Option<f64> {
        ratio(self.stored, self.memory)
    }
}

impl Zram {
    /// Bytes that the compressor was given; `None` where they are so few that the swap's own header is much of them.
    fn given(&self) -> Option<u64> {
        let page = page_size() as u64;
        let given = self.store.stored.saturating_sub(self.same.saturating_mul(page));
        (given > FEW * page).then_some(given)
    }
}

fn ratio(of: u64, to: u64) -> Option<f64> {
    (of > 0 && to > 0).then(|| of as f64 / to as f64)
}

/// Whether pages go to zswap first.
fn zswap_is_on() -> bool {
    fs::read_to_string("/sys/module/zswap/parameters/enabled").is_ok_and(|text| text.trim() == "Y")
}

/// Of the cgroup, else of the machine.
fn zswap(memory_stat: Option<&Path>) -> Option<Store> {
    let own = memory_stat.and_then(|path| fs::read_to_string(path).ok());
    let own = own.and_then(|text| {
        Some(Store { stored: kernel::value(&text, "zswapped")?, memory: kernel::value(&text, "zswap")? })
    });
    own.or_else(|| machine(&fs::read_to_string("/proc/meminfo").ok()?))
}

fn machine(meminfo: &str) -> Option<Store> {
    let of = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(Store { stored: of("Zswapped")?, memory: of("Zswap")? })
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
