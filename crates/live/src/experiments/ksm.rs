//! `ksm` on the running kernel.
//!
//! ksmd is one thread of the kernel's with one set of counters for the whole machine; what the
//! experiment tells it is put back with everything else that a run changes ([`SETTINGS`]). The
//! machine's counters have other programs' pages in them (QEMU offers the memory of every guest),
//! so figures are of this mapping: which of its pages lie in one frame, by /proc/self/pagemap, and
//! what the kernel counts for the process.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use pagelab_experiment::build::{Sheet, metrics, note, warn};
use pagelab_experiment::experiments::Ksm;
use pagelab_experiment::experiments::ksm::SETTINGS;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Recorder, Result, tables, warnings};
use pagelab_kernel::affinity::Pinned;
use pagelab_kernel::content::Filler;
use pagelab_kernel::files::number;
use pagelab_kernel::kthread::KernelThreads;
use pagelab_kernel::region::Region;
use pagelab_kernel::rusage;

use pagelab_procfs::value;
use rustix::mm::{Advice, madvise};

use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;
use crate::harness::processor;
use crate::harness::timing::bare;
use crate::harness::touch::Write;

/// Where ksmd is told what to do, and tells what it did.
pub const FOLDER: &str = "/sys/kernel/mm/ksm";
/// Between two samples at the counters.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// A page is remembered in one scan, and merged in another one; the first one is not whole.
const MIN_SCANS: u64 = 3;

/// The kernel's counters.
#[derive(Clone, Copy, Default)]
struct Counts {
    sharing: u64,
    shared: u64,
    scans: u64,
}

impl Counts {
    fn read() -> Self {
        let number = |file: &str| number(Path::new(FOLDER).join(file)).unwrap_or(0);
        Self { sharing: number("pages_sharing"), shared: number("pages_shared"), scans: number("full_scans") }
    }
}

/// When the last merge was seen, and what there was then.
struct Merged {
    time: u64,
    ksmd: Option<u64>,
    scans: u64,
    /// Whether a whole scan merged no more.
    settled: bool,
}

/// Performs `parameters`; see the module's comment.
///
/// # Errors
/// When the kernel refuses memory or its settings.
pub fn perform(parameters: &Ksm, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    context.join()?;
    let _processor = Pinned::to(1).map_err(failed("choosing processors"))?;
    let (region, equal, others) = filled(parameters, recorder)?;
    set("run", "0")?;
    // A kernel before 6.7 has no advisor.
    if Path::new(SETTINGS[1]).exists() {
        set("advisor_mode", "none")?;
    }
    set("sleep_millisecs", &parameters.sleep.to_string())?;
    set("pages_to_scan", &parameters.scan.to_string())?;
    let threads = KernelThreads::find("ksmd");
    harness.begin();
    let (start, used) = (Counts::read(), rusage::thread_up_to_date());
    advise(&region, Advice::LinuxMergeable).map_err(failed("madvise(MADV_MERGEABLE)"))?;
    let mut sheet = Sheet::new(tables::merging::TABLE);
    let merged = merge(parameters, &threads, &start, &mut sheet, recorder)?;
    set("run", "0")?;
    let frames = frames(&region).map_err(failed("reading /proc/self/pagemap"))?;
    let (profit, scanned_too) = (profit(), other_programs());

    let mut costs = Sheet::new(tables::unmerging::TABLE);
    // Of each content every other page.
    let part = |of: u64| move |(n, _): &(usize, &u32)| *n as u64 / parameters.contents % 2 == of;
    let chosen =
        |of: u64| equal.iter().enumerate().filter(part(of)).map(|(_, &page)| page).collect::<Vec<u32>>();
    let (written, left) = (chosen(0), chosen(1));
    let plain: Vec<u32> = others.into_iter().take(written.len()).collect();
    let copy = cost("write to a merged page", &mut costs, written.len(), || {
        bare::<Write>(&region, &written);
        Ok(())
    })?;
    let write = cost("write to another page", &mut costs, plain.len(), || {
        bare::<Write>(&region, &plain);
        Ok(())
    })?;
    let unmerge = cost("madvise(MADV_UNMERGEABLE)", &mut costs, left.len(), || {
        advise(&region, Advice::LinuxUnmergeable).map_err(failed("madvise(MADV_UNMERGEABLE)"))
    })?;
    let used = rusage::thread_up_to_date() - used;
    let measured = harness.finish();
    measured.record(recorder)?;
    sheet.record(recorder)?;
    costs.record(recorder)?;
    let figures = [
        (metrics::KSM_SHARING, frames.map(|(saved, _)| saved as f64)),
        (metrics::KSM_SHARED, frames.map(|(_, shared)| shared as f64)),
        (metrics::KSM_PROFIT, profit.map(|bytes| bytes as f64)),
        (metrics::KSM_TIME, Some(merged.time as f64)),
        (metrics::KSM_SCANS, Some(merged.scans as f64)),
        (metrics::KSM_CPU, merged.ksmd.map(|time| time as f64)),
        (metrics::KSM_COPY, copy),
        (metrics::KSM_WRITE, write),
        (metrics::KSM_UNMERGE, unmerge),
    ];
    metrics(recorder, figures.into_iter().chain(processor::totals(&used)))?;
    if !merged.settled {
        let text = format!(
            "after {} s {}: raise --timeout, or --scan more pages",
            parameters.timeout,
            warnings::STILL_MERGING.0
        );
        warn(recorder, warnings::STILL_MERGING, text)?;
    }
    if scanned_too > 0 {
        let text = format!(
            "{scanned_too} other programs have pages that may be merged, so ksmd's time and scans include \
            theirs; end them, or use a guest"
        );
        note(recorder, Level::Info, text)?;
    }
    if frames.is_none() {
        note(
            recorder,
            Level::Info,
            "the kernel hides frame numbers from this user, so the number of shared frames is unknown; run \
            as root",
        )?;
    }
    Ok(())
}

