//! `fragment` on the running kernel: in a guest, for it fills the machine's memory.
//!
//! Each way of asking begins with memory in the same state: filled anew until little is free, then
//! all but one page of each group given back. Pages that lie side by side in a mapping that is
//! filled at once mostly do so in memory, too; how far free memory is in pieces is read from
//! `/proc/buddyinfo` before asking. What was had is `AnonHugePages` of the mapping.

use std::fs;
use std::path::{Path, PathBuf};

use pagelab_experiment::build::{Sheet, metrics};
use pagelab_experiment::experiments::Fragment;
use pagelab_experiment::experiments::fragment::WAYS;
use pagelab_experiment::tables::ways;
use pagelab_experiment::{Failure, Recorder, Result, Setting, metrics};
use pagelab_kernel::files;
use pagelab_kernel::region::{HugePages, Region, page_size};
use pagelab_kernel::rusage;

use pagelab_procfs::{chosen, value};

use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::huge::covered;
use crate::harness::measurement::Harness;
use crate::harness::profiled;
use crate::harness::scans::Scans;

const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";
const PROACTIVE: &str = "/proc/sys/vm/compaction_proactiveness";
const COMPACT: &str = "/proc/sys/vm/compact_memory";
/// Pages between two checks of what is free.
const PAGES_PER_POLL: usize = 128;
/// `MADV_COLLAPSE`, Linux 6.1 and later.
const COLLAPSE: libc::c_int = 25;

/// A setting of the kernel, put back when dropped.
struct SavedSetting {
    path: PathBuf,
    before: String,
}

impl SavedSetting {
    fn set(path: PathBuf, value: &str) -> Result<Self> {
        let doing = || format!("setting {} to {value}", path.display());
        let text = fs::read_to_string(&path).map_err(failed(&doing()))?;
        // One of several words, the one in force in brackets.
        let word = chosen(text.trim()).to_owned();
        fs::write(&path, value).map_err(failed(&doing()))?;
        Ok(Self { path, before: word })
    }
}

impl Drop for SavedSetting {
    fn drop(&mut self) {
        let _ = fs::write(&self.path, &self.before);
    }
}

/// What a way showed.
#[derive(Clone, Copy, Debug, Default)]
struct AllocationResult {
    had: Option<u64>,
    free: Option<u64>,
    blocks: Option<u64>,
    /// Direct compactions, and of them with and without success.
    compactions: [Option<u64>; 3],
    /// Processor time of asking, ns.
    time: u64,
    /// Processor time of compacting all of memory, ns.
    compacting: Option<u64>,
}

/// Performs `parameters`; see the module's comment.
///
/// # Errors
/// Where the kernel has no transparent huge pages, and when it refuses.
pub fn perform(
    parameters: &Fragment,
    setting: &Setting,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let Some(huge) = files::number(format!("{THP}/hpage_pmd_size")) else {
        let what = "this kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)";
        return Err(Failure::unsupported(what, "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE"));
    };
    let _enabled = SavedSetting::set(Path::new(THP).join("enabled"), "madvise")?;
    // Huge pages raise it to a twentieth of a small machine's memory, below which filling could not
    // go.
    let _reserve = SavedSetting::set(RESERVE.into(), "8192")?;
    // From Linux 5.9 on the kernel compacts by itself twice a second where free memory is in
    // pieces.
    let proactive = Path::new(PROACTIVE);
    let _proactive = proactive.exists().then(|| SavedSetting::set(proactive.to_owned(), "0")).transpose()?;
    let mut harness = Harness::open(context, recorder)?;
    let mut scans = Scans::open(context);
    harness.begin();
    let all = each_way(parameters, huge as usize, &mut scans, recorder)?;
    let measured = harness.finish();
    measured.record(recorder)?;
    let mut sheet = Sheet::new(ways::TABLE);
    for (way, seen) in WAYS.iter().zip(&all) {
        let number = |value: Option<u64>| value.map(|value| value as f64);
        let [stall, success, fail] = seen.compactions.map(number);
        sheet.named(
            [way],
            [
                Some(f64::from(parameters.huge)),
                number(seen.had),
                number(seen.free),
                number(seen.blocks),
                stall,
                success,
                fail,
                Some(seen.time as f64),
            ],
        );
    }
    sheet.record(recorder)?;
    scans.record(recorder)?;
    let had = |way: usize| all[way].had.map(|had| had as f64);
    let each = |way: usize| {
        let (had, time) = (all[way].had?, all[way].time);
        (had > 0).then(|| time as f64 / had as f64)
    };
    metrics(
        recorder,
        [
            (metrics::FRAGMENT_UNFRAGMENTED, had(0)),
            (metrics::FRAGMENT_FRAGMENTED, had(1)),
            (metrics::FRAGMENT_DIRECT, had(2)),
            (metrics::FRAGMENT_COLLAPSE, had(3)),
            (metrics::FRAGMENT_COMPACTED, had(4)),
            (metrics::FRAGMENT_BLOCKS, all[1].blocks.map(|blocks| blocks as f64)),
            (metrics::FRAGMENT_COST_UNFRAGMENTED, each(0)),
            (metrics::FRAGMENT_COST_DIRECT, each(2)),
            (metrics::FRAGMENT_COST_COLLAPSE, each(3)),
            (metrics::FRAGMENT_COMPACTION_CPU, all[4].compacting.map(|time| time as f64)),
        ],
    )?;
    metrics(recorder, measured.scans())?;
    measured.note_scope(recorder)?;
    profiled::repeat(setting, context, recorder, |recorder| {
        each_way(parameters, huge as usize, &mut Scans::closed(), recorder).map(drop)
    })
}

