//! Prepares a load in a guest for the marks between which the machine counts
//! ([`pagelab_kernel::marks`]), and sends the data that map addresses to functions.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use pagelab_experiment::{Failure, Observation, Recorder, RecorderError, Result};

/// The phase in which a machine counts. The worker's parent does not poll for messages until the
/// next one arrives, because the machine would count the polls.
pub const COUNTING: &str = "count instructions";

/// Writes this process's mappings and the kernel's symbols to `device`.
///
/// # Errors
/// When they cannot be read or written.
pub fn tell(device: &Path) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let text = fs::read_to_string("/proc/self/maps")? + "\n" + &fs::read_to_string("/proc/kallsyms")?;
        let mut output = fs::OpenOptions::new().write(true).open(device)?;
        output.write_all(text.as_bytes())?;
        output.sync_all()
    };
    write().map_err(|e| Failure::system("sending the functions of the guest", &e))
}

/// Tells nobody how far the load is: what telling takes would be counted.
pub struct Silent<'a>(pub &'a mut dyn Recorder);

impl Recorder for Silent<'_> {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        self.0.observe(observation)
    }

    fn progress(&mut self, _: &str, _: u64, _: u64) {}

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}

/// Waits until nobody else has had to run several times in a row: what was told before the load is
/// still being passed on.
pub fn settle() {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut quiet = 0;
    for _ in 0..500 {
        std::thread::sleep(PAUSE);
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let runnable = text.lines().find_map(|line| line.strip_prefix("procs_running "));
        quiet = if runnable.is_some_and(|number| number.trim() == "1") { quiet + 1 } else { 0 };
        if quiet >= 10 {
            break;
        }
    }
}
