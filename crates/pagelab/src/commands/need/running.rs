//! What measurements of running processes and of running cgroups have in common.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::failure::CommandError;
use crate::interrupt::Interrupt;

/// The heading of the options.
const RUNNING: &str = "Options for a running process or cgroup";

/// The options.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Running {
    /// The time limit of the measurement, in seconds
    #[arg(long = "for", help_heading = RUNNING, value_name = "SECONDS", default_value_t = 60, conflicts_with = "program", value_parser = clap::value_parser!(u32).range(12..=86_400))]
    pub seconds: u32,
    /// The share of the time for which the tasks may stall because of the measurement
    #[arg(long, help_heading = RUNNING, value_name = "SHARE", default_value = "1%", conflicts_with = "program", value_parser = stall)]
    pub max_stall: f64,
    /// Measure again this many seconds after each measurement, and print the change
    #[arg(long, help_heading = RUNNING, value_name = "SECONDS", conflicts_with = "program", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub watch: Option<u32>,
}

/// The form of the result.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// The file for the page, if one is wanted.
    pub html: Option<&'a Path>,
    /// JSON instead of words.
    pub json: bool,
}

/// How often a wait looks whether the user wants to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

fn stall(text: &str) -> Result<f64, &'static str> {
    let share = text.strip_suffix('%').and_then(|percent| percent.parse::<f64>().ok());
    let share = share.map(|percent| percent / 100.0).filter(|share| (0.0001..=0.5).contains(share));
    share.ok_or("write a percentage from 0.01% to 50%")
}

/// Waits, unless the user wants to end.
///
/// # Errors
/// When the user does.
pub fn wait(until: Instant, interrupt: Interrupt) -> Result<()> {
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if interrupt.requested() {
            return Err(CommandError::Stopped.into());
        }
        std::thread::sleep(left.min(POLL_INTERVAL));
    }
    Ok(())
}
