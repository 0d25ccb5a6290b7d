//! How far transparent huge pages cover the mapping, and what the kernel did about them.
//!
//! The coverage is `AnonHugePages` of the mapping's own entry in `/proc/self/smaps`, read before
//! the first reference and after the last. That is of huge pages that the processor maps in one
//! entry; of folios of every size the page flags say it (`folios`). The counters are those of
//! `/proc/vmstat` whose names begin with `thp_`, read before the mapping is populated too: that is
//! where huge pages are given, and those of each size from Linux 6.8 on (`hugepages-*kB/stats`).
//! They are the whole machine's.

use pagelab_experiment::build::{Sheet, metrics};
use pagelab_experiment::counters;
use pagelab_experiment::tables::huge_pages;
use pagelab_experiment::{Recorder, Result, metrics};
use pagelab_kernel::region::Region;
use pagelab_kernel::{files, rusage, thp};

use pagelab_procfs::{addresses, pairs, value};

use crate::harness::folios::Folios;

/// What is known before the mapping is populated.
#[derive(Debug)]
pub struct Before {
    /// Faults of this thread that waited for no input.
    faults: u64,
    /// Whether it may have huge pages; of one that may not nothing but the faults is read.
    allowed: bool,
    thp: Vec<(String, u64)>,
}

/// What is known when it is populated, before the first reference.
#[derive(Debug)]
pub struct Populated {
    before: Before,
    /// Faults that populating it took.
    faults: u64,
    look: Option<Snapshot>,
}

/// Of which pages it is.
#[derive(Debug)]
struct Snapshot {
    /// Bytes in huge pages.
    huge: Option<u64>,
    folios: Option<Folios>,
    thp: Vec<(String, u64)>,
}

impl Snapshot {
    fn at(region: &Region) -> Self {
        Self { huge: covered(region), folios: Folios::of(region), thp: thp() }
    }
}

impl Before {
    /// Reads, where huge pages are `allowed` also the counters.
    pub fn read(allowed: bool) -> Self {
        Self { faults: rusage::thread().minor, allowed, thp: if allowed { thp() } else { Vec::new() } }
    }

    /// Reads again, now that `region` is populated.
    pub fn populated(self, region: &Region) -> Populated {
        let faults = rusage::thread().minor - self.faults;
        let look = self.allowed.then(|| Snapshot::at(region));
        Populated { before: self, faults, look }
    }
}

impl Populated {
    /// Reads again after the last reference, while `region` is still there.
    pub fn referenced(self, region: &Region) -> HugePageUse {
        let look = self.before.allowed.then(|| Snapshot::at(region));
        HugePageUse { populated: self, look, bytes: region.bytes() as u64 }
    }
}

/// All that was read.
#[derive(Debug)]
pub struct HugePageUse {
    populated: Populated,
    look: Option<Snapshot>,
    /// Of the mapping.
    bytes: u64,
}

impl HugePageUse {
    /// Records the faults of populating, and where huge pages were allowed also their figures.
    ///
    /// # Errors
    /// When they cannot be kept.
    pub fn report(&self, recorder: &mut dyn Recorder) -> Result<()> {
        metrics(recorder, [(metrics::FAULTS_POPULATE, Some(self.populated.faults as f64))])?;
        let (Some(populated), Some(referenced)) = (&self.populated.look, &self.look) else {
            return Ok(());
        };
        let share = |huge: Option<u64>| Some(huge? as f64 / self.bytes as f64);
        let (first, last) = (populated.huge, referenced.huge);
        metrics(
            recorder,
            [
                (metrics::HUGE_BEFORE, first.map(|v| v as f64)),
                (metrics::HUGE_AFTER, last.map(|v| v as f64)),
                (metrics::HUGE_COVERAGE_BEFORE, share(first)),
                (metrics::HUGE_COVERAGE_AFTER, share(last)),
            ],
        )?;
        Folios::report(&populated.folios, &referenced.folios, self.bytes, recorder)?;
        let mut sheet = Sheet::new(huge_pages::TABLE);
        let of = |list: &[(String, u64)], name: &str| list.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let mut any = false;
        for (name, before) in &self.populated.before.thp {
            let Some((middle, after)) = of(&populated.thp, name).zip(of(&referenced.thp, name)) else {
                continue;
            };
            let (populating, references) = (middle.saturating_sub(*before), after.saturating_sub(middle));
            if (populating, references) != (0, 0) {
                any = true;
                let words = match name.rsplit_once('/') {
                    Some((_, counter)) => of_size(counter).to_owned(),
                    None => counters::named(&format!("vmstat:0:vm:{name}")).words,
                };
                sheet.named([name, &words], [Some(populating as f64), Some(references as f64)]);
            }
        }
        if any { sheet.record(recorder) } else { Ok(()) }
    }
}

