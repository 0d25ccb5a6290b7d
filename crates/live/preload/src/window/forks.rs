//! Handlers around fork(2): the child gets a copy of moved memory, and a recording of its own.
//!
//! Moved memory is shared, so a child would write to its parent's memory. The parent waits until
//! the child has copied all of it.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use super::system::{self, Area, PAGE, READABLE};
use super::{events, memory, record, state};

/// A pipe; the child closes its end after it has copied the memory.
static PIPE: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];
/// Whether the forking process is recorded.
static FORKING: AtomicI32 = AtomicI32::new(0);
/// Entries of mincore(2) read at a time.
const ENTRIES: usize = 4096;

/// Runs before the fork.
pub extern "C" fn before() {
    if !state::hold() {
        return;
    }
    let mut ends: [c_int; 2] = [-1; 2];
    // SAFETY: two numbers are writable.
    unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    PIPE.iter().zip(ends).for_each(|(end, file)| end.store(system::high(file), Relaxed));
    memory::each_moved(|area| {
        system::advise(area.start, area.end - area.start, libc::MADV_DOFORK);
    });
    FORKING.store(1, Relaxed);
}

/// Runs after the fork, in the parent.
pub extern "C" fn parent() {
    if FORKING.swap(0, Relaxed) == 0 {
        return;
    }
    system::close(PIPE[1].swap(-1, Relaxed));
    let mut byte = 0u8;
    // SAFETY: one byte is writable. The read ends when the child has closed its end or is gone.
    while unsafe { libc::read(PIPE[0].load(Relaxed), (&raw mut byte).cast(), 1) } < 0 && is_interrupted() {}
    system::close(PIPE[0].swap(-1, Relaxed));
    memory::each_moved(|area| {
        system::advise(area.start, area.end - area.start, libc::MADV_DONTFORK);
    });
    state::release(false);
}

fn is_interrupted() -> bool {
    // SAFETY: the thread's own number.
    unsafe { *libc::__errno_location() == libc::EINTR }
}

/// Runs after the fork, in the child.
pub extern "C" fn child() {
    if FORKING.swap(0, Relaxed) == 0 {
        return;
    }
    system::close_files();
    let mut whole = system::open();
    if whole {
        let all = has_swap();
        memory::each_moved(|area| whole &= private(area, all));
    }
    if !whole {
        // Otherwise the child would write to its parent's memory.
        // SAFETY: no pointers.
        unsafe { libc::syscall(libc::SYS_exit_group, 127) };
    }
    PIPE.iter().for_each(|end| system::close(end.swap(-1, Relaxed)));
    memory::close();
    events::forget();
    record::forget();
    state::release(true);
    state::begin_forked();
}

/// Whether pages may be in swap, where mincore(2) does not see them.
fn has_swap() -> bool {
    // SAFETY: the structure is writable.
    unsafe {
        let mut about: libc::sysinfo = std::mem::zeroed();
        libc::sysinfo(&mut about) != 0 || about.totalswap > 0
    }
}

/// Replaces a shared mapping by a private copy; `all`: also copies pages that mincore(2) reports as
/// absent. Returns whether this succeeded.
fn private(area: &Area, all: bool) -> bool {
    let length = area.end - area.start;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let new = system::map(length, flags, -1, 0);
    if new == 0 || area.flags & READABLE == 0 && !system::protect(area.start, length, READABLE) {
        return false;
    }
    let mut list = [0u8; ENTRIES];
    let mut at = 0;
    while at < length {
        let count = ((length - at) / PAGE).min(ENTRIES);
        // SAFETY: the list has at least `count` entries.
        let told = unsafe {
            libc::mincore(ptr::with_exposed_provenance_mut(area.start + at), count * PAGE, list.as_mut_ptr())
        };
        for (n, entry) in list[..count].iter().enumerate() {
            if all || told != 0 || entry & 1 != 0 {
                memory::copy_page(area.start + at + n * PAGE, new + at + n * PAGE);
            }
        }
        at += count * PAGE;
    }
    system::protect(new, length, area.flags) && system::move_over(new, length, area.start)
}
