//! The switch of delay accounting, turned on for as long as somebody looks.

use std::fs;
use std::io;

use crate::confine::journal::Journal;
use crate::confine::undo::Undo;

/// The switch's file.
pub const SWITCH: &str = "/proc/sys/kernel/task_delayacct";

/// Keeps delay accounting on; dropping it puts the switch back as it was, and after a kill the next
/// pagelab does ([`crate::recover`]). Tasks that started before the switch was on stay without
/// accounting. A second look that finds it on leaves it to the first, which may end earlier.
#[derive(Debug)]
pub struct Accounting {
    /// Undoes when it is dropped; None where the switch was on already.
    _journal: Option<Journal>,
}

impl Accounting {
    /// Switches delay accounting on if it is off.
    ///
    /// # Errors
    /// When the switch is absent or may not be written, or what to put back cannot be noted.
    pub fn enable() -> io::Result<Self> {
        let before = fs::read_to_string(SWITCH)?;
        let before = before.trim();
        if before != "0" {
            return Ok(Self { _journal: None });
        }
        // Whether it may be written shows before anything is noted.
        fs::OpenOptions::new().write(true).open(SWITCH)?;
        let mut journal = Journal::open()?;
        journal.enter(Undo::Restore { path: SWITCH.into(), value: before.to_owned() })?;
        fs::write(SWITCH, "1\n")?;
        Ok(Self { _journal: Some(journal) })
    }

    /// Whether it is on; None where the kernel has no such switch.
    pub fn is_on() -> Option<bool> {
        fs::read_to_string(SWITCH).ok().map(|text| text.trim() != "0")
    }
}
