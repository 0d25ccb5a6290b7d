//! `unmap`, `mremap` and `populate` on the running kernel.
//!
//! Each round has a mapping of its own, of private anonymous base pages, which is written
//! beforehand where the operation is about pages that are there; then one call is timed, in
//! processor time of the calling thread, which other programs do not lengthen; waiting for other
//! processors to drop their translations is in it, for the kernel spins there. Faults are the
//! thread's own. Sharers are threads of this process that do nothing but run, each on a processor
//! of its own.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use pagelab_experiment::build::{Sheet, median, metric, metrics, note};
use pagelab_experiment::experiments::Addressing;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::tables::operations_cost;
use pagelab_experiment::{MetricId, Recorder, Result};
use pagelab_kernel::affinity::{Pinned, allowed, pin};
use pagelab_kernel::rusage;

use crate::harness::area::{Area, base_pages_only};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;
use crate::harness::processor;

/// An operation: what it is called, the figures of it without sharers and with them, whether its
/// pages are written beforehand, and what is done.
#[derive(Clone, Copy)]
pub struct Operation {
    what: &'static str,
    metric: MetricId,
    shared: Option<MetricId>,
    written: bool,
    done: fn(&mut Area) -> std::io::Result<()>,
}

impl Operation {
    const fn new(
        what: &'static str,
        metric: MetricId,
        shared: Option<MetricId>,
        written: bool,
        done: fn(&mut Area) -> std::io::Result<()>,
    ) -> Self {
        Self { what, metric, shared, written, done }
    }
}

/// The operations of `unmap`.
pub const UNMAP: &[Operation] = &[
    Operation::new("munmap", metrics::UNMAP_MUNMAP, Some(metrics::UNMAP_MUNMAP_SHARED), true, Area::unmap),
    Operation::new(
        "mprotect(PROT_READ)",
        metrics::UNMAP_PROTECT,
        Some(metrics::UNMAP_PROTECT_SHARED),
        true,
        Area::protect,
    ),
    Operation::new("madvise(MADV_DONTNEED)", metrics::UNMAP_DONTNEED, None, true, Area::drop_pages),
    Operation::new("madvise(MADV_FREE)", metrics::UNMAP_FREE, None, true, Area::free),
    Operation::new("madvise(MADV_COLD)", metrics::UNMAP_COLD, None, true, Area::cool),
    Operation::new("madvise(MADV_PAGEOUT)", metrics::UNMAP_PAGEOUT, None, true, Area::page_out),
];

/// The operations of `mremap`.
pub const MREMAP: &[Operation] = &[
    Operation::new("mremap, aligned alike", metrics::MREMAP_ALIGNED, None, true, Area::move_aligned),
    Operation::new(
        "mremap, a page off",
        metrics::MREMAP_MOVE,
        Some(metrics::MREMAP_MOVE_SHARED),
        true,
        Area::move_off,
    ),
];

/// The operations of `populate`.
pub const POPULATE: &[Operation] = &[
    Operation::new(
        "first writes",
        metrics::POPULATE_TOUCH,
        Some(metrics::POPULATE_TOUCH_SHARED),
        false,
        Area::touch,
    ),
    Operation::new("mmap(MAP_POPULATE)", metrics::POPULATE_MAP, None, false, Area::map_populated),
    Operation::new("madvise(MADV_POPULATE_WRITE)", metrics::POPULATE_ADVISE, None, false, Area::populate),
];

/// What the rounds of one operation showed, for each page, and of shootdowns for each operation.
struct Cost {
    median: f64,
    least: f64,
    faults: f64,
    shootdowns: Option<f64>,
}

