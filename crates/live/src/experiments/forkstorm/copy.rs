//! One copy of the storm: a process that leaves this program behind, forks, and waits for each child.
//!
//! Past `alone::leave` nothing may be touched but the stack, the region and the shared cells: no
//! static, no function of the C library (not even one that the compiler would call to copy memory),
//! nothing that allocates or panics.

use std::ffi::CString;

use pagelab_experiment::experiments::{Child, Forkstorm};
use pagelab_kernel::region::Region;

use crate::harness::alone::{self, Alone, Pinned};
use crate::harness::bare::{self, Arguments, call};
use crate::harness::family::Barrier;
use crate::harness::samples::Samples;

/// The argument on which a program that performs experiments exits at once, well.
pub const NOTHING: &str = "__nothing";

/// Cells of the barrier: the first says whether to go; then come those of each copy.
pub(super) const GO: usize = 0;
pub(super) const COMMON: usize = 8;
pub(super) const EACH: usize = 16;
/// Of a copy: 1 when it is ready; the nanoseconds of its own processor time in fork, and of the
/// clock from there to the child's end; forks made; when it started and when its last child ended;
/// pages left to its children, and one; what it had consumed before it went (minor and major
/// faults, user and system time).
pub(super) const READY: usize = 0;
pub(super) const FORKING: usize = 1;
pub(super) const ENDING: usize = 2;
pub(super) const FORKS: usize = 3;
pub(super) const STARTED: usize = 4;
pub(super) const ENDED: usize = 5;
pub(super) const RESIDUAL: usize = 6;
pub(super) const BEFORE: usize = 8;

/// Exit statuses: what could not be prepared, no fork, a child that ended badly.
const UNPREPARED: i32 = 2;
const NO_FORK: usize = 3;
const CHILD_FAILED: usize = 4;

/// What a copy has on its new stack.
struct Copy {
    child: bare::Child,
    arguments: Option<Arguments>,
    forks: u32,
    go: *const u64,
    cells: *mut u64,
    /// Of forks, and of what followed them: where the number of times stands, and where the times,
    /// with room for so many.
    times: [(*mut u32, *mut u32, usize); 2],
}

/// Makes the storm of a copy; `owners`: whose times of forks are its, which is its number, and
/// whose of what followed. Returns only where it could not be prepared.
pub(super) fn storm(
    forkstorm: &Forkstorm,
    forks: u32,
    barrier: &Barrier,
    times: &Samples,
    owners: [usize; 2],
) -> i32 {
    let [index, _] = owners;
    let Ok(region) = Region::base_pages(forkstorm.pages.max(1) as usize) else { return UNPREPARED };
    region.populate(|_, _| {});
    let nothing = CString::new(NOTHING).expect("no zero within");
    let arguments =
        (forkstorm.child == Child::Exec).then(|| Arguments::new(c"/proc/self/exe", c"pagelab", &nothing));
    let copy = Copy {
        child: bare::Child::new(&region, forkstorm.touch.min(forkstorm.pages) as usize),
        arguments,
        forks,
        go: barrier[GO].as_ptr(),
        cells: barrier[COMMON + index * EACH].as_ptr(),
        times: owners.map(|owner| times.of(owner).raw()),
    };
    let kept = [
        Pinned::new(region.range(), true),
        Pinned::new(barrier.range(), false),
        Pinned::new(times.range(), false),
    ];
    // SAFETY: a copy has one thread; `forks` keeps to the module's comment.
    match unsafe { alone::leave(&kept, copy, self::forks) } {
        Err(_) => UNPREPARED,
    }
}

/// The storm itself.
extern "C" fn forks(copy: &mut Copy, alone: &Alone) -> ! {
    if let Some(arguments) = &mut copy.arguments {
        arguments.settle();
        copy.child = copy.child.executing(arguments);
    }
    // SAFETY: the shared cells, which are kept; their readers take them as atomics.
    let set = |cell: usize, value: u64| unsafe { copy.cells.add(cell).write_volatile(value) };
    if let Some(pages) = alone.residual() {
        set(RESIDUAL, pages + 1);
    }
    set(READY, 1);
    // SAFETY: as above.
    while unsafe { copy.go.read_volatile() } == 0 {
        let time = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
        // SAFETY: reads the time.
        unsafe { call(libc::SYS_nanosleep, [(&raw const time) as usize, 0, 0, 0]) };
    }
    consumed(copy.cells);
    let started = now();
    set(STARTED, started);
    let (mut forking, mut ending) = (0, 0);
    for number in 0..copy.forks {
        let worked = processor();
        let before = now();
        let child = bare::fork_bare(&copy.child);
        let forked = now();
        let worked = processor() - worked;
        if child <= 0 {
            alone::exit(NO_FORK);
        }
        let mut status = 0_i32;
        // SAFETY: the status is writable.
        let waited = unsafe { call(libc::SYS_wait4, [child as usize, (&raw mut status) as usize, 0, 0]) };
        let ended = now();
        if waited != child || status != 0 {
            alone::exit(CHILD_FAILED);
        }
        for ((made, times, room), time) in [(copy.times[0], forked - before), (copy.times[1], ended - forked)]
        {
            let time = if time > u64::from(u32::MAX) { u32::MAX } else { time as u32 };
            let kept = number as usize;
            // SAFETY: within the room.
            unsafe {
                times.add(kept % room).write_volatile(time);
                made.write_volatile(if kept < room { kept + 1 } else { room } as u32);
            }
        }
        forking += worked;
        ending += ended - forked;
        set(FORKING, forking);
        set(ENDING, ending);
        set(FORKS, u64::from(number) + 1);
        set(ENDED, ended);
    }
    alone::exit(0)
}

/// Notes what this process has consumed by now. The kernel brings processor times up to date when
/// the thread's own clock is read.
fn consumed(cells: *mut u64) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: time and usage are writable; the second call, which cannot fail, fills the usage; the
    // cells as in `forks`.
    unsafe {
        call(
            libc::SYS_clock_gettime,
            [libc::CLOCK_THREAD_CPUTIME_ID as usize, (&raw mut time) as usize, 0, 0],
        );
        call(libc::SYS_getrusage, [libc::RUSAGE_THREAD as usize, usage.as_mut_ptr() as usize, 0, 0]);
        let usage = &*usage.as_ptr();
        let time = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
        cells.add(BEFORE).write_volatile(usage.ru_minflt as u64);
        cells.add(BEFORE + 1).write_volatile(usage.ru_majflt as u64);
        cells.add(BEFORE + 2).write_volatile(time(usage.ru_utime));
        cells.add(BEFORE + 3).write_volatile(time(usage.ru_stime));
    }
}

/// The monotonic clock, from the kernel, ns.
#[inline(always)]
fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// This copy's processor time, ns: a child that runs first on its processor is not in it.
#[inline(always)]
fn processor() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline(always)]
fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable.
    unsafe { call(libc::SYS_clock_gettime, [which as usize, (&raw mut time) as usize, 0, 0]) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
