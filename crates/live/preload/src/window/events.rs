//! Two perf events per thread: one writes the addresses of page faults into a ring, the other
//! raises a signal after every 64 faults.
//!
//! `PERF_COUNT_SW_PAGE_FAULTS` with `PERF_SAMPLE_ADDR` fills the ring. The same event with a period
//! of 64 and `sigtrap` raises SIGTRAP in the thread when it returns to user mode. See
//! perf_event_open(2).

use std::ffi::c_int;
use std::mem::size_of;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize};

use super::system::{self, PAGE};

/// Faults between two signals.
pub const PERIOD: usize = 64;
/// Maximum number of threads recorded at a time.
pub const THREADS: usize = 256;
/// Size of a ring in bytes.
const RING: usize = 16 * PAGE;
/// Maximum number of faults in a ring.
pub const FAULTS: usize = RING / 16;

const SOFTWARE: u32 = 1;
const PAGE_FAULTS: u64 = 2;
const ADDRESS: u64 = 1 << 3;
/// Attribute bits: `exclude_kernel`, `exclude_hv`, `remove_on_exec`, `sigtrap`.
const NO_KERNEL: u64 = 1 << 5;
const NO_HYPERVISOR: u64 = 1 << 6;
const UNTIL_EXEC: u64 = 1 << 36;
const TRAP: u64 = 1 << 37;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSES: u64 = 8;

const SAMPLE: u32 = 9;
/// The CPU mode in a record's `misc`, and its value for a fault that the kernel took while it read
/// or wrote for the program.
const MODE: u32 = 7;
const OF_KERNEL: u32 = 1;

/// `struct perf_event_attr`, version 7.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sampled: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    registers: u64,
    stack: u32,
    clock: i32,
    interrupted: u64,
    auxiliary: [u32; 2],
    auxiliary_size: u32,
    reserved: u32,
    data: u64,
}

/// The events of a thread.
struct Events {
    used: AtomicBool,
    ring: AtomicUsize,
    files: [AtomicI32; 2],
}

static EVENTS: [Events; THREADS] = [const {
    Events {
        used: AtomicBool::new(false),
        ring: AtomicUsize::new(0),
        files: [const { AtomicI32::new(-1) }; 2],
    }
}; THREADS];
/// One more than the highest index ever used.
static USED: AtomicU32 = AtomicU32::new(0);
/// Whether faults in kernel mode go unrecorded, because this user may not record them.
static WITHOUT_KERNEL: AtomicBool = AtomicBool::new(false);

/// Whether faults in kernel mode go unrecorded.
pub fn is_without_kernel() -> bool {
    WITHOUT_KERNEL.load(Relaxed)
}

fn event(period: u64, sampled: u64, flags: u64, data: u64) -> c_int {
    let open = |more: u64| {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: PAGE_FAULTS,
            period,
            sampled,
            flags: flags | more | NO_HYPERVISOR | UNTIL_EXEC,
            data,
            ..Attributes::default()
        };
        // SAFETY: the attributes have the size that they state; the event is of the calling thread,
        // on any CPU.
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOSES) as c_int }
    };
    let mut file = if is_without_kernel() { -1 } else { open(0) };
    if file < 0 {
        file = open(NO_KERNEL);
        if file >= 0 {
            WITHOUT_KERNEL.store(true, Relaxed);
        }
    }
    system::high(file)
}

/// Begins to record the calling thread. Returns the index of its events, or `None` if the kernel
/// refuses or all entries are in use.
pub fn begin() -> Option<usize> {
    let free = |events: &&Events| events.used.compare_exchange(false, true, Acquire, Relaxed).is_ok();
    let number = EVENTS.iter().position(|events| free(&events))?;
    let events = &EVENTS[number];
    let faults = event(1, ADDRESS, 0, 0);
    let ring = if faults < 0 { 0 } else { system::map(PAGE + RING, libc::MAP_SHARED, faults, 0) };
    events.ring.store(ring, Release);
    USED.fetch_max(number as u32 + 1, Release);
    let trap = if ring == 0 { -1 } else { event(PERIOD as u64, 0, TRAP, number as u64) };
    events.files[0].store(faults, Relaxed);
    events.files[1].store(trap, Relaxed);
    if trap < 0 {
        end(number);
        return None;
    }
    Some(number)
}

/// Ends the recording of a thread. The caller has read its ring.
pub fn end(number: usize) {
    let Some(events) = EVENTS.get(number) else { return };
    for file in &events.files {
        system::close(file.swap(-1, Relaxed));
    }
    let ring = events.ring.swap(0, Relaxed);
    if ring != 0 {
        system::unmap(ring, PAGE + RING);
    }
    events.used.store(false, Release);
}

/// Drops the parent's events in a forked child, which does not have their rings.
pub fn forget() {
    for events in &EVENTS {
        events.ring.store(0, Relaxed);
        if events.used.load(Relaxed) {
            events.files.iter().for_each(|file| system::close(file.swap(-1, Relaxed)));
            events.used.store(false, Relaxed);
        }
    }
}

/// Upper bound of the indexes of rings in use.
pub fn rings() -> usize {
    USED.load(Acquire) as usize
}

/// Passes to `each` the address of each fault in a thread's ring, and whether the kernel took the
/// fault. Returns whether faults were lost.
pub fn read(number: usize, mut each: impl FnMut(usize, bool)) -> bool {
    let ring = EVENTS.get(number).map_or(0, |events| events.ring.load(Acquire));
    if ring == 0 {
        return false;
    }
    // SAFETY: the first page of the ring's mapping has `data_head` and `data_tail` at these
    // offsets; the records follow it.
    let (head, tail) = unsafe {
        let at = |offset: usize| &*ptr_at::<AtomicU64>(ring + offset);
        (at(1024), at(1032))
    };
    let word = |at: u64| {
        // SAFETY: within the ring, and aligned as all records are.
        unsafe { ptr_at::<u64>(ring + PAGE + (at as usize & (RING - 1))).read_volatile() }
    };
    let (end, mut at, mut lost) = (head.load(Acquire), tail.load(Relaxed), false);
    while at < end {
        let first = word(at);
        let (kind, misc, size) = (first as u32, (first >> 32) as u32 & 0xffff, first >> 48);
        match kind {
            SAMPLE => each(word(at + 8) as usize, misc & MODE == OF_KERNEL),
            _ => lost = true,
        }
        at += size.max(8);
    }
    tail.store(at, Release);
    lost
}

fn ptr_at<T>(address: usize) -> *const T {
    std::ptr::with_exposed_provenance(address)
}