/// Performs these operations; see the module's comment.
///
/// # Errors
/// When the kernel refuses memory.
pub fn perform(
    parameters: &Addressing,
    operations: &[Operation],
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    context.join()?;
    base_pages_only();
    let processors = allowed().map_err(failed("looking at processors"))?;
    let _processor = Pinned::to(1).map_err(failed("choosing processors"))?;
    let room = (processors.len() - 1).min(parameters.sharers as usize);
    harness.begin();
    let before = rusage::thread_up_to_date();
    let mut sheet = Sheet::new(operations_cost::TABLE);
    let (mut figures, mut refused) = (Vec::new(), Vec::new());
    let steps = operations.len() as u64;
    for (step, operation) in (0..).zip(operations) {
        recorder.progress(operation.what, step, steps);
        recorder.check()?;
        for sharers in [0, parameters.sharers as usize] {
            let last = sharers > 0 || parameters.sharers == 0;
            let cost = match sharers <= room {
                true => with_sharers(&processors[1..=sharers], || rounds(operation, parameters)),
                false => Ok(None),
            };
            let cost = match cost {
                Ok(cost) => cost,
                // A kernel that does not know an advice says so at once.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                    refused.push(operation.what);
                    None
                }
                Err(error) => return Err(failed(operation.what)(error)),
            };
            let of = |figure: fn(&Cost) -> f64| cost.as_ref().map(figure);
            let row = [
                Some(sharers as f64),
                of(|cost| cost.median),
                of(|cost| cost.least),
                of(|cost| cost.faults),
                cost.as_ref().and_then(|cost| cost.shootdowns),
            ];
            let beside = if sharers > 0 { format!(" beside {sharers}") } else { String::new() };
            sheet.named([&format!("{}{beside}", operation.what)], row);
            match sharers {
                0 => figures.push((operation.metric, of(|cost| cost.median))),
                _ => figures.extend(operation.shared.map(|name| (name, of(|cost| cost.median)))),
            }
            if last {
                break;
            }
        }
    }
    let used = rusage::thread_up_to_date() - before;
    let measured = harness.finish();
    measured.record(recorder)?;
    sheet.record(recorder)?;
    for (name, value) in figures {
        metric(recorder, name, value)?;
    }
    metrics(recorder, processor::totals(&used))?;
    if parameters.sharers as usize > room {
        let text = format!(
            "--sharers {} needs as many CPUs in addition to the first; there are {room}",
            parameters.sharers
        );
        note(recorder, Level::Info, text)?;
    }
    if !refused.is_empty() {
        note(recorder, Level::Info, format!("this kernel does not support {}", refused.join(", ")))?;
    }
    Ok(())
}

/// Calls `work` while a thread runs on each of `processors`.
fn with_sharers<T>(processors: &[usize], work: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<T> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let start = |&processor: &usize| {
            let over = &over;
            let spin = move || {
                let _ = pin(processor);
                while !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            };
            std::thread::Builder::new().spawn_scoped(scope, spin).map(drop)
        };
        let done = processors.iter().try_for_each(start).and_then(|()| work());
        over.store(true, Relaxed);
        done
    })
}

/// All rounds of an operation.
fn rounds(operation: &Operation, parameters: &Addressing) -> std::io::Result<Option<Cost>> {
    let pages = parameters.pages as usize;
    let mut times = Vec::with_capacity(parameters.rounds as usize);
    let (mut faults, mut interrupts) = (0, Some(0));
    for _ in 0..parameters.rounds {
        let mut area = Area::new(pages)?;
        if operation.written {
            area.touch()?;
        }
        let told = shootdowns();
        let before = rusage::thread().minor;
        let begun = rusage::thread_time();
        (operation.done)(&mut area)?;
        let time = rusage::thread_time() - begun;
        faults += rusage::thread().minor - before;
        interrupts = interrupts.zip(told.zip(shootdowns())).map(|(sum, (a, b))| sum + b.saturating_sub(a));
        times.push(time as f64 / pages as f64);
    }
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let rounds = f64::from(parameters.rounds);
    Ok(median(times).map(|median| Cost {
        median,
        least,
        faults: faults as f64 / rounds / pages as f64,
        shootdowns: interrupts.map(|sum| sum as f64 / rounds),
    }))
}

/// Interrupts by which processors were told to drop translations, since boot, all processors
/// together: the line `TLB` of /proc/interrupts, which x86 has.
fn shootdowns() -> Option<u64> {
    let text = fs::read_to_string("/proc/interrupts").ok()?;
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    Some(line.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok()).sum())
}
