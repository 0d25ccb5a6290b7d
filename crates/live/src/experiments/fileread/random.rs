//! `fileread`: random reads of a file that is small in memory, large in memory, larger than memory.
//!
//! One file as large as the largest case is written. For each size and way to read, its first bytes
//! are dropped from the cache, read once in order (so that what fits is cached), and then read at
//! random. The processor time is the thread's own, exact; a read through a mapping copies the bytes as
//! pread(2) does. Without `--rate` the reads follow each other and a latency is a read's own; with it
//! each is due at its time and its latency counts from there, however late it was begun.
//!
//! Reading the clock for a latency takes as long as a tenth of a cached read. So without `--rate`
//! the latencies are those of every second block of reads, and the processor time is that of the
//! blocks between, in which no clock is read.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use pagelab_experiment::build::{Distribution, ReadCosts, Sheet, case_names, metric, metrics, note};
use pagelab_experiment::experiments::{Access, Fileread};
use pagelab_experiment::observation::{Histogram, Level};
use pagelab_experiment::{Recorder, Result, metrics, tables};
use pagelab_kernel::page_cache::{self, Cached};
use pagelab_kernel::region::{Region, page_size};
use pagelab_kernel::rusage::{self, Usage};
use pagelab_reference::rng::Rng;
use rustix::fs::{Advice, fadvise};

use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::counters::Counters;
use crate::harness::failure::failed;
use crate::harness::measurement::{Harness, refaults};
use crate::harness::microstates::Whose;
use crate::harness::processor;

/// Not in every libc: the read must not wait.
const RWF_NOWAIT: libc::c_int = 8;

/// Reads in a block, and between two checks of whether to go on.
const BLOCK: u64 = 64;

/// One case's figures.
struct CaseResult {
    reads: u64,
    elapsed: u64,
    /// Processor time of a read.
    cpu: f64,
    used: Usage,
    calls: u64,
    /// Reads that RWF_NOWAIT found in the cache.
    hits: Option<u64>,
    latency: Histogram,
    before: Option<Cached>,
    after: Option<Cached>,
    refaults: Option<f64>,
}

/// Performs every case.
///
/// # Errors
/// When the file cannot be written or read.
pub fn perform(fileread: &Fileread, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    let page = page_size() as u64;
    let read = fileread.read.bytes(page).max(1);
    let sizes = fileread.files().bytes(page);
    let file = super::write("fileread", sizes.last().copied().unwrap_or(page).max(read), context, recorder)?;
    context.join()?;
    harness.watch_tasks();
    harness.begin();
    let mut sheet = Sheet::new(tables::fileread::TABLE);
    let mut headline = ReadCosts::default();
    let mut sums = Usage::default();
    let total = (sizes.len() * fileread.access.len()) as u64;
    let mut done = 0;
    for (&size, name) in sizes.iter().zip(case_names(sizes.len())) {
        for &access in &fileread.access {
            recorder.progress("cases", done, total);
            done += 1;
            let case = Case { fileread, file: &file, size: size.max(read), read, access, context };
            let Some(seen) = case.perform(recorder)? else {
                note(
                    recorder,
                    Level::Info,
                    "preadv2 with RWF_NOWAIT is refused by this file system or kernel (4.14 and later): hits are not counted",
                )?;
                continue;
            };
            headline.add(fileread, name, access, seen.cpu);
            sums += seen.used;
            row(&mut sheet, &format!("{name} {access}"), size, &seen);
        }
    }
    sheet.record(recorder)?;
    let mut measured = harness.finish();
    measured.record(recorder)?;
    metrics(recorder, headline.figures())?;
    metrics(recorder, processor::figures(&sums))?;
    for (name, value) in [
        (metrics::FAULTS_MINOR, sums.minor),
        (metrics::FAULTS_MAJOR, sums.major),
        (metrics::IO_READ, sums.read),
    ] {
        metric(recorder, name, Some(value as f64))?;
    }
    measured.states(Whose::Everybody, None, recorder)
}

fn row(sheet: &mut Sheet, name: &str, size: u64, seen: &CaseResult) {
    let bytes = |pages: u64| (pages * page_size() as u64) as f64;
    let reads = seen.reads as f64;
    let [user, system] = processor::parts(seen.used.user as f64, seen.used.system as f64);
    sheet.named(
        [name],
        [
            Some(size as f64),
            Some(reads),
            Some(seen.cpu),
            Some(seen.elapsed as f64 / reads),
            seen.latency.quantile(0.5).map(|v| v as f64),
            seen.latency.quantile(0.99).map(|v| v as f64),
            user,
            system,
            Some(seen.calls as f64),
            seen.hits.map(|hits| hits as f64 / reads),
            Some(seen.used.minor as f64),
            Some(seen.used.major as f64),
            Some(seen.used.read as f64),
            seen.before.map(|c| bytes(c.pages)),
            seen.after.map(|c| bytes(c.pages)),
            seen.after.and_then(|c| c.recently_evicted).map(bytes),
            seen.refaults,
        ],
    );
}

struct Case<'a> {
    fileread: &'a Fileread,
    file: &'a File,
    size: u64,
    read: u64,
    access: Access,
    context: &'a ExecutionContext,
}

