//! The switch of delay accounting, turned on for as long as somebody looks.

use std::fs;
use std::io;

/// The switch's file.
pub const SWITCH: &str = "/proc/sys/kernel/task_delayacct";

/// Keeps delay accounting on; dropping it puts the switch back as it was. Tasks that started before
/// the switch was on stay without accounting.
#[derive(Debug)]
pub struct Accounting {
    before: Option<String>,
}

impl Accounting {
    /// Switches delay accounting on if it is off.
    ///
    /// # Errors
    /// When the switch is absent or may not be written.
    pub fn enable() -> io::Result<Self> {
        let before = fs::read_to_string(SWITCH)?;
        if before.trim() != "0" {
            return Ok(Self { before: None });
        }
        fs::write(SWITCH, "1\n")?;
        Ok(Self { before: Some(before) })
    }

    /// Whether it is on; None where the kernel has no such switch.
    pub fn is_on() -> Option<bool> {
        fs::read_to_string(SWITCH).ok().map(|text| text.trim() != "0")
    }
}

impl Drop for Accounting {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // Nothing more can be done here; the switch's present state is what `doctor` shows.
            let _ = fs::write(SWITCH, before);
        }
    }
}
