//! A thread kept to some processors: what it measures does not move between caches, and with one processor takes
//! turns.

use pagelab_experiment::Failure;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::observe::failed;

/// The processors that the calling thread may use.
///
/// # Errors
/// When the kernel refuses to say.
pub fn allowed() -> Result<Vec<usize>, Failure> {
    let set = sched_getaffinity(None).map_err(|e| failed("looking at processors")(e.into()))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Keeps the calling thread to one processor for good.
///
/// # Errors
/// When the kernel refuses.
pub fn keep_to(processor: usize) -> Result<(), Failure> {
    let mut chosen = CpuSet::new();
    chosen.set(processor);
    sched_setaffinity(None, &chosen).map_err(|e| failed("choosing a processor")(e.into()))
}

/// The calling thread kept to some processors; back where it was when dropped.
#[derive(Debug)]
pub struct Kept(CpuSet);

impl Kept {
    /// To the first `count` of those that it may use.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn to(count: usize) -> Result<Self, Failure> {
        let error = |e: rustix::io::Errno| failed("choosing processors")(e.into());
        let before = sched_getaffinity(None).map_err(error)?;
        let mut chosen = CpuSet::new();
        let allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| before.is_set(cpu));
        allowed.take(count.max(1)).for_each(|cpu| chosen.set(cpu));
        sched_setaffinity(None, &chosen).map_err(error)?;
        Ok(Self(before))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}
