//! `seqread`: sequential bandwidth against the transfer size: through the cache, through a mapping,
//! around the cache, and with several reads in flight by io_uring.
//!
//! The file is dropped from the cache before each row, so every byte comes from the device. It is
//! read once before the first row: the host of a virtual disk may cache the file, and would then
//! serve the first row more slowly than the others. The device's own counters show its work. They
//! count the reads of all programs, so they are a dash in a row in which the device read more than
//! this thread did.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use pagelab_experiment::build::{Sheet, metric, metrics, note};
use pagelab_experiment::experiments::{Access, Seqread};
use pagelab_experiment::metrics::MetricId;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Recorder, Result, metrics, tables};
use pagelab_kernel::block_device::{Counted, Device};
use pagelab_kernel::region::{Region, page_size};
use pagelab_kernel::rusage::{self, Usage};
use pagelab_kernel::submission::{Direction, MAX_TRANSFER, Queue};
use rustix::fs::{Advice, fadvise};

use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;
use crate::harness::microstates::Whose;
use crate::harness::processor;

/// What one row saw.
struct RowResult {
    bytes: u64,
    elapsed: Duration,
    used: Usage,
    device: Option<Counted>,
    /// Whether the device read for others too.
    shared: bool,
}

/// Performs the sweep over transfer sizes, by each way to read.
///
/// # Errors
/// When the file cannot be written or read.
pub fn perform(seqread: &Seqread, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    let page = page_size() as u64;
    let transfers = seqread.transfers.bytes(page);
    let most = transfers.last().copied().unwrap_or(page);
    let buffered = super::write("seqread", seqread.size.bytes(page).max(page), context, recorder)?;
    let path = context.scratch("seqread")?;
    let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
    context.join()?;
    let device = Device::of(&buffered);
    // Aligned to a page, as O_DIRECT wants it.
    let buffer = Region::anonymous(most as usize / page_size()).map_err(failed("mapping the buffer"))?;
    buffer.populate(|_, _| {});
    read_once(&buffered, limit(seqread), recorder)?;
    harness.watch_tasks();
    harness.begin();
    let mut sheet = Sheet::new(tables::seqread::TABLE);
    let mut sums = Usage::default();
    let mut bandwidths: Vec<(MetricId, Vec<f64>)> = Vec::new();
    let mut no_queue = false;
    let mut shared = 0;
    for (number, &access) in seqread.access.iter().enumerate() {
        let (mode, best) = access.seqread_mode();
        let file = if access.is_direct() { direct.as_ref() } else { Ok(&buffered) };
        let Ok(file) = file else { continue };
        let load = Load { seqread, file, access, cached: &buffered, buffer: &buffer };
        let mut found = Vec::new();
        for (n, &transfer) in transfers.iter().enumerate() {
            let done = number * transfers.len() + n;
            recorder.progress("transfers", done as u64, (seqread.access.len() * transfers.len()) as u64);
            let Some(seen) = load.read(transfer, device.as_ref(), recorder)? else {
                no_queue = true;
                break;
            };
            sums += seen.used;
            shared += u32::from(seen.shared);
            let bandwidth = seen.bytes as f64 / seen.elapsed.as_secs_f64();
            found.push(bandwidth);
            row(&mut sheet, mode, transfer, &seen, bandwidth);
        }
        bandwidths.push((best, found));
    }
    sheet.record(recorder)?;
    let mut measured = harness.finish();
    measured.record(recorder)?;
    metrics(recorder, bandwidths.into_iter().map(|(best, found)| best.over(found)))?;
    metrics(recorder, processor::figures(&sums))?;
    metric(recorder, metrics::IO_READ, Some(sums.read as f64))?;
    if no_queue {
        note(recorder, Level::Info, super::NO_IO_URING)?;
    }
    if let (true, Err(error)) = (seqread.access.iter().any(|access| access.is_direct()), direct) {
        note(
            recorder,
            Level::Info,
            format!(
                "O_DIRECT is refused by this file system ({error}); name a folder on another with PAGELAB_SCRATCH_DIR"
            ),
        )?;
    }
    if shared > 0 {
        note(
            recorder,
            Level::Info,
            format!(
                "other programs read from the device in {shared} rows, so the device's figures of those \
                rows are missing; repeat on an idle disk"
            ),
        )?;
    }
    if device.is_none() {
        note(
            recorder,
            Level::Info,
            "the file's device has no counters of its own; name a folder on a disk with PAGELAB_SCRATCH_DIR",
        )?;
    }
    measured.states(Whose::Everybody, None, recorder)
}

/// The most time for a row.
fn limit(seqread: &Seqread) -> Duration {
    Duration::from_secs_f64(seqread.seconds.clamp(0.01, 3600.0))
}

/// Reads the file from the device, up to its end or for `limit`.
fn read_once(file: &File, limit: Duration, recorder: &mut dyn Recorder) -> Result<()> {
    let (mut buffer, mut at, begun) = (vec![0; 1 << 20], 0, Instant::now());
    while begun.elapsed() < limit {
        recorder.check()?;
        match file.read_at(&mut buffer, at).map_err(failed("reading the file"))? {
            0 => break,
            read => at += read as u64,
        }
    }
    Ok(())
}

