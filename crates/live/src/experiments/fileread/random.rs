//! `fileread`: random reads of a file that is small in memory, large in memory, larger than memory.
//!
//! One file as large as the largest case is written, or several files of equal size. For each size
//! and way to read, their first bytes are dropped from the cache, read once in order (so that what
//! fits is cached), and then read at random. The processor time is the thread's own, exact; a read
//! through a mapping copies the bytes as pread(2) does. Without `--rate` the reads follow each
//! other and a latency is a read's own; with it each is due at its time and its latency counts from
//! there, however late it was begun.
//!
//! Reading the clock for a latency takes as long as a tenth of a cached read. So without `--rate`
//! the latencies are those of every second block of reads, and the processor time is that of the
//! blocks between, in which no clock is read.
//!
//! With io_uring up to `--depth` reads are in flight, and a latency lasts from the submission to the
//! completion. The kernel may read in a thread of its own that belongs to this process, so the
//! processor time is then the process's.
//!
//! With `--writes` and `--sequential`, a draw per read decides whether it writes instead, and whether
//! it follows the previous one. Places are numbered through all files ([`Places`]).

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use pagelab_experiment::build::{Distribution, ReadCosts, Sheet, case_names, metric, metrics, note};
use pagelab_experiment::experiments::{Access, Fileread, Places};
use pagelab_experiment::observation::{Histogram, Level};
use pagelab_experiment::{Recorder, Result, metrics, tables};
use pagelab_kernel::lifetime::allow_open_files;
use pagelab_kernel::page_cache::{self, Cached};
use pagelab_kernel::region::{Region, forget, page_size};
use pagelab_kernel::rusage::{self, Usage};
use pagelab_kernel::submission::{Direction, Queue};
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
    /// Of these, writes; `None` without `--writes`.
    writes: Option<u64>,
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
    let sizes = fileread.case_sizes().bytes(page);
    let files = write_files(fileread, sizes.last().copied().unwrap_or(page), context, recorder)?;
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
            let places = fileread.places(size, page);
            let case = Case { fileread, files: &files, places, access, context };
            let seen = match case.perform(recorder)? {
                Ok(seen) => seen,
                Err(refused) => {
                    note(recorder, Level::Info, refused.note())?;
                    continue;
                }
            };
            headline.add(fileread, name, access, seen.cpu);
            sums += seen.used;
            row(&mut sheet, &format!("{name} {access}"), places.files * places.file_bytes(), &seen);
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

/// A file of the load.
struct OpenFile {
    file: File,
    /// The same file, opened with O_DIRECT; `None` if the file system refuses it.
    direct: Option<File>,
}

/// Writes the files that the case of `size` bytes reads, which have the same size. Only the last
/// one keeps its name; the others end with this process.
fn write_files(
    fileread: &Fileread,
    size: u64,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<Vec<OpenFile>> {
    let path = context.scratch("fileread")?;
    let places = fileread.places(size, page_size() as u64);
    let bytes = if places.files == 1 { size.max(places.read) } else { places.file_bytes() };
    let is_direct = fileread.access.iter().any(|access| access.is_direct());
    if places.files > 1 {
        allow_open_files().map_err(failed("raising the limit of open files"))?;
    }
    let mut files = Vec::new();
    for number in 0..places.files {
        if number > 0 {
            std::fs::remove_file(path).map_err(failed("removing the name of a file"))?;
        }
        let file = super::write("fileread", bytes, context, recorder)?;
        let direct = || OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path);
        files.push(OpenFile { file, direct: is_direct.then(direct).and_then(std::io::Result::ok) });
    }
    Ok(files)
}

/// What the kernel or the file system refuses.
#[derive(Clone, Copy)]
enum Refused {
    Direct,
    Nowait,
    IoUring,
}

impl Refused {
    /// The note on it.
    fn note(self) -> &'static str {
        match self {
            Self::Direct => {
                "O_DIRECT is refused by this file system; name a folder on another with PAGELAB_SCRATCH_DIR"
            }
            Self::Nowait => {
                "preadv2 with RWF_NOWAIT is refused by this file system or kernel (4.14 and later): hits are \
                 not counted"
            }
            Self::IoUring => super::NO_IO_URING,
        }
    }
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
            seen.writes.map(|writes| writes as f64),
            Some(seen.cpu),
            Some(seen.elapsed as f64 / reads),
            seen.latency.quantile(0.5).map(|v| v as f64),
            seen.latency.quantile(0.99).map(|v| v as f64),
            user,
            system,
            Some(seen.calls as f64),
            seen.hits.map(|hits| hits as f64 / (seen.reads - seen.writes.unwrap_or(0)) as f64),
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
    files: &'a [OpenFile],
    places: Places,
    access: Access,
    context: &'a ExecutionContext,
}

