//! Children of an experiment, forked from the worker, and the memory in which they report.
//!
//! A child dies with the process that forked it, and all are ended when the [`Family`] is dropped.
//! Only a process with one thread may fork one (a child of a threaded process could wait for ever for
//! a lock that a thread held which it has not got): workers and a guest's init have one.

use std::io;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;

use pagelab_experiment::{Failure, FailureKind};
use pagelab_kernel::region::{Region, page_size};

use crate::harness::context::ExecutionContext;

/// Cells that the parent and all its children share; all 0 at first.
#[derive(Debug)]
pub struct Barrier {
    region: Region,
    cells: usize,
}

impl Barrier {
    /// A barrier of `cells` cells. To be made before the children.
    ///
    /// # Errors
    /// When the kernel refuses memory.
    pub fn new(cells: usize) -> io::Result<Self> {
        let region = Region::shared((cells * size_of::<AtomicU64>()).div_ceil(page_size()).max(1))?;
        Ok(Self { region, cells })
    }

    /// The addresses of the memory.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.region.range()
    }
}

impl Deref for Barrier {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is aligned to a page, at least as long, zeroed (a valid AtomicU64),
        // lives as long as self, and everybody uses it as atomics alone.
        unsafe { std::slice::from_raw_parts(self.region.base().cast::<AtomicU64>(), self.cells) }
    }
}

/// Forked children.
#[derive(Debug, Default)]
pub struct Family {
    running: Vec<libc::pid_t>,
}

/// How a child ended that should not have.
#[derive(Debug)]
pub struct Lost {
    /// As wait(2) has it.
    status: i32,
}

impl Lost {
    /// As an error: out of memory where the kernel killed it inside the place's limit.
    pub fn error(&self, context: &ExecutionContext) -> Failure {
        match (libc::WIFSIGNALED(self.status).then(|| libc::WTERMSIG(self.status)), context.limit()) {
            (Some(libc::SIGKILL), Some(limit)) => Failure::out_of_memory(limit),
            (Some(signal), _) => Failure::new(
                FailureKind::WorkerDied { signal: Some(signal) },
                format!("a process of the experiment was ended by signal {signal}"),
            ),
            (None, _) => Failure::new(
                FailureKind::WorkerDied { signal: None },
                format!("a process of the experiment ended with status {}", libc::WEXITSTATUS(self.status)),
            ),
        }
    }
}

impl Family {
    /// Forks a child that does `work` and exits with what it returns (0: well); a panic exits with 101.
    ///
    /// # Errors
    /// When the kernel refuses another process.
    pub fn fork(&mut self, work: impl FnOnce() -> i32) -> io::Result<()> {
        // SAFETY: the calling process has one thread (see the module's comment).
        let parent = unsafe { libc::getpid() };
        // SAFETY: likewise.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: neither call touches memory; the second ends a child whose parent ended first.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    if libc::getppid() != parent {
                        libc::_exit(1);
                    }
                }
                let status = catch_unwind(AssertUnwindSafe(work)).unwrap_or(101);
                // SAFETY: ends the child without running the parent's destructors.
                unsafe { libc::_exit(status) }
            }
            child => {
                self.running.push(child);
                Ok(())
            }
        }
    }

    /// The children still running; takes notice of those that ended.
    ///
    /// # Errors
    /// [`Lost`] when one did not end with 0.
    pub fn poll(&mut self) -> Result<usize, Lost> {
        let mut lost = None;
        self.running.retain(|&child| {
            let mut status = 0;
            // SAFETY: `status` is writable; the child is ours.
            let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == child;
            if ended && status != 0 {
                lost = Some(Lost { status });
            }
            !ended
        });
        lost.map_or(Ok(self.running.len()), Err)
    }

    /// The process ids of those still running.
    pub fn pids(&self) -> &[libc::pid_t] {
        &self.running
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for &child in &self.running {
            // SAFETY: a child that has not been waited for keeps its id, so this meets no other.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
    }
}
