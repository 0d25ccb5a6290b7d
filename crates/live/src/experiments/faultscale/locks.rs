//! Who waits for which lock of the kernel, and where: the tracepoints lock:contention_begin and _end,
//! and those of the mmap lock.
//!
//! A wait is from a thread's begin to its next end. The kernel does not name its locks; a lock is
//! named by its kind and the function that wanted it: the innermost of the call chain that is not
//! itself one of the locking functions. The mmap lock is named: its own tracepoints surround every
//! taking of it, of which those of more than ten microseconds count as waits (the tracepoints
//! themselves take one or two).

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use pagelab_kernel::perf::profile::{common_type, number_at, place, type_of};
use pagelab_kernel::perf::symbols::Symbols;
use pagelab_kernel::perf::{Profile, Sampling};

const BEGIN: &str = "lock:contention_begin";
const END: &str = "lock:contention_end";
const MMAP_BEGIN: &str = "mmap_lock:mmap_lock_start_locking";
const MMAP_END: &str = "mmap_lock:mmap_lock_acquire_returned";
/// A taking of the mmap lock from here on is a wait, ns.
const MMAP_WAIT: u64 = 10_000;

/// Parts of the names of functions that are locking itself.
const LOCKING: &[&str] = &[
    "lock_slowpath",
    "rwsem_",
    "_spin_lock",
    "mutex_lock",
    "down_read",
    "down_write",
    "__traceiter",
    "trace_",
    "perf_",
    "_raw_read_lock",
    "_raw_write_lock",
    "percpu_down",
    "__mmap_lock",
    "rt_mutex",
    "bpf_",
    "lock_mm_and_find_vma",
    "folio_lruvec_lock",
    "osq_lock",
    "__down",
];

/// Waits of a crew.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    pub(super) workers: u32,
    /// Wall time of all workers together, ns.
    pub(super) wall: f64,
    /// Lock and function, waits, ns in all; the longest first.
    pub(super) rows: Vec<(String, u64, u64)>,
    /// ns in all, what lies within a wait for the mmap lock counted once.
    waited: u64,
}

impl Waits {
    /// The share of all workers' wall time that waited.
    pub(super) fn share(&self) -> f64 {
        self.waited as f64 / self.wall
    }
}

/// Lock events that are being taken.
pub(super) struct Taking(Sampling);

impl Taking {
    /// Begins.
    pub(super) fn start() -> io::Result<Self> {
        let with_mmap = Sampling::tracepoints(&[BEGIN, END, MMAP_BEGIN, MMAP_END]);
        with_mmap.or_else(|_| Sampling::tracepoints(&[BEGIN, END])).map(Self)
    }

    pub(super) fn poll(&mut self) {
        self.0.poll();
    }

    /// Ends; `elapsed` is what each of the workers worked, and each of `others` beside them.
    pub(super) fn finish(self, workers: u32, others: u32, elapsed: Duration) -> Waits {
        let profile = self.0.finish(&[]);
        let symbols = Symbols::read();
        let wall = f64::from(workers + others) * elapsed.as_nanos() as f64;
        let (rows, waited) = rows(&profile, symbols.as_ref(), &Format::read());
        Waits { workers, wall, rows, waited }
    }
}

/// Where the kernel puts what in its records.
#[derive(Clone, Debug, Default)]
struct Format {
    begin: Option<u64>,
    end: Option<u64>,
    mmap_begin: Option<u64>,
    mmap_end: Option<u64>,
    flags: Option<(usize, usize)>,
}

impl Format {
    fn read() -> Self {
        Self {
            begin: type_of(BEGIN),
            end: type_of(END),
            mmap_begin: type_of(MMAP_BEGIN),
            mmap_end: type_of(MMAP_END),
            flags: place(BEGIN, "flags"),
        }
    }
}

/// The kind of a lock by the flags of lock:contention_begin (include/trace/events/lock.h).
fn kind(flags: u64) -> &'static str {
    const SPIN: u64 = 1;
    const READ: u64 = 2;
    const WRITE: u64 = 4;
    const PERCPU: u64 = 16;
    const MUTEX: u64 = 32;
    match flags {
        _ if flags & MUTEX != 0 => "mutex",
        _ if flags & PERCPU != 0 => "percpu-rwsem",
        _ if flags & SPIN != 0 && flags & (READ | WRITE) != 0 => "rwlock",
        _ if flags & SPIN != 0 => "spinlock",
        _ if flags & READ != 0 => "rwsem (read)",
        _ if flags & WRITE != 0 => "rwsem (write)",
        _ => "other",
    }
}