/// The mapping, its equal pages and the others, in the order of addresses.
fn filled(parameters: &Ksm, recorder: &mut dyn Recorder) -> Result<(Region, Vec<u32>, Vec<u32>)> {
    let pages = parameters.pages;
    let region = Region::base_pages(pages as usize).map_err(failed(&format!("mapping {pages} pages")))?;
    let filler = Filler::default();
    // Apart from what other loads of pagelab's hold, which a guest's may be beside this one.
    let base = (parameters.seed + 1) << 40;
    let (mut equal, mut others) = (Vec::new(), Vec::new());
    for page in 0..pages {
        // Spread evenly over the mapping.
        let so_far = parameters.equal.of(page);
        let content = match parameters.equal.of(page + 1) > so_far {
            true => {
                equal.push(page as u32);
                base + so_far % parameters.contents
            }
            false => {
                others.push(page as u32);
                base + parameters.contents + page
            }
        };
        region.populate_page_as(page as usize, content, &filler);
        if page % 1024 == 0 {
            recorder.progress("populate", page, pages);
        }
    }
    Ok((region, equal, others))
}

/// Has ksmd merge until a whole scan merges no more, or the timeout is over.
fn merge(
    parameters: &Ksm,
    threads: &KernelThreads,
    start: &Counts,
    sheet: &mut Sheet,
    recorder: &mut dyn Recorder,
) -> Result<Merged> {
    let (begun, before) = (Monotonic.now(), threads.time());
    let timeout = (parameters.timeout * 1e9) as u64;
    let spent = || threads.time().zip(before).map(|(now, before)| now - before);
    let mut merged = Merged { time: 0, ksmd: Some(0), scans: 0, settled: false };
    // The most that was merged, and the scan in which that was seen.
    let (mut most, mut last) = (0, 0);
    set("run", "1")?;
    loop {
        std::thread::sleep(POLL_INTERVAL);
        let (now, own, time) = (Counts::read(), own(), Monotonic.now() - begun);
        let scans = now.scans.saturating_sub(start.scans);
        let so_far = own.unwrap_or(now.sharing.saturating_sub(start.sharing));
        if so_far > most {
            (merged.time, merged.ksmd, most, last) = (time, spent(), so_far, scans);
        }
        if scans > merged.scans {
            sheet.row([
                Some(scans as f64),
                Some(time as f64),
                own.map(|pages| pages as f64),
                Some(now.sharing as f64 - start.sharing as f64),
                Some(now.shared as f64 - start.shared as f64),
                spent().map(|time| time as f64),
            ]);
        }
        merged.scans = scans;
        merged.settled = scans >= MIN_SCANS.max(last + 2);
        if merged.settled || time > timeout {
            return Ok(merged);
        }
        recorder.progress("merge", so_far, parameters.equal.of(parameters.pages));
        recorder.check()?;
    }
}

