//! Marks that start and stop counting: two no-op instructions by which a workload in a guest tells
//! its virtual machine which part to count. execve(2) and wait4(2) have versions that adjoin a
//! mark, so that no code of this program runs between a mark and the executed program.

use std::ffi::{c_char, c_int};
use std::io;

/// Starts the machine's counting.
#[cfg(target_arch = "x86_64")]
pub fn begin() {
    // SAFETY: a no-op instruction (nopl with a displacement, `pagelab_ring::BEGIN`).
    unsafe { std::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x50, 0x4c, 0x31, 0x62") };
}

/// Stops the machine's counting.
#[cfg(target_arch = "x86_64")]
pub fn end() {
    // SAFETY: as for `begin` (`pagelab_ring::END`).
    unsafe { std::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x50, 0x4c, 0x31, 0x65") };
}

/// [`begin`], then execve(2). Returns only if that fails, with the error.
///
/// # Safety
/// `path` is a C string; `arguments` and `environment` are null-terminated arrays of C strings.
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
/// When there is no such child, or a signal interrupts the wait.
#[cfg(target_arch = "x86_64")]
pub fn wait(child: libc::pid_t) -> io::Result<c_int> {
    let (mut result, mut status) = (libc::SYS_wait4, 0);
    // SAFETY: the call writes only the status.
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

/// Does nothing: no machine counts on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn begin() {}

/// Does nothing: no machine counts on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn end() {}

/// execve(2). Returns only if that fails, with the error.
///
/// # Safety
/// `path` is a C string; `arguments` and `environment` are null-terminated arrays of C strings.
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
/// When there is no such child, or a signal interrupts the wait.
#[cfg(not(target_arch = "x86_64"))]
pub fn wait(child: libc::pid_t) -> io::Result<c_int> {
    let mut status = 0;
    // SAFETY: the status is writable.
    let result = unsafe { libc::waitpid(child, &mut status, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}
