//! Records a program's references through a window. References to its K most recent pages go
//! unrecorded; a reference to any other page is a fault, which is recorded.
//!
//! The library hides a page by removing it from the page table. Private memory would lose its
//! content, so the library first moves it to memfds ([`memory`]). The next reference to a hidden
//! page takes one page fault, which the kernel resolves and records ([`events`]).
//!
//! After 64 faults the kernel raises SIGTRAP in the faulting thread. The handler reads the
//! addresses, records them ([`record`]), and hides as many of the oldest pages. In a program with
//! one thread the window therefore has K to K + 64 pages. The library starts no thread of its own.
//!
//! While a program has one thread, the handler finds new memory by its faults, between two
//! instructions of the program. With several threads, the wrapped allocation functions report new
//! memory ([`threads`]).

mod events;
mod forks;
mod memory;
mod pages;
mod record;
pub mod state;
mod system;
mod threads;

use std::ffi::c_char;

/// The environment variable with the path of the file shared with pagelab.
pub const VARIABLE: &[u8] = b"PAGELAB_WINDOW\0";

/// Begins to record a program that was started with the path of the shared file in its environment.
///
/// # Safety
/// Call it before the program has threads; `path` ends with a zero byte.
pub unsafe fn begin(path: *const c_char) {
    // SAFETY: the caller's promise; the functions around a fork take the lock themselves.
    unsafe {
        state::begin(path);
        libc::pthread_atfork(Some(forks::before), Some(forks::parent), Some(forks::child));
    }
}
