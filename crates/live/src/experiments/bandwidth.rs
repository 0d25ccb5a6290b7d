//! `bandwidth` on the running kernel: STREAM's four loops.
//!
//! Each thread is kept to a processor and has three arrays of its own, which it writes first. At
//! each working set the loops are made one after the other, as many passes to a round as move
//! `MIN_ROUND_BYTES` bytes. One thread is timed in its processor time, several in wall time from a barrier to
//! a barrier. In the end every element must hold what as many rounds make of it.

use std::hint::black_box;
use std::slice;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, compiler_fence};
use std::sync::{Barrier, OnceLock};
use std::thread;

use pagelab_experiment::build::{Sheet, median, metric, metrics, note};
use pagelab_experiment::experiments::Bandwidth;
use pagelab_experiment::experiments::bandwidth::TIMES;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Failure, Recorder, Result, Size, tables};
use pagelab_kernel::affinity::{Pinned, allowed, pin};
use pagelab_kernel::geometry;
use pagelab_kernel::region::{HugePages, Region, page_size};
use pagelab_kernel::rusage;

use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;
use crate::harness::processor;

/// Elements of a cache line of 64 bytes, which are read and written together.
const LINE: usize = 8;
/// Elements between two arrays: a page and five lines. Arrays that lie a power of two apart compete
/// for the same sets of a cache, which costs a fifth to two fifths of the bandwidth.
const GAP: usize = (4096 + 5 * 64) / size_of::<f64>();
/// Bytes that a round reads and writes at least, so that reading the clock is nothing of it.
const MIN_ROUND_BYTES: usize = 32 << 20;
/// STREAM's scalar, but one that makes `s (2 + s)` 1, so that nothing grows: the square root of 2,
/// less 1.
const SCALAR: f64 = 0.414_213_562_373_095_03;
/// What the arrays hold first, as in STREAM.
const FIRST: [f64; 3] = [1.0, 2.0, 0.0];
/// Bytes read and written for each element by copy, scale, add and triad.
const BYTES: [usize; 4] = [16, 16, 24, 24];

/// Rates of copy, scale, add and triad, bytes a second.
type Rates = [f64; 4];

/// The arrays of one thread.
struct Arrays {
    region: Region,
    /// Elements of each.
    length: usize,
}

impl Arrays {
    /// Maps and writes them, `bytes` together.
    fn new(bytes: usize) -> std::io::Result<Self> {
        let length = (bytes / 3 / (LINE * size_of::<f64>())).max(1) * LINE;
        let region = Region::anonymous(((3 * length + 2 * GAP) * size_of::<f64>()).div_ceil(page_size()))?;
        // Refused by kernels without huge pages: then there are none.
        let _ = region.advise(HugePages::Wanted);
        let mut arrays = Self { region, length };
        for (array, first) in arrays.parts().into_iter().zip(FIRST) {
            array.fill(first);
        }
        Ok(arrays)
    }

    /// a, b and c.
    fn parts(&mut self) -> [&mut [f64]; 3] {
        let (base, length) = (self.region.base().cast::<f64>(), self.length);
        // SAFETY: the mapping has room for three times `length` numbers and two gaps, is aligned to
        // a page, zeroed where it was not written, and used by nobody else; the three do not overlap.
        [0, 1, 2].map(|n| unsafe { slice::from_raw_parts_mut(base.add(n * (length + GAP)), length) })
    }

    /// Makes one loop once over the arrays.
    fn pass(&mut self, which: usize) {
        let [a, b, c] = self.parts();
        match which {
            0 => each(c, a, a, |a, _| a),
            1 => each(b, c, c, |c, _| SCALAR * c),
            2 => each(c, a, b, |a, b| a + b),
            _ => each(a, b, c, |b, c| b + SCALAR * c),
        }
        black_box(&mut self.region);
    }

    /// Whether every element is what so many rounds make of the first ones.
    fn holds(&mut self, rounds: u32) -> bool {
        let [mut a, mut b, mut c] = FIRST;
        for _ in 0..rounds {
            c = a;
            b = SCALAR * c;
            c = a + b;
            a = b + SCALAR * c;
        }
        self.parts().into_iter().zip([a, b, c]).all(|(array, value)| array.iter().all(|&held| held == value))
    }
}