/// The counters of huge pages since boot; none where the kernel has none.
fn thp() -> Vec<(String, u64)> {
    let text = files::text("/proc/vmstat").unwrap_or_default();
    let thp = pairs(&text).filter(|(name, _)| name.starts_with("thp_"));
    thp.map(|(name, count)| (name.to_owned(), count)).chain(thp::stats()).collect()
}

/// What a counter of one size counts (Documentation/admin-guide/mm/transhuge.rst).
fn of_size(counter: &str) -> &'static str {
    match counter {
        "anon_fault_alloc" => "folios given at a fault",
        "anon_fault_fallback" => "smaller ones given at a fault instead",
        "anon_fault_fallback_charge" => "of those, because the memory cgroup had no room",
        "zswpout" => "folios swapped to zswap whole",
        "swpin" => "folios read from swap whole",
        "swpin_fallback" => "smaller ones read from swap instead",
        "swpin_fallback_charge" => "of those, because the memory cgroup had no room",
        "swpout" => "folios written to swap whole",
        "swpout_fallback" => "folios split to be swapped",
        "split" => "folios split",
        "split_failed" => "failed splits",
        "split_deferred" => "folios to be split, partly unmapped",
        _ => "",
    }
}

/// Bytes of `region` in transparent huge pages; `None` where that is not known of it alone.
pub(crate) fn covered(region: &Region) -> Option<u64> {
    let begin = region.base() as u64;
    anon_huge(&files::text("/proc/self/smaps").ok()?, begin..begin + region.bytes() as u64)
}

/// The sum of `AnonHugePages` over the mappings within `range`; `None` where one sticks out of it
/// (the kernel has merged it with a neighbour), or none is there, or the kernel does not say.
fn anon_huge(smaps: &str, range: std::ops::Range<u64>) -> Option<u64> {
    let (mut sum, mut bytes, mut inside) = (0, 0, false);
    for line in smaps.lines() {
        if let Some(found) = addresses(line) {
            inside = found.start < range.end && found.end > range.start;
            if inside && (found.start < range.start || found.end > range.end) {
                return None;
            }
        } else if inside && let Some(huge) = value(line, "AnonHugePages") {
            sum += huge;
            bytes += 1;
        }
    }
    (bytes > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "1000-3000 rw-p 00000000 00:00 0 \nRss: 8 kB\nAnonHugePages:         4 kB\n\
        3000-9000 rw-p 00000000 00:00 0                  [heap]\nAnonHugePages:      2048 kB\n\
        9000-a000 r--p 00000000 08:01 123                /a-b\nAnonHugePages:         0 kB\n";

    #[test]
    fn only_the_mapping_itself_counts() {
        assert_eq!(anon_huge(SMAPS, 0x3000..0x9000), Some(2 << 20));
        assert_eq!(anon_huge(SMAPS, 0x1000..0x9000), Some((2 << 20) + 4096), "it may be split");
        assert_eq!(anon_huge(SMAPS, 0x4000..0x9000), None, "merged with a neighbour");
        assert_eq!(anon_huge(SMAPS, 0xb000..0xc000), None);
        assert_eq!(anon_huge("3000-9000 rw-p\nRss: 1 kB\n", 0x3000..0x9000), None, "an old kernel");
    }
}
