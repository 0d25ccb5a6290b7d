//! Ctrl-C, SIGTERM and SIGHUP end a run in order: a flag is set, the target sees it and undoes what
//! it set up. A second signal ends pagelab at once; the next start then removes what was left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether the user wants to end.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts listening.
    ///
    /// # Errors
    /// When the system refuses the signal handlers.
    pub fn listen() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: the second signal finds the flag set and takes the default action.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// Whether a signal has come.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
