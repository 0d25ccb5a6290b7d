//! `restore` on the running kernel: a process that reads its memory lazily from a snapshot file.
//!
//! 1. The snapshot is written to the scratch place.
//! 2. Each pass drops it from the page cache, maps memory under userfaultfd, and plays references.
//!    One thread serves faults: it reads the page from the file and copies it into the mapping.
//!    Another thread copies pages in its order meanwhile, and ends when the answer is there.
//! 3. The first pass plays the recording without prefetching. Its pages in the order of their
//!    faults are the recorded order of the others.
//! 4. After a pass, off the clock, each touched page is compared with the snapshot.
//!
//! Both threads read through descriptors of their own, so neither disturbs the other's read-ahead.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use pagelab_experiment::build::{Sheet, metric, metrics};
use pagelab_experiment::experiments::restore::{Recorded, first_touches, in_vain};
use pagelab_experiment::experiments::{Prefetch, Restore};
use pagelab_experiment::{Recorder, Result, metrics, tables};
use pagelab_kernel::content::Filler;
use pagelab_kernel::page_cache::{self, Cached};
use pagelab_kernel::region::{forget, page_size};
use pagelab_kernel::rusage::{self, Usage};
use pagelab_kernel::userfault::Paged;
use pagelab_kernel::waiting::Bell;
use rustix::fs::{Advice, fadvise};

use super::paging::unmade;
use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;
use crate::harness::processor;
use crate::harness::timing::bare;
use crate::harness::touch::Word;

/// References between two checks of whether to go on.
const BLOCK: usize = 64;

/// Performs `parameters`; see the module's comment.
///
/// # Errors
/// When the stream cannot be made, the snapshot cannot be written or read, or the kernel refuses.
pub fn perform(parameters: &Restore, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    let [answer, recording] = parameters.streams().map_err(|error| unmade(&error))?;
    let pages = parameters.pages as u32;
    let touched = first_touches(&answer, pages);
    drop(context.write_scratch("restore", pages as usize, recorder)?);
    let snapshot = Snapshot { path: context.scratch("restore")?, pages, depth: parameters.depth as usize };
    context.join()?;
    harness.begin();
    let passes = parameters.prefetch.len() as u64 + 1;
    recorder.progress("record", 0, passes);
    let recorded = snapshot.pass(&recording, &[], recorder)?.served;
    let recorded = Recorded { references: &recording, touched: &recorded };
    let mut results = Vec::new();
    for (done, &prefetch) in (1..).zip(&parameters.prefetch) {
        recorder.progress("restore", done, passes);
        let order = prefetch.order(recorded, pages);
        results.push((prefetch, snapshot.pass(&answer, &order, recorder)?));
    }
    harness.finish().record(recorder)?;
    report(&results, &touched, pages, recorder)
}

fn report(
    results: &[(Prefetch, PassResult)],
    touched: &[u32],
    pages: u32,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let mut sheet = Sheet::new(tables::restore::TABLE);
    let mut sums = Usage::default();
    for (prefetch, result) in results {
        let vain = in_vain(&result.prefetched, touched, pages);
        let count = |count: usize| Some(count as f64);
        sheet.named(
            [&prefetch.to_string()],
            [
                count(touched.len()),
                Some(result.answer as f64),
                count(result.served.len()),
                count(result.prefetched.len()),
                Some(vain as f64),
                Some(result.late as f64),
                Some(result.used.read as f64),
                Some(result.used.processor as f64),
                result.cached.map(|cached| (cached.pages * page_size() as u64) as f64),
            ],
        );
        let (answer, share) = prefetch.metrics();
        metric(recorder, answer, Some(result.answer as f64))?;
        if let (Some(share), Some(all)) = (share, NonZeroU64::new(result.prefetched.len() as u64)) {
            metric(recorder, share, Some(vain as f64 / all.get() as f64))?;
        }
        sums += result.used;
    }
    sheet.record(recorder)?;
    metrics(recorder, processor::figures(&sums))?;
    metric(recorder, metrics::IO_READ, Some(sums.read as f64))
}

/// The snapshot file, and how it is prefetched.
struct Snapshot<'a> {
    path: &'a Path,
    pages: u32,
    /// Pages that are read ahead.
    depth: usize,
}

/// What a pass showed.
struct PassResult {
    /// Time until the last reference, ns.
    answer: u64,
    /// Pages that were read on demand, in the order of their faults.
    served: Vec<u32>,
    /// Faults on pages that the prefetcher copied before they were served.
    late: u64,
    /// Pages that the prefetcher copied, in order.
    prefetched: Vec<u32>,
    /// What all threads consumed.
    used: Usage,
    /// Pages of the file that were cached before the pass.
    cached: Option<Cached>,
}

