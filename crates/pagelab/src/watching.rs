//! What a simulation tells the user, and how the user ends it: the progress bar and Ctrl-C.

use anyhow::{Context as _, Result};
use pagelab_simulation::Watch;

use crate::interrupt::Interrupt;
use crate::progress::Work;

/// The user of a command that keeps nothing until it is done.
pub struct Watching {
    work: Work,
    interrupt: Interrupt,
}

impl Watching {
    /// A bar with a name, and Ctrl-C from now on.
    ///
    /// # Errors
    /// When the system refuses the signal handlers.
    pub fn new(message: &'static str, quiet: bool) -> Result<Self> {
        Ok(Self { work: Work::new(message, quiet), interrupt: listen()? })
    }
}

impl Watch for Watching {
    fn at(&self, fraction: f64) {
        self.work.at(fraction);
    }

    fn stopped(&self) -> bool {
        self.interrupt.requested()
    }
}

/// The interrupt of a command that keeps nothing.
pub fn listen() -> Result<Interrupt> {
    Interrupt::listen().context("the signal handlers cannot be installed")
}
