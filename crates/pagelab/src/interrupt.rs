//! Ctrl-C, SIGTERM and SIGHUP end a command in order: a flag is set, whoever works or waits sees it and undoes
//! what it set up. Nothing that was set up is left behind because of further signals.
//!
//! A wait that does not see the flag (a file that nobody writes, a long computation) is ended all the same: what
//! has nothing set up on the machine ends at once, for the notebook is whole at any moment.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use pagelab_confine as confine;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output::remark;

/// Between two samples how far the end is.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long nobody may see the flag where nothing is set up.
const UNSEEN_TIMEOUT: Duration = Duration::from_millis(600);
/// How long an end in order may take where nothing is set up any more: the last words into the notebook.
const ORDERLY: Duration = Duration::from_secs(5);
/// What shells report of an interrupted program.
const STATUS: i32 = 130;

/// Whether a signal has come.
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Whether that was seen.
static SEEN: AtomicBool = AtomicBool::new(false);

/// Whether the user wants to end.
#[derive(Clone, Copy)]
pub struct Interrupt(());

impl Interrupt {
    /// Starts listening; from now on until the program ends a signal does not end it by itself.
    ///
    /// # Errors
    /// When the system refuses the signal handlers.
    pub fn listen() -> io::Result<Self> {
        static LISTENING: OnceLock<io::Result<()>> = OnceLock::new();
        let begin = || {
            let signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
            pagelab_notebook::hurry_when(&REQUESTED);
            thread::Builder::new().name("signals".into()).spawn(move || attend(signals)).map(drop)
        };
        match LISTENING.get_or_init(begin) {
            Ok(()) => Ok(Self(())),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    /// Whether a signal has come. Whoever asks ends in order.
    pub fn requested(&self) -> bool {
        let requested = REQUESTED.load(Relaxed);
        if requested {
            SEEN.store(true, Relaxed);
        }
        requested
    }
}

/// Whether a signal has come while somebody listened.
pub fn came() -> bool {
    REQUESTED.load(Relaxed)
}

/// Waits for the first signal and then for the end, which it brings about where that is late.
fn attend(mut signals: Signals) {
    if signals.forever().next().is_none() {
        return;
    }
    REQUESTED.store(true, Relaxed);
    let (mut since, mut said) = (Instant::now(), false);
    loop {
        thread::sleep(POLL_INTERVAL);
        let again = signals.pending().next().is_some();
        let patience = if SEEN.load(Relaxed) { ORDERLY } else { UNSEEN_TIMEOUT };
        if (again || since.elapsed() > patience) && confine::close() {
            remark!("interrupted");
            std::process::exit(STATUS);
        }
        if confine::anything_set_up() {
            if again && !said {
                remark!(
                    "undoing the changes to this machine; after 'kill -9 {}' the next start of pagelab does \
                    it",
                    std::process::id()
                );
                said = true;
            }
            since = Instant::now();
        }
    }
}