impl Snapshot<'_> {
    /// Restores the memory and plays `references`, while the pages of `order` are prefetched.
    fn pass(&self, references: &[u32], order: &[u32], recorder: &mut dyn Recorder) -> Result<PassResult> {
        let open = || File::open(self.path).map_err(failed("opening the snapshot"));
        let (demanded, ahead) = (open()?, open()?);
        forget(&demanded).map_err(failed("dropping the snapshot from the page cache"))?;
        let cached = page_cache::of(&demanded, u64::from(self.pages) * page_size() as u64);
        let paged = Paged::new(self.pages as usize).map_err(failed("mapping memory under userfaultfd"))?;
        let pass = Pass::new(&paged, self.depth).map_err(failed("preparing the restore"))?;
        let (mut served, mut late) = (Vec::with_capacity(self.pages as usize), 0);
        let mut prefetched = Vec::with_capacity(order.len());
        let before = rusage::process();
        let answer = thread::scope(|scope| -> Result<u64> {
            let stop = Stop(&pass);
            let (served, late, prefetched, pass) = (&mut served, &mut late, &mut prefetched, &pass);
            let start = |error| failed("starting a thread")(error);
            thread::Builder::new()
                .spawn_scoped(scope, move || pass.serve(&demanded, served, late))
                .map_err(start)?;
            let begun = Monotonic.now();
            if !order.is_empty() {
                thread::Builder::new()
                    .spawn_scoped(scope, move || pass.prefetch(&ahead, order, prefetched))
                    .map_err(start)?;
            }
            for block in references.chunks(BLOCK) {
                bare::<Word>(paged.region(), block);
                pass.check()?;
                recorder.check()?;
            }
            let answer = Monotonic.now() - begun;
            drop(stop);
            Ok(answer)
        })?;
        let used = rusage::process() - before;
        pass.check()?;
        compare(&paged, &first_touches(references, self.pages))?;
        Ok(PassResult { answer, served, late, prefetched, used, cached })
    }
}

/// Compares pages of the restored memory, all of them there, with the snapshot's content.
fn compare(paged: &Paged, pages: &[u32]) -> Result<()> {
    let mut wanted = vec![0; page_size() / size_of::<u64>()];
    for &page in pages {
        Filler::default().fill(u64::from(page), &mut wanted);
        if (0..).zip(&wanted).any(|(word, &wanted)| paged.word(page, word) != wanted) {
            let error = io::Error::other("its content is not the snapshot's");
            return Err(failed(&format!("restoring page {page}"))(error));
        }
    }
    Ok(())
}

/// What the threads of a pass share.
struct Pass<'a> {
    paged: &'a Paged,
    depth: usize,
    /// Which pages are in the mapping.
    present: Vec<AtomicBool>,
    /// Ends the thread that serves faults.
    stop: Bell,
    /// Ends the prefetcher.
    answered: AtomicBool,
    error: Mutex<Option<io::Error>>,
}

/// Ends the threads of a pass when dropped, however that comes.
struct Stop<'p>(&'p Pass<'p>);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.answered.store(true, Relaxed);
        self.0.stop.ring();
    }
}

impl<'a> Pass<'a> {
    fn new(paged: &'a Paged, depth: usize) -> io::Result<Self> {
        let present = (0..paged.region().pages()).map(|_| AtomicBool::new(false)).collect();
        let (answered, error) = (AtomicBool::new(false), Mutex::new(None));
        Ok(Self { paged, depth, present, stop: Bell::new()?, answered, error })
    }

    /// Whether all pages so far could be read.
    ///
    /// # Errors
    /// Why one could not.
    fn check(&self) -> Result<()> {
        let error = self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        error.map_or(Ok(()), |error| Err(failed("reading the snapshot")(error)))
    }

    fn fail(&self, error: io::Error) {
        *self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
    }

    fn is_present(&self, page: u32) -> bool {
        self.present[page as usize].load(Relaxed)
    }

    /// Copies the page, unless it is there. Returns whether it did.
    fn put(&self, page: u32, content: &[u8]) -> io::Result<bool> {
        let copied = self.paged.events().put(self.paged.address(page), content)?;
        self.present[page as usize].store(true, Relaxed);
        Ok(copied)
    }

    /// Serves faults until the answer is there.
    fn serve(&self, file: &File, served: &mut Vec<u32>, late: &mut u64) {
        let mut content = vec![0; page_size()];
        let resolve = |page: u32| {
            if self.is_present(page) {
                *late += 1;
                return self.paged.events().wake(self.paged.address(page), content.len());
            }
            file.read_exact_at(&mut content, offset(page))?;
            match self.put(page, &content)? {
                true => served.push(page),
                false => *late += 1,
            }
            Ok(())
        };
        self.paged.serve(&self.stop, resolve, |error| self.fail(error));
    }

    /// Copies the pages of `order` that are not there, until the answer is.
    fn prefetch(&self, file: &File, order: &[u32], prefetched: &mut Vec<u32>) {
        let copied = self.copy(file, order, |page| prefetched.push(page));
        copied.unwrap_or_else(|error| self.fail(error));
    }

    fn copy(&self, file: &File, order: &[u32], mut copied: impl FnMut(u32)) -> io::Result<()> {
        let (mut content, mut advised) = (vec![0; page_size()], 0);
        for (number, &page) in order.iter().enumerate() {
            // In halves of the depth, so that neighbours are read together.
            if advised <= number + self.depth / 2 && advised < order.len() {
                let end = order.len().min(number + self.depth);
                for run in order[advised..end].chunk_by(|one, next| *next == one + 1) {
                    let bytes = NonZeroU64::new(offset(run.len() as u32));
                    fadvise(file, offset(run[0]), bytes, Advice::WillNeed)?;
                }
                advised = end;
            }
            if self.answered.load(Relaxed) {
                return Ok(());
            }
            if self.is_present(page) {
                continue;
            }
            file.read_exact_at(&mut content, offset(page))?;
            if !self.answered.load(Relaxed) && self.put(page, &content)? {
                copied(page);
            }
        }
        Ok(())
    }
}

/// Where a page begins in the file.
fn offset(page: u32) -> u64 {
    u64::from(page) * page_size() as u64
}