/// The rows of [`Waits`], and what waited in all.
fn rows(profile: &Profile, symbols: Option<&Symbols>, format: &Format) -> (Vec<(String, u64, u64)>, u64) {
    let function = |chain: &[u64]| -> String {
        let Some(symbols) = symbols else { return "[symbols hidden]".into() };
        let names = || chain.iter().map(|&address| symbols.name(address));
        let wanted = names().find(|name| !LOCKING.iter().any(|part| name.contains(part)));
        wanted.or_else(|| names().next()).unwrap_or("[unknown]").to_owned()
    };
    let mut open: HashMap<(u32, bool), (u64, String)> = HashMap::new();
    let mut waits: HashMap<String, (u64, u64)> = HashMap::new();
    let mut total = 0;
    for sample in &profile.samples {
        let is = |kind: Option<u64>| kind.is_some() && common_type(&sample.raw) == kind;
        if is(format.begin) || is(format.mmap_begin) {
            let mmap = is(format.mmap_begin);
            let flags = format.flags.and_then(|(at, size)| number_at(&sample.raw, at, size)).unwrap_or(0);
            let what = if mmap { "mmap_lock" } else { kind(flags) };
            open.insert(
                (sample.thread, mmap),
                (sample.time, format!("{what} in {}", function(&sample.chain))),
            );
        } else if is(format.end) || is(format.mmap_end) {
            let mmap = is(format.mmap_end);
            let Some((begun, name)) = open.remove(&(sample.thread, mmap)) else { continue };
            let waited = sample.time.saturating_sub(begun);
            if mmap && waited < MMAP_WAIT {
                continue;
            }
            // A writer of the mmap lock spins before it says that it contends: its own events tell all
            // of the wait, and what contends meanwhile lies within.
            if mmap || !open.contains_key(&(sample.thread, true)) {
                total += waited;
            }
            let row = waits.entry(name).or_default();
            *row = (row.0 + 1, row.1 + waited);
        }
    }
    let mut rows: Vec<_> = waits.into_iter().map(|(name, (count, time))| (name, count, time)).collect();
    rows.sort_by(|a, b| (b.2, &a.0).cmp(&(a.2, &b.0)));
    (rows, total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_kernel::perf::profile::Sample;

    #[test]
    fn a_wait_is_from_a_threads_begin_to_its_end() {
        let format = Format {
            begin: Some(1),
            end: Some(2),
            mmap_begin: Some(3),
            mmap_end: Some(4),
            flags: Some((8, 4)),
        };
        let sample = |thread, time, kind: u8, flags: u8| {
            let mut raw = vec![0; 12];
            (raw[0], raw[8]) = (kind, flags);
            Sample { thread, time, chain: Vec::new(), raw }
        };
        let samples = vec![
            sample(1, 10, 1, 32),
            sample(2, 20, 1, 32),
            sample(1, 110, 2, 0),
            sample(2, 320, 2, 0),
            // An end without a begin, a quick taking of the mmap lock, and a wait for it that contends.
            sample(3, 400, 2, 0),
            sample(1, 500, 3, 0),
            sample(1, 900, 4, 0),
            sample(1, 1000, 3, 0),
            sample(1, 4000, 1, 4),
            sample(1, 8000, 2, 0),
            sample(1, 21_000, 4, 0),
        ];
        let (rows, waited) = rows(&Profile { samples, lost: 0 }, None, &format);
        let name = |kind: &str| format!("{kind} in [symbols hidden]");
        assert_eq!(
            rows,
            [(name("mmap_lock"), 1, 20_000), (name("rwsem (write)"), 1, 4000), (name("mutex"), 2, 400),]
        );
        let waits = Waits { workers: 2, wall: 204_000.0, rows, waited };
        assert!((waits.share() - 0.1).abs() < 1e-12, "what lies within is counted once");
    }

    #[test]
    fn kinds() {
        assert_eq!(
            (kind(1), kind(3), kind(2), kind(4), kind(32), kind(0)),
            ("spinlock", "rwlock", "rwsem (read)", "rwsem (write)", "mutex", "other")
        );
    }
}
