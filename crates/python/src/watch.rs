//! Who waits for a long call: Ctrl-C and a progress bar, while other threads of Python's run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pagelab_simulation::Watch;
use pyo3::prelude::*;

use crate::error;

/// Between two samples at Python's signals: each takes the interpreter's lock for a moment.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The caller of one long call.
struct Caller {
    thread: ThreadId,
    polled: Mutex<Instant>,
    /// How far the work is, as the bits of a float.
    fraction: AtomicU64,
    stopped: AtomicBool,
    raised: Mutex<Option<PyErr>>,
    /// Has `at(fraction)` and `close()`.
    bar: Py<PyAny>,
}

impl Watch for Caller {
    fn at(&self, fraction: f64) {
        self.fraction.store(fraction.to_bits(), Relaxed);
    }

    fn stopped(&self) -> bool {
        // Signals are the main thread's: only the thread that called can be that.
        if std::thread::current().id() == self.thread {
            self.poll();
        }
        self.stopped.load(Relaxed)
    }
}

impl Caller {
    fn poll(&self) {
        let mut polled = self.polled.lock().expect("no thread panics while it holds the lock");
        if polled.elapsed() < POLL_INTERVAL {
            return;
        }
        *polled = Instant::now();
        let fraction = f64::from_bits(self.fraction.load(Relaxed));
        let seen = Python::attach(|py| {
            py.check_signals()?;
            self.bar.call_method1(py, "at", (fraction,)).map(drop)
        });
        if let Err(raised) = seen {
            self.stopped.store(true, Relaxed);
            *self.raised.lock().expect("no thread panics while it holds the lock") = Some(raised);
        }
    }
}

/// Performs `work` without the interpreter's lock; `name` stands before the progress bar.
///
/// # Errors
/// Those of `work`; what a signal raised.
pub fn during<T: Send>(
    py: Python<'_>,
    name: &str,
    work: impl FnOnce(&dyn Watch) -> anyhow::Result<T> + Send,
) -> PyResult<T> {
    let bar = py.import("pagelab._progress")?.getattr("Bar")?.call1((name,))?.unbind();
    let caller = Caller {
        thread: std::thread::current().id(),
        polled: Mutex::new(Instant::now()),
        fraction: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        raised: Mutex::new(None),
        bar,
    };
    let result = py.detach(|| work(&caller));
    caller.bar.call_method0(py, "close")?;
    if let Some(raised) = caller.raised.into_inner().expect("no thread panics while it holds the lock") {
        return Err(raised);
    }
    result.map_err(error::of)
}
