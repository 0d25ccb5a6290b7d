//! Laps: processes that wait for one another, so that all make equal progress.
//!
//! Without them those whose segments happen to be in memory would run while the others wait for
//! theirs, and past the limit less memory would be active than the size says.
//!
//! And rounds of laps, for which they sleep until they are woken: those that looked again and again
//! would take the processor of the others, who still make their segments or read.

use std::io;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use pagelab_kernel::region::Region;
use rustix::thread::futex::{self, Flags, Timespec};

/// How often a process that waits looks whether it shall stop.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The round after the last.
pub const END: u32 = u32::MAX;

/// The place where the processes wait for one another; to be made before they are forked.
#[derive(Debug)]
pub struct Laps {
    region: Region,
    processes: u32,
}

/// What they share.
#[repr(C)]
struct Cells {
    /// How many have finished the lap that is on, and how many laps all have finished.
    lap: [AtomicU32; 2],
    /// The round that is on.
    round: AtomicU32,
}

impl Laps {
    /// For so many processes.
    ///
    /// # Errors
    /// When the kernel refuses memory.
    pub fn new(processes: usize) -> io::Result<Self> {
        Ok(Self { region: Region::shared(1)?, processes: processes as u32 })
    }

    fn cells(&self) -> &Cells {
        // SAFETY: the mapping is aligned to a page, longer, zeroed (valid for atomics), lives as long as
        // self, and everybody uses it as these atomics alone.
        unsafe { &*self.region.base().cast::<Cells>() }
    }

    /// Begins the round of this number, or, with [`END`], has the processes end.
    pub fn begin(&self, round: u32) {
        begin(&self.cells().round, round);
    }

    /// Waits for another round than `round`; its number.
    pub fn next(&self, round: u32) -> u32 {
        next(&self.cells().round, round)
    }

    /// Before the first lap, while nobody is on one.
    pub fn reset(&self) {
        self.cells().lap[0].store(0, Release);
    }

    /// Finishes a lap and waits until all have, or until `stop`.
    pub fn finish(&self, stop: impl Fn() -> bool) {
        finish(&self.cells().lap, self.processes, stop);
    }
}

fn begin(on: &AtomicU32, round: u32) {
    on.store(round, Release);
    // That nobody waits yet is no error.
    let _ = futex::wake(on, Flags::empty(), i32::MAX as u32);
}

fn next(on: &AtomicU32, round: u32) -> u32 {
    loop {
        let next = on.load(Acquire);
        if next != round {
            return next;
        }
        // It ends early when the round has begun meanwhile, and by a signal.
        let _ = futex::wait(on, Flags::empty(), round, None);
    }
}

fn finish([finished, laps]: &[AtomicU32; 2], processes: u32, stop: impl Fn() -> bool) {
    let lap = laps.load(Acquire);
    if finished.fetch_add(1, AcqRel) + 1 == processes {
        finished.store(0, Release);
        laps.fetch_add(1, AcqRel);
        // That nobody waited yet is no error.
        let _ = futex::wake(laps, Flags::empty(), i32::MAX as u32);
        return;
    }
    while laps.load(Acquire) == lap && !stop() {
        // It ends early when the lap did meanwhile, by a signal, and after the time to look.
        let _ = futex::wait(laps, Flags::empty(), lap, Some(&POLL_INTERVAL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn nobody_is_a_lap_ahead() {
        let cells = [const { AtomicU32::new(0) }; 2];
        let made = [const { AtomicU32::new(0) }; 4];
        std::thread::scope(|scope| {
            for mine in &made {
                scope.spawn(|| {
                    for lap in 0..2000 {
                        assert!(made.iter().all(|m| m.load(Relaxed).abs_diff(lap) <= 1));
                        mine.fetch_add(1, Relaxed);
                        finish(&cells, 4, || false);
                    }
                });
            }
        });
        assert!(made.iter().all(|m| m.load(Relaxed) == 2000));
    }

    #[test]
    fn waiters_for_a_round_wake() {
        let on = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| (next(&on, 0), next(&on, 1)));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished());
            begin(&on, 1);
            std::thread::sleep(std::time::Duration::from_millis(20));
            begin(&on, END);
            assert_eq!(waiting.join().unwrap(), (1, END));
        });
        assert_eq!(next(&on, 1), END, "one that has begun is not waited for");
    }

    #[test]
    fn lone_waiter_stops_on_request() {
        let cells = [const { AtomicU32::new(0) }; 2];
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| finish(&cells, 2, || stop.load(Relaxed)));
            std::thread::sleep(std::time::Duration::from_millis(60));
            assert!(!waiting.is_finished(), "it waits for the other");
            stop.store(true, Relaxed);
        });
        assert_eq!(cells[1].load(Relaxed), 0, "no lap was finished by all");
    }
}
