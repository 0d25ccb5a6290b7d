//! A thread pinned to some processors, so that it does not move between caches.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that the calling thread may use.
///
/// # Errors
/// When the kernel refuses to say.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Pins the calling thread to one processor for good.
///
/// # Errors
/// When the kernel refuses.
pub fn pin(processor: usize) -> io::Result<()> {
    let mut chosen = CpuSet::new();
    chosen.set(processor);
    Ok(sched_setaffinity(None, &chosen)?)
}

/// The calling thread pinned to some processors; its old set returns on drop.
#[derive(Debug)]
pub struct Pinned(CpuSet);

impl Pinned {
    /// Pins it to the first `count` processors that it may use.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn to(count: usize) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        let mut chosen = CpuSet::new();
        let allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| before.is_set(cpu));
        allowed.take(count.max(1)).for_each(|cpu| chosen.set(cpu));
        sched_setaffinity(None, &chosen)?;
        Ok(Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}