/// Asks in each way.
fn each_way(
    parameters: &Fragment,
    huge: usize,
    scans: &mut Scans,
    recorder: &mut dyn Recorder,
) -> Result<Vec<AllocationResult>> {
    let mut all = Vec::new();
    for (number, way) in (0..).zip(WAYS) {
        recorder.progress(way, number, WAYS.len() as u64);
        all.push(ask(parameters, way, huge, scans, recorder)?);
    }
    Ok(all)
}

/// Asks for huge pages in one way.
fn ask(
    parameters: &Fragment,
    way: &str,
    huge: usize,
    scans: &mut Scans,
    recorder: &mut dyn Recorder,
) -> Result<AllocationResult> {
    let defrag = if way == "direct" { "always" } else { "never" };
    let _defrag = SavedSetting::set(Path::new(THP).join("defrag"), defrag)?;
    let _filled = match way {
        "whole" => None,
        _ => Some(fill(parameters, recorder)?),
    };
    let compacting = match way {
        "compacted" => {
            let begun = rusage::thread_time();
            fs::write(COMPACT, "1").map_err(failed(&format!("writing 1 to {COMPACT}")))?;
            Some(rusage::thread_time() - begun)
        }
        _ => None,
    };
    let pages = huge / page_size();
    // One more, for the mapping need not begin where a huge page does.
    let count = parameters.huge as usize;
    let region = Region::anonymous((count + 1) * pages).map_err(failed("mapping the huge pages"))?;
    let first = region.base().align_offset(huge) / page_size();
    let (free, blocks) = (free(), blocks(pages));
    let touch = |page: usize| {
        // SAFETY: within the mapping, which nobody else uses.
        unsafe { region.base().add(page * page_size()).write_volatile(1) };
    };
    if way == "collapse" {
        (first..first + count * pages).for_each(touch);
    } else {
        region.advise(HugePages::Wanted).map_err(failed("madvise(MADV_HUGEPAGE)"))?;
    }
    scans.begin();
    let before = compactions();
    let begun = rusage::thread_time();
    for place in 0..count {
        let page = first + place * pages;
        if way == "collapse" {
            // SAFETY: a huge page's part of the mapping; the advice keeps its content. What is
            // refused is not had.
            unsafe { libc::madvise(region.base().add(page * page_size()).cast(), huge, COLLAPSE) };
        } else {
            touch(page);
        }
    }
    let time = rusage::thread_time() - begun;
    let after = compactions();
    scans.end(way);
    let had = covered(&region).map(|bytes| bytes / huge as u64);
    let grown = |n: usize| before[n].zip(after[n]).map(|(before, after)| after - before);
    Ok(AllocationResult { had, free, blocks, compactions: [grown(0), grown(1), grown(2)], time, compacting })
}

/// Fills memory until little is free, and gives all but one page of each group back.
fn fill(parameters: &Fragment, recorder: &mut dyn Recorder) -> Result<Region> {
    let page = page_size() as u64;
    let leave = parameters.leave * page;
    let free = || {
        free().ok_or_else(|| Failure::unsupported("the kernel does not report free memory", "mount /proc"))
    };
    let pages = (free()? / page) as usize;
    let region = Region::anonymous(pages).map_err(failed(&format!("mapping {pages} pages")))?;
    region.advise(HugePages::Forbidden).map_err(failed("madvise(MADV_NOHUGEPAGE)"))?;
    let mut filled = 0;
    while filled < pages && free()? > leave {
        for page in filled..(filled + PAGES_PER_POLL).min(pages) {
            // SAFETY: within the mapping, which nobody else uses.
            unsafe { region.base().add(page * page_size()).write_volatile(1) };
        }
        filled = (filled + PAGES_PER_POLL).min(pages);
        recorder.check()?;
    }
    let group = parameters.group as usize;
    for first in (0..filled).step_by(group) {
        let rest = group.min(filled - first) - 1;
        if rest > 0 {
            region.give_back_part(first + 1, rest).map_err(failed("madvise(MADV_DONTNEED)"))?;
        }
    }
    Ok(region)
}

/// Free memory, bytes.
fn free() -> Option<u64> {
    let text = files::text("/proc/meminfo").ok()?;
    value(&text, "MemFree")
}

/// Free blocks of so many pages, each larger one as many as it has: `/proc/buddyinfo`, all zones.
fn blocks(pages: usize) -> Option<u64> {
    of_size(&files::text("/proc/buddyinfo").ok()?, pages)
}

fn of_size(text: &str, pages: usize) -> Option<u64> {
    let order = pages.ilog2() as usize;
    let of_zone = |line: &str| -> Option<u64> {
        let counts = line.split_once(", zone")?.1.split_whitespace().skip(1);
        let counts: Option<Vec<u64>> = counts.map(|count| count.parse().ok()).collect();
        Some(counts?.iter().enumerate().skip(order).map(|(n, count)| count << (n - order)).sum())
    };
    text.lines().map(of_zone).sum()
}

/// Direct compactions since boot, and of them with and without success.
fn compactions() -> [Option<u64>; 3] {
    let text = files::text("/proc/vmstat").unwrap_or_default();
    ["compact_stall", "compact_success", "compact_fail"].map(|name| value(&text, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_blocks_count_as_many() {
        let text = "Node 0, zone      DMA      1      0      1      0      2      1      1      0      1      1      3\n\
            Node 0, zone    DMA32      3    148      0      0      0      0      0      0      0      4      5\n";
        assert_eq!(of_size(text, 512), Some(1 + 3 * 2 + 4 + 5 * 2));
        assert_eq!(of_size(text, 1024), Some(3 + 5));
        assert_eq!(of_size("no zones", 512), None);
    }
}