impl Case<'_> {
    /// The case's figures, or what is refused here.
    fn perform(&self, recorder: &mut dyn Recorder) -> Result<std::result::Result<CaseResult, Refused>> {
        self.warm(recorder)?;
        let regions = match self.access {
            Access::Mmap => self.files.iter().map(|file| self.map(file)).collect::<Result<Vec<_>>>()?,
            _ if self.access.is_direct() && self.files.iter().any(|file| file.direct.is_none()) => {
                return Ok(Err(Refused::Direct));
            }
            _ => Vec::new(),
        };
        let has_writes = !self.fileread.write_share().is_none();
        let Places { read, .. } = self.places;
        // O_DIRECT requires alignment to the device's blocks, which are at most a page.
        let mut bytes = vec![0_u8; read as usize + page_size()];
        let start = match self.access {
            Access::Direct => bytes.as_ptr().align_offset(page_size()),
            _ => 0,
        };
        let buffer = &mut bytes[start..start + read as usize];
        let mut queue = match self.access.is_queued() {
            true => match Queue::open(self.fileread.in_flight(), read as usize) {
                Err(error) if Queue::<Option<u64>>::is_refused(&error) => return Ok(Err(Refused::IoUring)),
                opened => Some(opened.map_err(failed("opening an io_uring"))?),
            },
            false => None,
        };
        let consumption = Consumption { of_process: self.access.is_queued() };
        let places = self.places.total();
        let mut rng = Rng::new(self.fileread.seed);
        let mut latency = Distribution::new();
        let mut counters = Counters::open(self.context.memory_stat.as_deref());
        let before = self.cached();
        counters.before();
        let deadline = Instant::now() + Duration::from_secs_f64(self.fileread.seconds.clamp(0.01, 3600.0));
        let interval = self.fileread.rate.filter(|&rate| rate > 0.0).map(|rate| 1e9 / rate);
        let (used, cpu, begun) = (consumption.used(), consumption.time(), Monotonic.now());
        let (mut reads, mut writes, mut calls, mut hits) = (0, 0, 0, 0);
        let (mut writing, mut in_order) = self.fileread.drawn();
        let mut place = 0;
        let mut untimed = Untimed { consumption, ..Untimed::default() };
        let mut record =
            |due: Option<u64>| due.into_iter().for_each(|due| latency.record(Monotonic.now() - due));
        while reads < self.fileread.reads.max(1) {
            let due = match interval {
                None if reads / BLOCK % 2 == 1 => None,
                None => Some(Monotonic.now()),
                Some(interval) => Some(wait(begun + (reads as f64 * interval) as u64)),
            };
            place = if in_order.draw() { (place + 1) % places } else { rng.below(places) };
            let (number, at) = self.places.of(place);
            let (file, region, write) = (&self.files[number], regions.get(number), writing.draw());
            let once = match (&mut queue, write) {
                (Some(queue), _) => self.submit(queue, file, (at, write), due, &mut record),
                (None, true) => self.write(file, at, buffer, region).inspect(|_| record(due)),
                (None, false) => self.once(file, at, buffer, region).inspect(|_| record(due)),
            };
            match once {
                Ok(once) => {
                    calls += once.calls;
                    hits += u64::from(once.hit);
                    writes += u64::from(write);
                }
                Err(error) => match (self.access, error.raw_os_error()) {
                    (Access::Nowait, Some(libc::EOPNOTSUPP)) => return Ok(Err(Refused::Nowait)),
                    // Kernels without the operation answer with it too.
                    (Access::IoUring, Some(libc::EINVAL)) => return Ok(Err(Refused::IoUring)),
                    (Access::Direct | Access::IoUringDirect, Some(libc::EINVAL)) => {
                        return Ok(Err(Refused::Direct));
                    }
                    _ if write => return Err(failed("writing the file")(error)),
                    _ => return Err(failed("reading the file")(error)),
                },
            }
            reads += 1;
            if reads % BLOCK == 0 {
                untimed.border(interval.is_none() && reads / BLOCK % 2 == 1);
                if Instant::now() > deadline {
                    break;
                }
                recorder.check()?;
            }
        }
        if let Some(queue) = &mut queue {
            queue.finish(&mut record).map_err(failed("reading the file"))?;
            calls = queue.calls();
        }
        let elapsed = Monotonic.now() - begun;
        let (cpu, used) = (consumption.time() - cpu, consumption.used() - used);
        let cpu = untimed.each().unwrap_or(cpu as f64 / reads as f64);
        Ok(Ok(CaseResult {
            reads,
            writes: has_writes.then_some(writes),
            elapsed,
            cpu,
            used,
            calls,
            hits: (self.access == Access::Nowait).then_some(hits),
            latency: latency.histogram("read"),
            before,
            after: self.cached(),
            refaults: refaults(&counters.after(), "workingset_refault_file"),
        }))
    }

    /// Maps the bytes of a file that the case reads.
    fn map(&self, file: &OpenFile) -> Result<Region> {
        let pages = (self.places.file_bytes() as usize).div_ceil(page_size());
        let mapped = match self.fileread.write_share().is_none() {
            true => Region::part(&file.file, 0, pages),
            false => Region::file(&file.file, pages),
        };
        mapped.map_err(failed("mapping the file"))
    }

    /// The cached pages of all files; `None` if the kernel does not report them.
    fn cached(&self) -> Option<Cached> {
        let of = |file: &OpenFile| page_cache::of(&file.file, self.places.file_bytes());
        let sum = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| one + other);
        let all = self.files.iter().map(of).reduce(|sums, next| {
            let (sums, next) = (sums?, next?);
            Some(Cached {
                pages: sums.pages + next.pages,
                dirty: sum(sums.dirty, next.dirty),
                writeback: sum(sums.writeback, next.writeback),
                recently_evicted: sum(sums.recently_evicted, next.recently_evicted),
            })
        });
        all.flatten()
    }

    /// Drops the files from the cache, and reads the bytes of the case once, in order.
    fn warm(&self, recorder: &mut dyn Recorder) -> Result<()> {
        let (size, mut buffer) = (self.places.file_bytes(), vec![0; 1 << 20]);
        for OpenFile { file, .. } in self.files {
            // Dirty pages stay in the cache, so the pages that a case wrote are written back first.
            let dropped = match self.fileread.write_share().is_none() {
                true => fadvise(file, 0, None, Advice::DontNeed).map_err(Into::into),
                false => forget(file),
            };
            dropped.map_err(failed("dropping the file from the cache"))?;
        }
        for OpenFile { file, .. } in self.files {
            let mut at = 0;
            while at < size {
                let wanted = buffer.len().min((size - at) as usize);
                match file.read_at(&mut buffer[..wanted], at).map_err(failed("reading the file"))? {
                    0 => break,
                    read => at += read as u64,
                }
                recorder.check()?;
            }
        }
        Ok(())
    }

    /// Writes the data of the last read.
    fn write(&self, of: &OpenFile, at: u64, buffer: &[u8], region: Option<&Region>) -> std::io::Result<Once> {
        let file = match (self.access, region) {
            (Access::Mmap, Some(region)) => {
                // SAFETY: as in `once`; the mapping is writable if there are writes.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        buffer.as_ptr(),
                        region.base().add(at as usize),
                        buffer.len(),
                    );
                }
                return Ok(Once { calls: 0, hit: false });
            }
            (Access::Direct, _) => of.direct.as_ref().unwrap_or(&of.file),
            _ => &of.file,
        };
        file.write_all_at(buffer, at)?;
        Ok(Once { calls: 1, hit: false })
    }

    /// Submits a read or write of the place at this offset; `due` is the tag.
    fn submit(
        &self,
        queue: &mut Queue<Option<u64>>,
        of: &OpenFile,
        (at, write): (u64, bool),
        due: Option<u64>,
        record: &mut impl FnMut(Option<u64>),
    ) -> std::io::Result<Once> {
        let file = of.direct.as_ref().filter(|_| self.access.is_direct()).unwrap_or(&of.file);
        let direction = if write { Direction::Write } else { Direction::Read };
        queue.submit(file, (direction, at, self.places.read as usize), due, record)?;
        // The queue counts its calls.
        Ok(Once { calls: 0, hit: false })
    }

    fn once(
        &self,
        of: &OpenFile,
        at: u64,
        buffer: &mut [u8],
        region: Option<&Region>,
    ) -> std::io::Result<Once> {
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
                    libc::preadv2(of.file.as_raw_fd(), &raw const vector, 1, at as libc::off_t, RWF_NOWAIT)
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
                of.file.read_exact_at(buffer, at)?;
                Ok(Once { calls: 2, hit: false })
            }
            (Access::Direct, _) => {
                of.direct.as_ref().unwrap_or(&of.file).read_exact_at(buffer, at)?;
                Ok(Once { calls: 1, hit: false })
            }
            _ => {
                of.file.read_exact_at(buffer, at)?;
                Ok(Once { calls: 1, hit: false })
            }
        }
    }
}

/// Whose consumption counts: the thread's, or the whole process's.
#[derive(Clone, Copy, Default)]
struct Consumption {
    of_process: bool,
}

impl Consumption {
    fn used(self) -> Usage {
        if self.of_process { rusage::process_up_to_date() } else { rusage::thread_up_to_date() }
    }

    /// Processor time, ns.
    fn time(self) -> u64 {
        if self.of_process { rusage::process_time() } else { rusage::thread_time() }
    }
}

/// Processor time of whole blocks in which no latency is taken.
#[derive(Default)]
struct Untimed {
    consumption: Consumption,
    begun: Option<u64>,
    cpu: u64,
    blocks: u64,
}

impl Untimed {
    /// Between two blocks, the next of which is untimed or not.
    fn border(&mut self, next: bool) {
        if let Some(begun) = self.begun.take() {
            self.cpu += self.consumption.time() - begun;
            self.blocks += 1;
        }
        self.begun = next.then(|| self.consumption.time());
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