/// `to[i] = f(x[i], y[i])`, a line at a time: the fence keeps the compiler from making a call of
/// memcpy of it, whose stores may go around the caches.
#[inline(always)]
fn each(to: &mut [f64], x: &[f64], y: &[f64], f: impl Fn(f64, f64) -> f64) {
    let (to, _) = to.as_chunks_mut::<LINE>();
    let ((x, _), (y, _)) = (x.as_chunks::<LINE>(), y.as_chunks::<LINE>());
    for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
        for n in 0..LINE {
            to[n] = f(x[n], y[n]);
        }
        compiler_fence(SeqCst);
    }
}

/// Performs the sweep; see the module's comment.
///
/// # Errors
/// When the kernel refuses memory.
pub fn perform(bandwidth: &Bandwidth, context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    let sizes = bandwidth.sweep().bytes(page_size() as u64);
    let mut threads = bandwidth.threads.clone();
    threads.sort_unstable();
    threads.dedup();
    context.join()?;
    let processors = allowed().map_err(failed("looking at processors"))?;
    harness.begin();
    let before = rusage::process();
    let mut sheet = Sheet::new(tables::bandwidth::TABLE);
    let mut seen = Vec::new();
    let steps = (sizes.len() * threads.len()) as u64;
    for (n, &size) in sizes.iter().enumerate() {
        for (m, &count) in threads.iter().enumerate() {
            recorder.progress("working sets", (n * threads.len() + m) as u64, steps);
            recorder.check()?;
            let rates = match processors.get(..count as usize) {
                Some(processors) => Some(measured(bandwidth.rounds, size as usize, processors)?),
                None => None,
            };
            let of = |which: usize| rates.map(|rates| rates[which]);
            let row = [Some(size as f64), Some(f64::from(count)), of(0), of(1), of(2), of(3)];
            let plural = if count == 1 { "" } else { "s" };
            sheet.named([&format!("{}, {count} thread{plural}", Size::Bytes(size))], row);
            seen.push(rates);
        }
    }
    let used = rusage::process() - before;
    let done = harness.finish();
    done.record(recorder)?;
    sheet.record(recorder)?;
    let last = seen.len() - threads.len();
    let single = |which: usize| seen[last].map(|rates| rates[which]);
    let names =
        [metrics::BANDWIDTH_COPY, metrics::BANDWIDTH_SCALE, metrics::BANDWIDTH_ADD, metrics::BANDWIDTH_TRIAD];
    for (which, name) in names.into_iter().enumerate() {
        metric(recorder, name, single(which))?;
    }
    if threads.len() > 1 {
        let all = seen[seen.len() - 1].map(|rates| rates[3]);
        metric(recorder, metrics::BANDWIDTH_TRIAD_THREADS, all)?;
    }
    if sizes.len() > 1 {
        metric(recorder, metrics::BANDWIDTH_TRIAD_CACHE, seen[0].map(|rates| rates[3]))?;
    }
    metrics(recorder, processor::totals(&used))?;
    remarks(&sizes, &threads, processors.len(), recorder)
}

/// Says what a figure lacks, or is not.
fn remarks(sizes: &[u64], threads: &[u32], processors: usize, recorder: &mut dyn Recorder) -> Result<()> {
    if threads.iter().any(|&count| count as usize > processors) {
        let text = format!("--threads: each needs a CPU of its own, and there are {processors}");
        note(recorder, Level::Info, text)?;
    }
    let last = geometry::machine().caches[2];
    let greatest = sizes.last().copied().unwrap_or(0);
    match last {
        Some(cache) if greatest < TIMES * cache => {
            let wanted = Size::Bytes(TIMES * cache);
            let text = format!(
                "the largest working set is below {wanted}, STREAM's minimum for this last-level cache, so \
                its rates are partly those of the cache; use --sizes 256K..{wanted}:1"
            );
            note(recorder, Level::Info, text)
        }
        Some(_) => Ok(()),
        None => {
            let text = "the size of the last-level cache is unknown, so the largest working set may fit \
                into it";
            note(recorder, Level::Info, text)
        }
    }
}

