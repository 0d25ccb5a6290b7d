//! A program's references through a window: of its K most recent pages nothing is recorded, of
//! every other page each fault.
//!
//! Memory is hidden by removing it from the page table. So that it keeps its content, private
//! memory is first moved to files in memory ([`memory`]); a hidden page costs its next reference
//! one page fault, which the kernel resolves and records ([`events`]). After 64 faults the kernel
//! raises SIGTRAP in the thread that made them: its handler reads their addresses, writes them down
//! ([`record`]), and hides as many of the oldest pages. So the window has K to K + 64 pages in a
//! program with one thread. Nothing else runs beside the program.
//!
//! While a program has one thread, new memory is found by its faults, in the handler, between two
//! instructions of the program. As soon as it has more, the functions that give memory tell of it
//! ([`threads`]).

mod events;
mod forks;
mod memory;
mod pages;
mod record;
pub mod state;
mod system;
mod threads;

use std::ffi::c_char;

/// The path of the file that is shared with pagelab.
pub const VARIABLE: &[u8] = b"PAGELAB_WINDOW\0";

/// Begins in a program that was started with the path of the shared file in its environment.
///
/// # Safety
/// Before the program's threads; `path` ends with a zero.
pub unsafe fn begin(path: *const c_char) {
    // SAFETY: the caller's promise; the functions around a fork take the lock themselves.
    unsafe {
        state::begin(path);
        libc::pthread_atfork(Some(forks::before), Some(forks::parent), Some(forks::child));
    }
}
