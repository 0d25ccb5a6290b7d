//! `mapanon` under the pager: references to one mapping of this process, each timed, while another thread resolves
//! their faults.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use pagelab_experiment::{Failure, Result};
use pagelab_kernel::userfault::Paged;
use pagelab_kernel::waiting::Bell;

use crate::engine::{Engine, Tally};

/// An engine and who waits for it.
pub struct Shared<'a> {
    engine: Mutex<Engine<'a, &'a Paged>>,
    paged: &'a Paged,
    stop: Bell,
    failed: Mutex<Option<io::Error>>,
    /// Whether faults are resolved no longer.
    ended: AtomicBool,
}

/// Ends the thread that resolves faults when dropped, however that comes.
pub struct Stop<'s>(&'s Bell);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.ring();
    }
}

impl<'a> Shared<'a> {
    /// `engine`, which pages `paged`.
    ///
    /// # Errors
    /// When the system refuses a descriptor.
    pub fn new(engine: Engine<'a, &'a Paged>, paged: &'a Paged) -> io::Result<Self> {
        Ok(Self {
            engine: Mutex::new(engine),
            paged,
            stop: Bell::new()?,
            failed: Mutex::new(None),
            ended: AtomicBool::new(false),
        })
    }

    /// What ends [`Self::serve`] when it is dropped.
    pub fn stop(&self) -> Stop<'_> {
        Stop(&self.stop)
    }

    /// With the engine, once the fault that it is at is resolved.
    pub fn with<T>(&self, does: impl FnOnce(&mut Engine<'a, &'a Paged>) -> T) -> T {
        // A panic while it was held ended the thread, and with it the run.
        does(&mut self.engine.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// What was done so far.
    pub fn tally(&self) -> Tally {
        self.with(|engine| *engine.tally())
    }

    /// Resolves faults until stopped. Where it cannot, every page that is missing is given zeroes, for nobody may wait
    /// for ever, and [`Self::check`] says why.
    pub fn serve(&self) {
        let resolve = |page| self.with(|engine| engine.fault(page));
        self.paged.serve(&self.stop, resolve, |error| {
            *self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
            self.ended.store(true, Relaxed);
        });
    }

    /// Whether faults are still resolved.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<()> {
        if !self.ended.load(Relaxed) {
            return Ok(());
        }
        let error = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let error = error.unwrap_or_else(|| io::Error::other("it ended"));
        Err(Failure::system("resolving a fault", &error))
    }
}
