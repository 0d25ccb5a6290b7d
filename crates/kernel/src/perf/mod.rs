//! Kernel events: tracepoints and function calls counted, and samples of where the kernel is,
//! through perf_event_open(2).
//!
//! Works without a hardware counter: tracepoints and the software clock `cpu-clock` are enough.
//! Needs CAP_PERFMON or root (or `kernel.perf_event_paranoid` below 0 for what is not one's own).

pub mod counting;
pub mod functions;
pub mod profile;
mod ring;
pub mod symbols;
mod tracefs;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use pagelab_procfs::list;

use crate::files::is_capable;

pub use counting::{Counted, Counting};
pub use profile::{Profile, Sampling};

/// `struct perf_event_attr` (include/uapi/linux/perf_event.h), its first version and the fields that
/// are used here: 64 bytes, which every kernel since 2.6.32 takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period_or_frequency: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    /// Of a breakpoint the address, of a probe that of the function's name.
    address: u64,
}

const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
const CPU_CLOCK: u64 = 0;
const PAGE_FAULTS: u64 = 2;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_RAW: u64 = 1 << 10;

const FLAG_DISABLED: u64 = 1;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_FREQUENCY: u64 = 1 << 10;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;

const IOCTL_ENABLE: libc::c_ulong = 0x2400;
const IOCTL_DISABLE: libc::c_ulong = 0x2401;
const IOCTL_SET_BPF: libc::c_ulong = 0x4004_2408;

/// An open event.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    /// Opens it for the process `pid` (0: the caller; −1: any) on the processor `cpu` (−1: any).
    fn open(attributes: Attributes, pid: i32, cpu: i32) -> io::Result<Self> {
        const CLOEXEC: libc::c_ulong = 8;
        let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes };
        // SAFETY: the structure is as long as it says and outlives the call.
        let raw =
            unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, pid, cpu, -1, CLOEXEC) };
        let raw = i32::try_from(raw).map_err(io::Error::other)?;
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else has.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// The tracepoint of that number, whoever meets it.
    pub(crate) fn everywhere(tracepoint: u64) -> io::Result<Self> {
        let attributes = Attributes { kind: TRACEPOINT, config: tracepoint, ..Attributes::default() };
        Self::open(attributes, -1, cpus().first().copied().unwrap_or(0))
    }

    /// Hangs a BPF program on the event: of a tracepoint, it runs on every processor.
    pub(crate) fn attach(&self, program: i32) -> io::Result<()> {
        // SAFETY: no pointers.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), IOCTL_SET_BPF, program) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn control(&self, request: libc::c_ulong) {
        // SAFETY: no pointers. Neither request fails on an open event.
        unsafe { libc::ioctl(self.0.as_raw_fd(), request, 0) };
    }
}

/// The processors online.
fn cpus() -> Vec<i32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    list(&text).into_iter().map(|cpu| cpu as i32).collect()
}

/// Whether this user may count and sample in the kernel. Looks only: an event opened before a run
/// would switch on hooks in the kernel that the run then pays for (a first touch was seen to change
/// by 2.7% of its instructions).
///
/// # Errors
/// Why not.
pub fn permitted() -> Result<(), String> {
    /// linux/capability.h: CAP_SYS_ADMIN, CAP_PERFMON.
    const SUFFICIENT_CAPABILITIES: [u32; 2] = [21, 38];
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_err(|_| "this kernel has no perf events".to_owned())?;
    if SUFFICIENT_CAPABILITIES.into_iter().any(is_capable)
        || paranoid.trim().parse::<i32>().is_ok_and(|level| level < 0)
    {
        return Ok(());
    }
    Err(format!("kernel.perf_event_paranoid is {} for this user", paranoid.trim()))
}

/// What to do when events are refused.
pub const REMEDY: &str =
    "kernel events need root or CAP_PERFMON, and kernel.perf_event_paranoid at -1 for other users";
