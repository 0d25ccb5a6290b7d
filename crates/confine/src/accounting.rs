//! The switch of delay accounting, turned on for as long as somebody looks.

use std::fs;
use std::io;
use std::path::Path;

use crate::journal::Journal;
use crate::store::turn;
use crate::undo::Undo;

use pagelab_kernel::settings::DELAY_ACCOUNTING as SWITCH;

/// Keeps delay accounting on; dropping it puts the switch back as it was, and after a kill the next
/// pagelab does ([`crate::Recovery`]). Of several at a time the last one to end does. Tasks that
/// started before the switch was on stay without accounting.
#[derive(Debug)]
pub struct Accounting {
    /// Undoes when it is dropped; None where somebody else had switched it on.
    _journal: Option<Journal>,
}

impl Accounting {
    /// Switches delay accounting on if it is off.
    ///
    /// # Errors
    /// When the switch is absent or may not be written, or what to put back cannot be noted.
    pub fn enable() -> io::Result<Self> {
        // Whether it is there and may be written shows before anything is noted.
        fs::OpenOptions::new().read(true).write(true).open(SWITCH)?;
        let mut journal = Journal::open()?;
        let _turn = turn(journal.folder())?;
        let found = fs::read_to_string(SWITCH)?;
        let before = match journal.others_restore(Path::new(SWITCH)) {
            Some(before) => before,
            None if found.trim() == "0" => "0".to_owned(),
            None => return Ok(Self { _journal: None }),
        };
        journal.enter(Undo::Restore { path: SWITCH.into(), value: before })?;
        fs::write(SWITCH, "1\n")?;
        Ok(Self { _journal: Some(journal) })
    }

    /// Whether it is on; None where the kernel has no such switch.
    pub fn is_on() -> Option<bool> {
        fs::read_to_string(SWITCH).ok().map(|text| text.trim() != "0")
    }
}
