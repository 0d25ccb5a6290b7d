//! A process that leaves this program behind: nothing stays mapped but a page or two of stack, the
//! program's code and what the caller names.
//!
//! A fork goes through every mapping of its process, those too that the child does not get: with
//! this program's forty or so it takes 1.4 times as long as a C program's. What runs here may touch
//! nothing of Rust's statics or of the C library's: code of this program that asks the kernel
//! directly ([`bare::call`]), and memory that was kept.

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::ptr::with_exposed_provenance_mut;

use pagelab_kernel::perf::counting;
use pagelab_kernel::region::{HugePages, Region, page_size};

use crate::harness::bare::{self, Range, call};

/// Pages of the new stack, of which one or two get used.
const STACK: usize = 8;
/// The most ranges that are kept: code, stack, the thread's own page, the names of counted
/// functions, and four of the caller's.
const MAX_PINNED_RANGES: usize = 8;

/// What stays mapped, and whether children get it.
#[derive(Clone, Debug)]
pub(crate) struct Pinned {
    range: Range,
    inherited: bool,
}

impl Pinned {
    /// These addresses.
    pub(crate) fn new(range: Range, inherited: bool) -> Self {
        Self { range, inherited }
    }
}

/// What a process that left everything behind knows of itself.
#[derive(Debug)]
pub(crate) struct Alone {
    stack: Range,
    thread: Range,
    page: usize,
    pagemap: i32,
}

impl Alone {
    /// The pages that a fork copies beyond the caller's: those present of the stack, and the
    /// thread's own where the kernel writes into it. `None` where the kernel does not show them.
    #[inline(always)]
    pub(crate) fn residual(&self) -> Option<u64> {
        let (mut entry, mut present) = (0_u64, 0);
        for range in [&self.stack, &self.thread] {
            let mut at = range.start;
            while at < range.end {
                let place = [self.pagemap as usize, (&raw mut entry) as usize, 8, at / self.page * 8];
                // SAFETY: reads eight bytes into the entry.
                if unsafe { call(libc::SYS_pread64, place) } != 8 {
                    return None;
                }
                present += entry >> 63;
                at += self.page;
            }
        }
        Some(present)
    }
}

/// Ends the process.
#[inline(always)]
pub(crate) fn exit(status: usize) -> ! {
    loop {
        // SAFETY: touches no memory, and does not return.
        unsafe { call(libc::SYS_exit_group, [status, 0, 0, 0]) };
    }
}

/// What is done once everything is left: it must not return, and ends with [`exit`].
pub(crate) type Then<S> = extern "C" fn(&mut S, &Alone) -> !;

/// What stands at the top of the new stack.
struct Start<S> {
    gaps: [Range; MAX_PINNED_RANGES + 1],
    then: Then<S>,
    alone: Alone,
    state: S,
}

/// Unmaps everything but the code, a new stack and `kept`, and goes on as `then` with `state`,
/// which stands on that stack. Never returns where it succeeds.
///
/// # Errors
/// When the kernel does not show what is mapped, or refuses memory; then nothing is unmapped.
///
/// # Safety
/// Nobody else uses this process's memory: it has one thread. `then` and what it calls touch nothing but the state, the
/// stack and what is kept.
pub(crate) unsafe fn leave<S>(
    kept: &[Pinned],
    state: S,
    then: Then<S>,
) -> io::Result<std::convert::Infallible> {
    let maps = pagelab_kernel::files::text("/proc/self/maps")?;
    let mapped: Vec<Range> = maps.lines().filter_map(bare::range).collect();
    let code = go::<S> as *const () as usize;
    let code = mapped.iter().find(|range| range.contains(&code));
    let code = code.ok_or_else(|| io::Error::other("no mapping has this code"))?.clone();
    let stack = Region::anonymous(STACK)?;
    // Refused by kernels without huge pages, where it is not needed.
    let _ = stack.advise(HugePages::Forbidden);
    let bottom = stack.base().expose_provenance();
    let thread = bare::written_pages();
    let mut all: Vec<Range> = kept.iter().map(|kept| kept.range.clone()).collect();
    let names = counting::names();
    all.extend([code, bottom..bottom + stack.bytes(), thread.clone(), names.clone()]);
    let start = Start {
        gaps: gaps(all, mapped),
        then,
        alone: Alone {
            stack: bottom..bottom + stack.bytes(),
            thread,
            page: page_size(),
            pagemap: File::open("/proc/self/pagemap").map_or(-1, IntoRawFd::into_raw_fd),
        },
        state,
    };
    for Pinned { range, inherited } in kept.iter().chain([&Pinned::new(names, false)]) {
        if !inherited && !range.is_empty() {
            // SAFETY: the advice changes nothing for this process.
            unsafe {
                libc::madvise(with_exposed_provenance_mut(range.start), range.len(), libc::MADV_DONTFORK)
            };
        }
    }
    // SAFETY: the start lies within the new stack, aligned, and the stack goes down from there; it
    // is never unmapped. What this function and its callers own is not dropped but unmapped with
    // all the rest.
    unsafe {
        let top = stack.base().add(stack.bytes() - size_of::<Start<S>>());
        let top = top.sub(top.addr() % 64).cast::<Start<S>>();
        top.write(start);
        std::mem::forget(stack);
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!(
            "mov rsp, rdi",
            "xor ebp, ebp",
            "call {go}",
            "ud2",
            go = sym go::<S>,
            in("rdi") top,
            options(noreturn),
        );
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!(
            "mov sp, x0",
            "mov x29, xzr",
            "bl {go}",
            "brk #0",
            go = sym go::<S>,
            in("x0") top,
            options(noreturn),
        );
    }
}

/// On the new stack.
extern "C" fn go<S>(start: *mut Start<S>) -> ! {
    // SAFETY: `leave` wrote it. Each gap is unmapped whole: nothing in it is used again.
    unsafe {
        let mut gap = (&raw const (*start).gaps).cast::<Range>();
        let last = gap.add(MAX_PINNED_RANGES + 1);
        while gap < last {
            let (at, length) = ((*gap).start, (*gap).end - (*gap).start);
            if length > 0 {
                call(libc::SYS_munmap, [at, length, 0, 0]);
            }
            gap = gap.add(1);
        }
        ((*start).then)(&mut (*start).state, &(*start).alone)
    }
}

/// What lies between the ranges that are kept, up to the end of what is mapped; empty ones at the end.
///
/// # Panics
/// When more is kept than [`MAX_PINNED_RANGES`].
fn gaps(mut kept: Vec<Range>, mapped: Vec<Range>) -> [Range; MAX_PINNED_RANGES + 1] {
    kept.retain(|range| !range.is_empty());
    assert!(kept.len() <= MAX_PINNED_RANGES, "{} ranges kept", kept.len());
    kept.sort_by_key(|range| range.start);
    // Beyond lies the kernel, and what it shows of itself.
    let end =
        mapped.iter().map(|range| range.end).filter(|&end| end <= isize::MAX as usize).max().unwrap_or(0);
    let mut gaps: [Range; MAX_PINNED_RANGES + 1] = std::array::from_fn(|_| 0..0);
    let mut at = 0;
    for (gap, next) in gaps.iter_mut().zip(kept.into_iter().chain(std::iter::once(end..end))) {
        *gap = at..next.start.max(at);
        at = next.end.max(at);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gaps_are_all_that_is_not_kept() {
        let gaps = gaps(vec![40..50, 10..20, 0..0], vec![5..60, usize::MAX - 9..usize::MAX]);
        assert_eq!((&gaps[..3], &gaps[3]), (&[0..10, 20..40, 50..60][..], &(0..0)));
    }
}
