//! One run with swap at a time: two would page into each other's, whatever their priorities.
//!
//! The lock is on `/proc/swaps` itself: it is the machine's, whatever folder a pagelab keeps its journal in; it
//! leaves no file; and it ends with the process that holds it, however that ends.

use std::fs::File;
use std::time::Duration;

use pagelab_experiment::build::note;
use pagelab_experiment::observation::Level;
use pagelab_experiment::setting::{Setting, Swap};
use pagelab_experiment::{Failure, Recorder};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// What is locked.
const SWAPS: &str = "/proc/swaps";
/// Between two looks whether the other run has ended.
const LOOK: Duration = Duration::from_millis(50);

/// The turn of a run with swap of its own; it ends when this is dropped.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "held for its lock")] File);

impl Turn {
    /// Waits for the turn of a run under `setting`; `None` where it makes no swap, or the kernel has none.
    ///
    /// # Errors
    /// When the user interrupts the waiting, or the recorder fails.
    pub fn wait(setting: &Setting, recorder: &mut dyn Recorder) -> Result<Option<Self>, Failure> {
        if !matches!(setting.swap, Some(Swap::File | Swap::Zram)) {
            return Ok(None);
        }
        let Ok(file) = File::open(SWAPS) else { return Ok(None) };
        let mut waited = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                // A file system that has no locks: nothing to wait for.
                Err(_) => return Ok(None),
            }
            waited = true;
            recorder.progress("wait for another run with swap to end", 0, 1);
            if recorder.interrupted() {
                return Err(Failure::interrupted());
            }
            std::thread::sleep(LOOK);
        }
        if waited {
            note(recorder, Level::Info, "waited for another run with swap to end before this one began")?;
        }
        Ok(Some(Self(file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::{Observation, RecorderError};

    /// Gives up after some looks.
    #[derive(Default)]
    struct Impatient {
        phases: Vec<String>,
        notes: usize,
    }

    impl Recorder for Impatient {
        fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
            self.notes += usize::from(matches!(observation, Observation::Note(_)));
            Ok(())
        }
        fn progress(&mut self, phase: &str, _: u64, _: u64) {
            self.phases.push(phase.to_owned());
        }
        fn interrupted(&self) -> bool {
            self.phases.len() >= 3
        }
    }

    /// Whatever other pagelabs this machine has: while one turn is held, no other is to be had.
    #[test]
    fn a_second_run_with_swap_waits_and_can_be_interrupted() {
        let setting = Setting { swap: Some(Swap::File), ..Setting::default() };
        struct Patient;
        impl Recorder for Patient {
            fn observe(&mut self, _: Observation) -> Result<(), RecorderError> {
                Ok(())
            }
            fn progress(&mut self, _: &str, _: u64, _: u64) {}
            fn interrupted(&self) -> bool {
                false
            }
        }
        let held = Turn::wait(&setting, &mut Patient).unwrap().expect("Linux has /proc/swaps");
        let mut second = Impatient::default();
        let refused = Turn::wait(&setting, &mut second).unwrap_err();
        assert!(refused.is_interrupted() && second.phases[0].contains("another run with swap"), "{refused}");
        let none = Setting { swap: Some(Swap::None), ..Setting::default() };
        assert!(Turn::wait(&none, &mut Impatient::default()).unwrap().is_none());
        drop(held);
        assert!(Turn::wait(&setting, &mut Patient).unwrap().is_some());
    }
}
