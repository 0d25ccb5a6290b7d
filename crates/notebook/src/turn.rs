//! Whose turn it is to write: writers of one notebook queue, so that none waits while another goes on and on.
//!
//! SQLite lets only one write at a time, and whoever has just written finds the lock free before the others,
//! who sleep, look again. So a writer first takes the queue's head, an advisory lock on the notebook's folder,
//! and gives it up as soon as SQLite has let it in: the one that wrote last queues behind those that wait.
//! Nobody depends on it for safety: where the folder cannot be locked, or somebody holds it for long, SQLite's
//! own lock decides alone.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long the head of the queue is waited for.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long a writer waits for SQLite's lock, and a reader.
const LOCKED: Duration = Duration::from_secs(30);
/// How long each waits at most once the user wants to end.
const HURRIED: Duration = Duration::from_millis(300);
/// The sleeps between two samples: from this …
const MIN_POLL_INTERVAL: Duration = Duration::from_micros(500);
/// … twice as long each time, up to this.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(16);

/// Says whether the user wants to end.
static HURRY: OnceLock<&'static AtomicBool> = OnceLock::new();

/// From now on nobody waits long for a locked notebook when `flag` is set: the user wants to end.
pub fn hurry_when(flag: &'static AtomicBool) {
    let _ = HURRY.set(flag);
}

/// `time`, or less when the user wants to end.
fn at_most(time: Duration) -> Duration {
    if HURRY.get().is_some_and(|flag| flag.load(Relaxed)) { time.min(HURRIED) } else { time }
}

/// The head of the queue, until it is dropped.
pub(crate) struct Turn {
    _folder: Option<File>,
}

impl Turn {
    /// Waits for the head of the queue for the notebook at `path`.
    pub(crate) fn wait(path: &Path) -> Self {
        let Some(folder) = std::path::absolute(path).ok().and_then(|p| p.parent().map(Path::to_owned)) else {
            return Self { _folder: None };
        };
        let Ok(folder) = File::open(folder) else { return Self { _folder: None } };
        let started = Instant::now();
        for look in 0.. {
            match folder.try_lock() {
                Ok(()) => return Self { _folder: Some(folder) },
                Err(TryLockError::WouldBlock) if started.elapsed() < at_most(TIMEOUT) => {
                    std::thread::sleep(pause(look));
                }
                Err(_) => break,
            }
        }
        Self { _folder: None }
    }
}

/// The one policy for a locked notebook, given to SQLite: whether to look again, after a sleep.
pub(crate) fn again(polls: i32) -> bool {
    // The sum of the sleeps is the time waited, but for the looks themselves.
    let polls = polls.unsigned_abs();
    let waited = (0..polls.min(6)).map(pause).sum::<Duration>() + MAX_POLL_INTERVAL * polls.saturating_sub(6);
    let more = waited < at_most(LOCKED);
    if more {
        std::thread::sleep(pause(polls));
    }
    more
}

fn pause(look: u32) -> Duration {
    (MIN_POLL_INTERVAL * (1 << look.min(6))).min(MAX_POLL_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_and_end() {
        assert!(
            pause(0) < pause(1)
                && pause(5) <= pause(6)
                && pause(6) == MAX_POLL_INTERVAL
                && pause(1000) == MAX_POLL_INTERVAL
        );
        assert!(!again(1_000_000), "it ends");
        assert!(again(0));
    }

    #[test]
    fn a_folder_that_somebody_holds_is_not_waited_for_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n.db");
        let first = Turn::wait(&path);
        assert!(first._folder.is_some());
        let held = File::open(folder.path()).unwrap();
        assert!(held.try_lock().is_err());
        drop(first);
        held.try_lock().unwrap();
        drop(held);
        assert!(Turn::wait(&folder.path().join("absent/n.db"))._folder.is_none());
    }
}
