//! What the calling thread, or its ended children, have consumed: getrusage(2).

use std::mem::MaybeUninit;
use std::ops::{AddAssign, Sub};

/// Consumption of a thread, or its growth between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Faults served without input or output.
    pub minor: u64,
    /// Faults that waited for input.
    pub major: u64,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
    /// Bytes read from block devices on the thread's account, read-ahead and swap included (the
    /// kernel's resolution is 512).
    pub read: u64,
    /// Processor time in user mode, ns (the kernel's resolution is a microsecond).
    pub user: u64,
    /// Processor time in the kernel, ns.
    pub system: u64,
    /// Both, ns: of [`thread_up_to_date`] as the thread's own clock has it, else their sum.
    pub processor: u64,
}

impl Usage {
    /// What a process tells another in shared memory.
    pub fn told(self) -> [u64; 5] {
        [self.minor, self.major, self.user, self.system, self.processor]
    }

    /// What was told, number by number.
    pub fn of_told(number: impl FnMut(usize) -> u64) -> Self {
        let [minor, major, user, system, processor] = std::array::from_fn(number);
        Self { minor, major, user, system, processor, ..Self::default() }
    }
}

/// The calling thread's consumption so far.
#[inline]
pub fn thread() -> Usage {
    usage(&raw_usage(libc::RUSAGE_THREAD))
}

/// The consumption of all threads of the calling process, those that ended included.
pub fn process() -> Usage {
    usage(&raw_usage(libc::RUSAGE_SELF))
}

/// The consumption of all children that ended and were waited for, and of theirs.
pub fn children() -> Usage {
    usage(&raw_usage(libc::RUSAGE_CHILDREN))
}

/// The greatest resident set of any one of those children, bytes. The kernel counts that of whoever
/// executed a child's program as the child's.
pub fn children_peak() -> u64 {
    raw_usage(libc::RUSAGE_CHILDREN).ru_maxrss as u64 * 1024
}

/// The greatest resident set of the calling process, bytes.
pub fn process_peak() -> u64 {
    raw_usage(libc::RUSAGE_SELF).ru_maxrss as u64 * 1024
}

#[inline]
fn raw_usage(who: libc::c_int) -> libc::rusage {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `raw` is a writable rusage. Should the call fail (it cannot with these arguments) the
    // zeroes stay, which are a valid rusage.
    unsafe {
        libc::getrusage(who, raw.as_mut_ptr());
        raw.assume_init()
    }
}

#[inline]
fn usage(raw: &libc::rusage) -> Usage {
    let time = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    Usage {
        minor: raw.ru_minflt as u64,
        major: raw.ru_majflt as u64,
        voluntary: raw.ru_nvcsw as u64,
        involuntary: raw.ru_nivcsw as u64,
        read: raw.ru_inblock as u64 * 512,
        user: time(raw.ru_utime),
        system: time(raw.ru_stime),
        processor: time(raw.ru_utime) + time(raw.ru_stime),
    }
}

/// The same with processor times up to this very moment. The kernel brings a running thread's times up
/// to date at its ticks, milliseconds apart, unless its own clock is read first.
pub fn thread_up_to_date() -> Usage {
    let processor = thread_time();
    Usage { processor, ..thread() }
}

/// The same of all threads of the calling process.
pub fn process_up_to_date() -> Usage {
    let processor = process_time();
    Usage { processor, ..process() }
}

/// The calling process's processor time so far, ns.
pub fn process_time() -> u64 {
    nanoseconds(rustix::time::ClockId::ProcessCPUTime)
}

/// The calling thread's processor time so far, ns.
pub fn thread_time() -> u64 {
    nanoseconds(rustix::time::ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Usage {
    /// Each figure of both, put together.
    #[inline]
    fn with(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            minor: both(self.minor, other.minor),
            major: both(self.major, other.major),
            voluntary: both(self.voluntary, other.voluntary),
            involuntary: both(self.involuntary, other.involuntary),
            read: both(self.read, other.read),
            user: both(self.user, other.user),
            system: both(self.system, other.system),
            processor: both(self.processor, other.processor),
        }
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = self.with(other, |a, b| a + b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;

    /// Intervals far shorter than a tick add up to what the thread's own clock says.
    #[test]
    fn short_intervals_are_counted() {
        let clock = thread_time;
        let (mut counted, mut spent) = (0, 0);
        for _ in 0..100 {
            let (begin, before) = (clock(), thread_up_to_date());
            while clock() - begin < 50_000 {
                std::hint::spin_loop();
            }
            let used = thread_up_to_date() - before;
            counted += used.user + used.system;
            spent += clock() - begin;
        }
        assert!(counted * 10 > spent * 8, "{counted} of {spent} ns");
    }

    #[test]
    fn first_writes_are_minor_faults() {
        let region = Region::anonymous(64).unwrap();
        let before = thread_up_to_date();
        region.populate(|_, _| {});
        let used = thread_up_to_date() - before;
        assert!(used.minor >= 64, "{used:?}");
    }
}
