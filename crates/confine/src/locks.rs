//! The lock on the kernel's settings, which runs and recovery share.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Locked by a run that changes settings, and by recovery that restores them.
pub const SETTINGS: &str = "/proc/sys/vm";

/// The lock that recovery holds while it restores settings; `None` while a run has changed them.
pub fn lock_settings() -> Option<Option<File>> {
    let Ok(file) = File::open(SETTINGS) else { return Some(None) };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => None,
        _ => Some(Some(file)),
    }
}
