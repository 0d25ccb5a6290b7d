//! What a simulation tells the user, and how the user ends it: the progress bar and Ctrl-C.

use std::sync::{Mutex, MutexGuard};

use anyhow::{Context as _, Result};
use pagelab_simulation::Watch;

use crate::interrupt::Interrupt;
use crate::progress::Work;

/// The user of a command that keeps nothing until it is done.
pub struct Watching {
    work: Mutex<Work>,
    interrupt: Interrupt,
    quiet: bool,
}

impl Watching {
    /// A bar with a name, and Ctrl-C from now on.
    ///
    /// # Errors
    /// When the system refuses the signal handlers.
    pub fn new(message: &'static str, quiet: bool) -> Result<Self> {
        Ok(Self { work: Mutex::new(Work::new(message, quiet)), interrupt: listen()?, quiet })
    }
}

impl Watching {
    fn bar(&self) -> MutexGuard<'_, Work> {
        self.work.lock().expect("no thread panics while it holds the lock")
    }
}

impl Watch for Watching {
    fn begin(&self, part: &'static str) {
        *self.bar() = Work::new(part, self.quiet);
    }

    fn at(&self, fraction: f64) {
        self.bar().at(fraction);
    }

    fn stopped(&self) -> bool {
        self.interrupt.requested()
    }
}

/// The interrupt of a command that keeps nothing.
pub fn listen() -> Result<Interrupt> {
    Interrupt::listen().context("cannot install signal handlers")
}