/// The median rates of `size` bytes of arrays on these processors, a thread each.
fn measured(rounds: u32, size: usize, processors: &[usize]) -> Result<Rates> {
    let share = size / processors.len();
    let barrier = Barrier::new(processors.len());
    // Whether there are threads for all: nobody waits at a barrier for one that is not there.
    let complete: OnceLock<bool> = OnceLock::new();
    let lacking = AtomicBool::new(false);
    let loops = |leads: bool, processor: usize| -> Result<Rates> {
        let arrays = pin(processor)
            .map_err(failed("choosing a processor"))
            .and_then(|()| Arrays::new(share).map_err(failed("mapping the arrays")));
        lacking.fetch_or(arrays.is_err(), SeqCst);
        if !*complete.wait() {
            return Err(Failure::interrupted());
        }
        barrier.wait();
        let mut arrays = arrays?;
        if lacking.load(SeqCst) {
            return Err(Failure::interrupted());
        }
        let passes = MIN_ROUND_BYTES.div_ceil(BYTES[0] * arrays.length * processors.len()).max(1);
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..rounds {
            for (which, times) in times.iter_mut().enumerate() {
                let time = match processors.len() {
                    1 => {
                        let begun = rusage::thread_time();
                        (0..passes).for_each(|_| arrays.pass(which));
                        rusage::thread_time() - begun
                    }
                    _ => {
                        barrier.wait();
                        let begun = Monotonic.now();
                        (0..passes).for_each(|_| arrays.pass(which));
                        barrier.wait();
                        Monotonic.now() - begun
                    }
                };
                if leads {
                    let bytes = BYTES[which] * arrays.length * passes * processors.len();
                    times.push(bytes as f64 / (time.max(1) as f64 / 1e9));
                }
            }
        }
        if !arrays.holds(rounds) {
            let wrong = std::io::Error::other("the arrays do not hold what the loops make");
            return Err(failed("checking the arrays")(wrong));
        }
        Ok(times.map(|times| median(times).unwrap_or(f64::NAN)))
    };
    if let [processor] = *processors {
        let _ = complete.set(true);
        let _kept = Pinned::to(1).map_err(failed("choosing processors"))?;
        return loops(true, processor);
    }
    thread::scope(|scope| {
        let all: Vec<_> = processors
            .iter()
            .enumerate()
            .map(|(n, &processor)| {
                let loops = &loops;
                thread::Builder::new().spawn_scoped(scope, move || loops(n == 0, processor))
            })
            .collect();
        let _ = complete.set(all.iter().all(Result::is_ok));
        let all: Vec<_> =
            all.into_iter().collect::<std::io::Result<_>>().map_err(failed("starting a thread"))?;
        let results = all.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let (whole, lost): (Vec<_>, Vec<_>) = results.partition(Result::is_ok);
        // What one thread lacked, and not that others gave up for it.
        if let Some(Err(why)) =
            lost.into_iter().min_by_key(|lost| matches!(lost, Err(why) if why.is_interrupted()))
        {
            return Err(why);
        }
        whole.into_iter().next().unwrap_or_else(|| Err(Failure::interrupted()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_make_what_they_are_called_and_a_wrong_element_is_seen() {
        let mut arrays = Arrays::new(48 << 10).unwrap();
        for _ in 0..3 {
            (0..4).for_each(|which| arrays.pass(which));
        }
        assert!(arrays.holds(3));
        assert!((arrays.parts()[0][0] - 1.0).abs() < 1e-12, "nothing grows");
        arrays.parts()[2][77] += 1e-9;
        assert!(!arrays.holds(3));
        let mut once = Arrays::new(48 << 10).unwrap();
        (0..4).for_each(|which| once.pass(which));
        assert!(!once.holds(2) || SCALAR * (2.0 + SCALAR) == 1.0);
        let [a, b, c] = once.parts();
        assert_eq!([b[5], c[5]], [SCALAR, 1.0 + SCALAR]);
        assert_eq!(a[5], SCALAR + SCALAR * (1.0 + SCALAR));
    }

    #[test]
    fn two_threads_have_a_rate() {
        let Ok(processors) = allowed() else { return };
        let Some(two) = processors.get(..2) else { return };
        let rates = measured(2, 1 << 20, two).unwrap();
        assert!(rates.iter().all(|rate| *rate > 0.0), "{rates:?}");
    }
}