impl Case<'_> {
    /// `None` when this way to read is refused here.
    fn perform(&self, recorder: &mut dyn Recorder) -> Result<Option<CaseResult>> {
        self.warm(recorder)?;
        let region = match self.access {
            Access::Mmap => {
                let pages = (self.size as usize).div_ceil(page_size());
                Some(Region::part(self.file, 0, pages).map_err(failed("mapping the file"))?)
            }
            _ => None,
        };
        let mut buffer = vec![0_u8; self.read as usize];
        let places = (self.size / self.read).max(1);
        let mut rng = Rng::new(self.fileread.seed);
        let mut latency = Distribution::new();
        let mut counters = Counters::open(self.context.memory_stat.as_deref());
        let before = page_cache::of(self.file, self.size);
        counters.before();
        let deadline = Instant::now() + Duration::from_secs_f64(self.fileread.seconds.clamp(0.01, 3600.0));
        let interval = self.fileread.rate.filter(|&rate| rate > 0.0).map(|rate| 1e9 / rate);
        let (used, cpu, begun) = (rusage::thread_up_to_date(), rusage::thread_time(), Monotonic.now());
        let (mut reads, mut calls, mut hits) = (0, 0, 0);
        let mut untimed = Untimed::default();
        while reads < self.fileread.reads.max(1) {
            let due = match interval {
                None if reads / BLOCK % 2 == 1 => None,
                None => Some(Monotonic.now()),
                Some(interval) => Some(wait(begun + (reads as f64 * interval) as u64)),
            };
            let at = rng.below(places) * self.read;
            match self.once(at, &mut buffer, region.as_ref()) {
                Ok(once) => {
                    calls += once.calls;
                    hits += u64::from(once.hit);
                }
                Err(error)
                    if self.access == Access::Nowait && error.raw_os_error() == Some(libc::EOPNOTSUPP) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(failed("reading the file")(error)),
            }
            due.into_iter().for_each(|due| latency.record(Monotonic.now() - due));
            reads += 1;
            if reads % BLOCK == 0 {
                untimed.border(interval.is_none() && reads / BLOCK % 2 == 1);
                if Instant::now() > deadline {
                    break;
                }
                recorder.check()?;
            }
        }
        let elapsed = Monotonic.now() - begun;
        let (cpu, used) = (rusage::thread_time() - cpu, rusage::thread_up_to_date() - used);
        let cpu = untimed.each().unwrap_or(cpu as f64 / reads as f64);
        Ok(Some(CaseResult {
            reads,
            elapsed,
            cpu,
            used,
            calls,
            hits: (self.access == Access::Nowait).then_some(hits),
            latency: latency.histogram("read"),
            before,
            after: page_cache::of(self.file, self.size),
            refaults: refaults(&counters.after(), "workingset_refault_file"),
        }))
    }

    /// The first bytes out of the cache, and read once in order.
    fn warm(&self, recorder: &mut dyn Recorder) -> Result<()> {
        use std::os::unix::fs::FileExt;
        fadvise(self.file, 0, None, Advice::DontNeed)
            .map_err(|e| failed("dropping the file from the cache")(e.into()))?;
        let mut buffer = vec![0; 1 << 20];
        let mut at = 0;
        while at < self.size {
            let wanted = buffer.len().min((self.size - at) as usize);
            match self.file.read_at(&mut buffer[..wanted], at).map_err(failed("reading the file"))? {
                0 => break,
                read => at += read as u64,
            }
            recorder.check()?;
        }
        Ok(())
    }

    fn once(&self, at: u64, buffer: &mut [u8], region: Option<&Region>) -> std::io::Result<Once> {
        use std::os::unix::fs::FileExt;
        match (self.access, region) {
            (Access::Mmap, Some(region)) => {
                // SAFETY: `at` and the bytes after it lie in the mapping, which covers the file's
                // first bytes; nobody writes the scratch file now.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        region.base().add(at as usize),
                        buffer.as_mut_ptr(),
                        buffer.len(),
                    );
                }
                std::hint::black_box(&buffer[0]);
                Ok(Once { calls: 0, hit: false })
            }
            (Access::Nowait, _) => {
                let vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
                // SAFETY: one vector over the buffer, both alive.
                let read = unsafe {
                    libc::preadv2(self.file.as_raw_fd(), &raw const vector, 1, at as libc::off_t, RWF_NOWAIT)
                };
                match usize::try_from(read) {
                    Ok(read) if read == buffer.len() => return Ok(Once { calls: 1, hit: true }),
                    Ok(_) => {}
                    Err(_) => {
                        let error = std::io::Error::last_os_error();
                        if error.kind() != std::io::ErrorKind::WouldBlock {
                            return Err(error);
                        }
                    }
                }
                self.file.read_exact_at(buffer, at)?;
                Ok(Once { calls: 2, hit: false })
            }
            _ => {
                self.file.read_exact_at(buffer, at)?;
                Ok(Once { calls: 1, hit: false })
            }
        }
    }
}

/// Processor time of whole blocks in which no latency is taken.
#[derive(Default)]
struct Untimed {
    begun: Option<u64>,
    cpu: u64,
    blocks: u64,
}

impl Untimed {
    /// Between two blocks, the next of which is untimed or not.
    fn border(&mut self, next: bool) {
        if let Some(begun) = self.begun.take() {
            self.cpu += rusage::thread_time() - begun;
            self.blocks += 1;
        }
        self.begun = next.then(rusage::thread_time);
    }

    /// Of one read; `None` without such a block.
    fn each(&self) -> Option<f64> {
        (self.blocks > 0).then(|| self.cpu as f64 / (self.blocks * BLOCK) as f64)
    }
}

struct Once {
    calls: u64,
    hit: bool,
}

/// Sleeps, and at the end spins, until the monotonic clock shows `due`; that.
fn wait(due: u64) -> u64 {
    loop {
        let left = due.saturating_sub(Monotonic.now());
        match left {
            0 => return due,
            _ if left > 200_000 => std::thread::sleep(Duration::from_nanos(left - 100_000)),
            _ => std::hint::spin_loop(),
        }
    }
}
