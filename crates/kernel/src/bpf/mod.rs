//! What the kernel counts for nobody, counted by small BPF programs on its tracepoints: system calls,
//! signals, lock waits and waits for code of each thread ([`tasks`]), executables' pages ([`pages`]),
//! requests that wait for a block device ([`requests`]), pauses for dirty pages ([`throttle`]), hits
//! and misses of the page cache ([`page_requests`]), its requests one by one
//! ([`page_requests::stream`]), and the pages that reclaim frees ([`reclaim`]).
//!
//! The programs add up in the kernel, so nothing is lost and nothing has to be copied out at each
//! event. Only requests and freed pages are copied, through rings that may overflow. Programs, maps
//! and their events belong to file descriptors: the kernel removes them when the process ends,
//! however it ends. Needs root (CAP_BPF and CAP_PERFMON)
//! and Linux 5.14.

mod assembler;
mod btf;
mod map;
pub mod page_requests;
pub mod pages;
mod program;
pub mod reclaim;
pub mod requests;
mod ring;
pub mod tasks;
pub mod throttle;

/// Why the kernel's tracepoints cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// This kernel lacks a tracepoint, or hides it.
    #[error(
        "this kernel has no tracepoint {0}, or tracefs is not mounted: run as root, on a kernel with \
        CONFIG_FTRACE"
    )]
    Tracepoint(String),
    /// This kernel has no BTF.
    #[error("this kernel has no {0}: it was built without CONFIG_DEBUG_INFO_BTF")]
    Types(&'static str),
    /// This kernel lacks a function that a program attaches to.
    #[error("this kernel has no function {0}, or the compiler inlined it")]
    Function(String),
    /// A structure of this kernel lacks a member.
    #[error("this kernel's BTF has no {0}: pagelab does not support its structures")]
    Member(String),
    /// The caller may not.
    #[error("tracing needs root (CAP_BPF and CAP_PERFMON): run with sudo")]
    Denied,
    /// The kernel said no.
    #[error("the kernel refused {what}: {error}")]
    Refused {
        /// What was refused.
        what: String,
        /// Its reason.
        error: std::io::Error,
    },
}

impl TraceError {
    fn refused(what: &str, error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Denied,
            _ => Self::Refused { what: what.to_owned(), error },
        }
    }
}

/// Now, on the clock that the programs read, in nanoseconds.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// bpf(2).
fn bpf(command: libc::c_long, attributes: &mut [u64; 16]) -> std::io::Result<i32> {
    // SAFETY: the structure is as long as said, all of it set; the callers keep alive what it points to.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of_val(attributes)) };
    if result < 0 {
        Err(std::io::Error::last_os_error())
    } else {
        i32::try_from(result).map_err(std::io::Error::other)
    }
}

/// Two words of four bytes in the place of one of eight.
fn pair(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}
