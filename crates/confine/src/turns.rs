//! One run with swap of its own at a time, and one that changes the kernel's settings: two would
//! page into each other's swap, or restore a value that neither found.
//!
//! The locks are on files of the kernel: they are the machine's, whatever directory a pagelab keeps
//! its journal in; they leave no file; and they end with the process that holds them, however that
//! ends. Every process takes them in the same order, so that no two wait for each other.

use std::fs::File;
use std::time::Duration;

use pagelab_experiment::build::note;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Failure, Recorder};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::locks::SETTINGS;
use super::set_up::SetUp;

/// Locked by a run with swap of its own.
const SWAPS: &str = "/proc/swaps";
/// The time between two tries.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The turn of a run with swap of its own or with changed settings; it ends when this is dropped.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "held for its locks")] [Option<File>; 2]);

impl Turn {
    /// Waits for the turn of a run with this `set_up`.
    ///
    /// # Errors
    /// When the user interrupts the waiting, or the recorder fails.
    pub fn wait(set_up: &SetUp, recorder: &mut dyn Recorder) -> Result<Self, Failure> {
        let (swap, settings) = (set_up.swap.is_some(), set_up.changes_settings());
        let swap = if swap { wait_for(SWAPS, "with swap", recorder)? } else { None };
        let settings = if settings { wait_for(SETTINGS, "that changes settings", recorder)? } else { None };
        Ok(Self([swap, settings]))
    }
}

/// Waits for the lock on `path`, which another run of `kind` may hold; `None` where there is no
/// such file, or its file system has no locks.
fn wait_for(path: &str, kind: &str, recorder: &mut dyn Recorder) -> Result<Option<File>, Failure> {
    let Ok(file) = File::open(path) else { return Ok(None) };
    let mut waited = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
        waited = true;
        recorder.progress(&format!("wait for another run {kind} to end"), 0, 1);
        if recorder.interrupted() {
            return Err(Failure::interrupted());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    if waited {
        note(recorder, Level::Info, format!("waited for another run {kind} to end before this one began"))?;
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set_up::{OwnSwap, SwapSource};
    use pagelab_experiment::{Observation, Observations, RecorderError};

    /// Interrupts at its third poll.
    #[derive(Default)]
    struct Impatient {
        phases: Vec<String>,
    }

    impl Recorder for Impatient {
        fn observe(&mut self, _: Observation) -> Result<(), RecorderError> {
            Ok(())
        }
        fn progress(&mut self, phase: &str, _: u64, _: u64) {
            self.phases.push(phase.to_owned());
        }
        fn interrupted(&self) -> bool {
            self.phases.len() >= 3
        }
    }

    fn with_swap() -> SetUp {
        SetUp { swap: Some(OwnSwap { source: SwapSource::File, bytes: 1 << 20 }), ..SetUp::default() }
    }

    fn with_settings() -> SetUp {
        SetUp { settings: vec![("/proc/sys/vm/swappiness".into(), "7".into())], ..SetUp::default() }
    }

    /// While one turn is held, whichever pagelab holds it, nobody else has it.
    fn excludes_a_second(set_up: &SetUp, kind: &str) {
        let first = Turn::wait(set_up, &mut Observations::default()).unwrap();
        let mut second = Impatient::default();
        let refused = Turn::wait(set_up, &mut second).unwrap_err();
        assert!(refused.is_interrupted() && second.phases[0].contains(kind), "{refused}");
        drop(first);
        Turn::wait(set_up, &mut Observations::default()).unwrap();
    }

    #[test]
    fn a_second_run_with_swap_waits_and_can_be_interrupted() {
        excludes_a_second(&with_swap(), "another run with swap");
    }

    #[test]
    fn a_second_run_with_settings_waits_and_can_be_interrupted() {
        excludes_a_second(&with_settings(), "another run that changes settings");
    }

    #[test]
    fn a_run_with_neither_does_not_wait() {
        let held = SetUp { swap: with_swap().swap, ..with_settings() };
        let _held = Turn::wait(&held, &mut Observations::default()).unwrap();
        let mut second = Impatient::default();
        Turn::wait(&SetUp { no_swap: true, ..SetUp::default() }, &mut second).unwrap();
        assert!(second.phases.is_empty());
    }
}
