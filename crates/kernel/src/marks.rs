//! Two instructions that do nothing, by which a load in a guest says from where to where the
//! machine that it runs in is to count; and two system calls right beside them, so that nothing of
//! this program is between a mark and a program that it executes.

use std::ffi::{c_char, c_int};
use std::io;

/// From here on the machine counts.
#[cfg(target_arch = "x86_64")]
pub fn begin() {
    // SAFETY: an instruction that does nothing (nopl with a displacement, pagelab_ring::BEGIN).
    unsafe { std::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x50, 0x4c, 0x31, 0x62") };
}

/// Up to here the machine counts.
#[cfg(target_arch = "x86_64")]
pub fn end() {
    // SAFETY: as for `begin` (pagelab_ring::END).
    unsafe { std::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x50, 0x4c, 0x31, 0x65") };
}

/// [`begin`], then execve(2). Returns only the error.
///
/// # Safety
/// A path, and two lists of strings that end with a null pointer.
#[cfg(target_arch = "x86_64")]
pub unsafe fn execute(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> io::Error {
    let mut result = libc::SYS_execve;
    // SAFETY: the caller's pointers; the call writes no memory of this program, and no stack.
    unsafe {
        std::arch::asm!(
            ".byte 0x0f, 0x1f, 0x80, 0x50, 0x4c, 0x31, 0x62",
            "syscall",
            inlateout("rax") result,
            in("rdi") path,
            in("rsi") arguments,
            in("rdx") environment,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    io::Error::from_raw_os_error(-(result as i32))
}

/// wait4(2) for a child, then [`end`]. The status is that of waitpid(2).
///
/// # Errors
/// When there is no such child, or a signal came.
#[cfg(target_arch = "x86_64")]
pub fn wait(child: libc::pid_t) -> io::Result<c_int> {
    let (mut result, mut status) = (libc::SYS_wait4, 0);
    // SAFETY: the call writes the status alone.
    unsafe {
        std::arch::asm!(
            "syscall",
            ".byte 0x0f, 0x1f, 0x80, 0x50, 0x4c, 0x31, 0x65",
            inlateout("rax") result,
            in("rdi") i64::from(child),
            in("rsi") &raw mut status,
            in("rdx") 0,
            in("r10") 0,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    if result < 0 { Err(io::Error::from_raw_os_error(-(result as i32))) } else { Ok(status) }
}

/// No machine counts.
#[cfg(not(target_arch = "x86_64"))]
pub fn begin() {}

/// No machine counts.
#[cfg(not(target_arch = "x86_64"))]
pub fn end() {}

/// execve(2). Returns only the error.
///
/// # Safety
/// A path, and two lists of strings that end with a null pointer.
#[cfg(not(target_arch = "x86_64"))]
pub unsafe fn execute(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> io::Error {
    // SAFETY: the caller's pointers.
    unsafe { libc::execve(path, arguments, environment) };
    io::Error::last_os_error()
}

/// waitpid(2) for a child: its status.
///
/// # Errors
/// When there is no such child, or a signal came.
#[cfg(not(target_arch = "x86_64"))]
pub fn wait(child: libc::pid_t) -> io::Result<c_int> {
    let mut status = 0;
    // SAFETY: the status is writable.
    let result = unsafe { libc::waitpid(child, &mut status, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}
