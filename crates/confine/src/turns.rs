//! One run with swap of its own at a time, and one that changes the kernel's settings: two would
//! page into each other's swap, or restore a value that neither found.
//!
//! The locks are on files of the kernel: they are the machine's, whatever directory a pagelab keeps
//! its journal in; they leave no file; and they end with the process that holds them, however that
//! ends. Every process takes them in the same order, so that no two wait for each other.

use std::fs::File;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::locks::SETTINGS;
use super::problem::Problem;
use super::set_up::SetUp;

/// Locked by a run with swap of its own.
const SWAPS: &str = "/proc/swaps";
/// The time between two tries.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The turn of a run with swap of its own or with changed settings; it ends when this is dropped.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "held for its locks")] [Option<File>; 2]);

impl Turn {
    /// Waits for the turn of a run with this `set_up`. While another has it, `poll` is asked with what is waited for whether the
    /// user ends the waiting.
    ///
    /// # Errors
    /// When the user does.
    pub fn wait(set_up: &SetUp, poll: &mut dyn FnMut(&str) -> bool) -> Result<Self, Problem> {
        let (swap, settings) = (set_up.swap.is_some(), set_up.changes_settings());
        let swap = if swap { wait_for(SWAPS, "another run with swap", poll)? } else { None };
        let changes = "another run that changes settings";
        let settings = if settings { wait_for(SETTINGS, changes, poll)? } else { None };
        Ok(Self([swap, settings]))
    }
}

/// Waits for the lock on `path`, which `other` may hold; `None` where there is no such file, or its file system has no locks.
fn wait_for(path: &str, other: &str, poll: &mut dyn FnMut(&str) -> bool) -> Result<Option<File>, Problem> {
    let Ok(file) = File::open(path) else { return Ok(None) };
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) if poll(other) => return Err(Problem::Interrupted),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(POLL_INTERVAL),
            Err(_) => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set_up::{OwnSwap, SwapSource};

    fn with_swap() -> SetUp {
        SetUp { swap: Some(OwnSwap { source: SwapSource::File, bytes: 1 << 20 }), ..SetUp::default() }
    }

    fn with_settings() -> SetUp {
        SetUp { settings: vec![("/proc/sys/vm/swappiness".into(), "7".into())], ..SetUp::default() }
    }

    fn patiently(_: &str) -> bool {
        false
    }

    /// While one turn is held, whichever pagelab holds it, nobody else has it.
    #[test]
    fn a_second_run_waits_and_can_be_interrupted() {
        for (set_up, kind) in [(with_swap(), "with swap"), (with_settings(), "that changes settings")] {
            let first = Turn::wait(&set_up, &mut patiently).unwrap();
            let mut polls = Vec::new();
            let mut impatiently = |other: &str| {
                polls.push(other.to_owned());
                polls.len() == 3
            };
            assert!(matches!(Turn::wait(&set_up, &mut impatiently), Err(Problem::Interrupted)));
            assert_eq!(polls, vec![format!("another run {kind}"); 3]);
            drop(first);
            Turn::wait(&set_up, &mut patiently).unwrap();
        }
    }

    #[test]
    fn a_run_with_neither_does_not_wait() {
        let held = SetUp { swap: with_swap().swap, ..with_settings() };
        let _held = Turn::wait(&held, &mut patiently).unwrap();
        Turn::wait(&SetUp { no_swap: true, ..SetUp::default() }, &mut |_| panic!("it waits")).unwrap();
    }
}