fn row(sheet: &mut Sheet, mode: &str, transfer: u64, seen: &RowResult, bandwidth: f64) {
    let device = seen.device.filter(|_| !seen.shared);
    let each = |of: fn(&Counted) -> f64| device.filter(|d| d.reads > 0).map(|d| of(&d) / d.reads as f64);
    let elapsed = seen.elapsed.as_nanos() as f64;
    let [user, system] = processor::parts(seen.used.user as f64, seen.used.system as f64);
    sheet.named(
        [mode],
        [
            Some(transfer as f64),
            Some(bandwidth),
            Some(seen.bytes as f64),
            Some(elapsed),
            user,
            system,
            device.map(|d| d.reads as f64),
            each(|d| d.bytes as f64),
            each(|d| d.busy as f64 * 1e6),
            each(|d| d.waiting as f64 * 1e6),
            device.map(|d| (d.busy as f64 * 1e6 / elapsed).min(1.0)),
        ],
    );
}

/// One way to read the file.
struct Load<'a> {
    seqread: &'a Seqread,
    file: &'a File,
    access: Access,
    /// The same file, opened without O_DIRECT.
    cached: &'a File,
    /// As long as the largest transfer.
    buffer: &'a Region,
}

impl Load<'_> {
    /// Reads the file once from its start, or until the time is up. `None` where io_uring is
    /// refused.
    fn read(
        &self,
        transfer: u64,
        device: Option<&Device>,
        recorder: &mut dyn Recorder,
    ) -> Result<Option<RowResult>> {
        fadvise(self.cached, 0, None, Advice::DontNeed)
            .map_err(|e| failed("dropping the file from the cache")(e.into()))?;
        // SAFETY: the buffer's mapping is as long as the largest transfer, and nobody else uses it
        // meanwhile.
        let buffer = unsafe { std::slice::from_raw_parts_mut(self.buffer.base(), transfer as usize) };
        let limit = limit(self.seqread);
        let size = self.file.metadata().map_err(failed("the size of the file"))?.len();
        let mut queue = match self.access.is_queued() {
            true => match Queue::open(self.seqread.in_flight(transfer), transfer as usize) {
                Err(error) if Queue::<()>::is_refused(&error) => return Ok(None),
                opened => Some(opened.map_err(failed("opening an io_uring"))?),
            },
            false => None,
        };
        // The kernel may serve a queue in threads of its own, which belong to this process.
        let consumption: fn() -> Usage = match queue {
            Some(_) => rusage::process_up_to_date,
            None => rusage::thread_up_to_date,
        };
        let before = device.and_then(Device::read);
        let (used, begun) = (consumption(), Instant::now());
        let pages = (size / page_size() as u64) as usize;
        let mapped = (self.access == Access::Mmap).then(|| Region::part(self.file, 0, pages)).transpose();
        let mapped = mapped.map_err(failed("mapping the file"))?;
        let mut bytes = 0;
        let mut number = 0_u64;
        loop {
            let read = match (&mapped, &mut queue) {
                (Some(region), _) => Ok(copy(region, bytes, buffer)),
                (None, Some(queue)) => self.submit(queue, bytes, size.saturating_sub(bytes).min(transfer)),
                (None, None) => self.file.read_at(buffer, bytes),
            };
            match read {
                Ok(0) => break,
                Ok(read) => bytes += read as u64,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&format!("reading {transfer} bytes at {bytes}"))(error)),
            }
            number += 1;
            if number.is_multiple_of(16) || transfer >= 1 << 20 {
                if begun.elapsed() > limit {
                    break;
                }
                recorder.check()?;
            }
        }
        if let Some(queue) = &mut queue {
            queue.finish(|()| {}).map_err(failed("reading the file"))?;
        }
        let elapsed = begun.elapsed();
        let used = consumption() - used;
        let device = device.and_then(Device::read).zip(before).map(|(after, before)| after.since(&before));
        let shared = device.is_some_and(|device| foreign(&device, used.read));
        Ok(Some(RowResult { bytes, elapsed, used, device, shared }))
    }

    /// Submits a read of up to `length` bytes. Returns their number.
    fn submit(&self, queue: &mut Queue<()>, at: u64, length: u64) -> std::io::Result<usize> {
        let length = (length as usize).min(MAX_TRANSFER);
        if length > 0 {
            queue.submit(self.file, (Direction::Read, at, length), (), |()| {})?;
        }
        Ok(length)
    }
}

/// Copies from offset `at` of the mapping into the buffer, as far as the mapping goes. Returns the
/// number of bytes.
fn copy(region: &Region, at: u64, buffer: &mut [u8]) -> usize {
    let length = buffer.len().min(region.pages() * page_size() - at as usize);
    // SAFETY: `at` and the bytes after it lie in the mapping; nobody writes the scratch file now.
    unsafe {
        std::ptr::copy_nonoverlapping(region.base().add(at as usize), buffer.as_mut_ptr(), length);
    }
    std::hint::black_box(&buffer[0]);
    length
}

/// Whether a device read more than on one thread's account, beyond the blocks of the file's own index.
fn foreign(device: &Counted, own: u64) -> bool {
    const INDEX: u64 = 64 << 10;
    device.bytes > own + own / 100 + INDEX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_other_processes_are_noted() {
        let device = |bytes| Counted { bytes, ..Counted::default() };
        assert!(!foreign(&device(32 << 20), 32 << 20));
        assert!(!foreign(&device((32 << 20) + 4096), 32 << 20));
        assert!(foreign(&device(36 << 20), 32 << 20) && foreign(&device(1 << 20), 0));
    }
}