/// Frames that the mapping's pages need less than their number, and frames that several of them lie
/// in; `None` where the kernel shows no frames.
fn frames(region: &Region) -> io::Result<Option<(u64, u64)>> {
    /// Of an entry of pagemap: present, and the frame's number.
    const PRESENT: u64 = 1 << 63;
    const FRAME: u64 = (1 << 55) - 1;
    let mut entries = vec![0; region.pages() * size_of::<u64>()];
    let first = region.range().start / region.page_size() * size_of::<u64>();
    File::open("/proc/self/pagemap")?.read_exact_at(&mut entries, first as u64)?;
    let (entries, _) = entries.as_chunks();
    let present = entries.iter().map(|entry| u64::from_ne_bytes(*entry)).filter(|entry| entry & PRESENT != 0);
    let mut frames: Vec<u64> = present.map(|entry| entry & FRAME).collect();
    frames.sort_unstable();
    if frames.first() == Some(&0) {
        return Ok(None);
    }
    let groups = || frames.chunk_by(|a, b| a == b);
    let shared = groups().filter(|group| group.len() > 1).count();
    Ok(Some(((frames.len() - groups().count()) as u64, shared as u64)))
}

/// What the kernel says merging has saved this process, its own bookkeeping deducted: bytes (Linux
/// 6.4).
fn profit() -> Option<i64> {
    let text = fs::read_to_string("/proc/self/ksm_stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("ksm_process_profit")?.trim().parse().ok())
}

/// Other programs with pages that ksmd knows.
fn other_programs() -> usize {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let known = |folder: &Path| {
        let text = fs::read_to_string(folder.join("ksm_stat")).unwrap_or_default();
        value(&text, "ksm_rmap_items").is_some_and(|items| items > 0)
    };
    let own = std::process::id().to_string();
    // Folders of processes have numbers; this one's is not another's.
    folders
        .filter(|folder| {
            !folder.ends_with(&own) && !folder.ends_with("self") && !folder.ends_with("thread-self")
        })
        .filter(|folder| known(folder))
        .count()
}

/// Pages of this process that are merged, as the kernel counts them for each process (Linux 5.19).
fn own() -> Option<u64> {
    number("/proc/self/ksm_merging_pages")
}

/// Does `work`, which concerns `pages` pages, and adds its row; processor time of a page.
fn cost(
    what: &str,
    sheet: &mut Sheet,
    pages: usize,
    work: impl FnOnce() -> Result<()>,
) -> Result<Option<f64>> {
    let faults = rusage::thread().minor;
    let begun = rusage::thread_time();
    work()?;
    let time = rusage::thread_time() - begun;
    let faults = rusage::thread().minor - faults;
    let each = |whole: u64| (pages > 0).then(|| whole as f64 / pages as f64);
    sheet.named([what], [Some(pages as f64), each(time), each(faults)]);
    Ok(each(time))
}

fn set(file: &str, value: &str) -> Result<()> {
    let path = Path::new(FOLDER).join(file);
    fs::write(&path, value).map_err(failed(&format!("writing {value} to {}", path.display())))
}

fn advise(region: &Region, advice: Advice) -> io::Result<()> {
    // SAFETY: the range is this mapping; neither advice changes what it holds.
    Ok(unsafe { madvise(region.base().cast(), region.bytes(), advice) }?)
}
