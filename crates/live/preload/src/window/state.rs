//! The state of the window, its lock, and the SIGTRAP handler that advances the window.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::{ManuallyDrop, size_of};
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize};

use pagelab_ring::{MAX_WINDOW, SLOWDOWN, refusals};

use super::events::{self, PERIOD};
use super::memory::{self, Class, Ranges};
use super::pages::Pages;
use super::{record, system};

/// `TRAP_PERF`.
const TRAP_PERF: c_int = 6;
/// Signals between two checks of the window's cost.
const LOOK: u32 = 16;
/// Signals after which the handler hides all pages, if it does not see faults in kernel mode.
const EMPTYING: u32 = 256;
/// A fault within a program's own work takes this many times longer than one among other faults,
/// because of the caches. In sort the factor was 2.2.
const CACHES: u64 = 2;
/// Length of a part in nanoseconds of CPU time; after each part a window may grow.
const PART: u64 = 10_000_000;
/// Bytes of the shared file's path.
const PATH: usize = 64;

/// Whether this process is recorded.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// The thread that holds the lock; 0: none.
static OWNER: AtomicI32 = AtomicI32::new(0);
static STATE: Locked = Locked(UnsafeCell::new(State::new()));
/// The recorded process. A child that shares its memory until execve(2) is not recorded.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// Whether this process has had several threads, and the end of its heap when it got the second.
static SEVERAL: AtomicBool = AtomicBool::new(false);
static HEAP: AtomicUsize = AtomicUsize::new(0);
/// Handler and flags that the program set for SIGTRAP.
static ACTION: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static ACTION_FLAGS: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" {
    fn __sigaction(signal: c_int, action: *const libc::sigaction, before: *mut libc::sigaction) -> c_int;
    static __curbrk: *mut c_void;
}

struct Locked(UnsafeCell<State>);

// SAFETY: only a [`Guard`] gives access, of which there is one at a time.
unsafe impl Sync for Locked {}

/// The lock of the state.
pub struct Guard(());

impl Guard {
    /// Waits for the lock. Returns `None` if the calling thread already holds it, further up its
    /// stack.
    pub fn take() -> Option<Self> {
        let thread = system::thread();
        while let Err(owner) = OWNER.compare_exchange(0, thread, Acquire, Relaxed) {
            if owner == thread {
                return None;
            }
            system::give_way();
        }
        Some(Self(()))
    }

    /// The lock that the calling thread already holds, further up its stack, for a function that
    /// allocates memory.
    fn nested() -> ManuallyDrop<Self> {
        debug_assert_eq!(OWNER.load(Relaxed), system::thread());
        ManuallyDrop::new(Self(()))
    }

    fn state(&mut self) -> &mut State {
        // SAFETY: there is one guard at a time, and it is borrowed as long as the state.
        unsafe { &mut *STATE.0.get() }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        OWNER.store(0, Release);
    }
}

/// The state of a recorded process.
struct State {
    ranges: Ranges,
    pages: Pages,
    /// The window in pages, and whether it grows.
    window: usize,
    grows: bool,
    /// The recorded kinds of references: bits 1 << [`words::LOAD`] and the like.
    kinds: u32,
    /// Pages to record, or to find again.
    list: [usize; events::FAULTS],
    traps: u32,
    /// Cost of a fault in nanoseconds, with its share of the signal and of the hiding.
    fault: u64,
    /// The CPU time at the start of this part, and the estimated share that the window has taken
    /// since.
    since: u64,
    taken: u64,
    /// Elapsed and taken time of all earlier parts.
    all: (u64, u64),
    path: [u8; PATH],
}

impl State {
    const fn new() -> Self {
        Self {
            ranges: Ranges::new(),
            pages: Pages::new(),
            window: 0,
            grows: false,
            kinds: 0,
            list: [0; events::FAULTS],
            traps: 0,
            fault: 0,
            since: 0,
            taken: 0,
            all: (0, 0),
            path: [0; PATH],
        }
    }

    /// Reads the ring of a thread, records its faults, and hides the pages that leave the window.
    fn advance(&mut self, thread: usize) {
        let (before, lost) = (self.pages.pushed(), self.read(thread));
        if self.pages.len() > self.window {
            self.hide(self.pages.len() - self.window);
        }
        let lost = self.skip(thread) || lost;
        self.traps = self.traps.wrapping_add(1);
        let unseen =
            events::is_without_kernel() && self.traps.is_multiple_of(EMPTYING.max(self.window as u32 / 8));
        if lost || unseen {
            self.empty();
        }
        if self.grows {
            self.taken += (self.pages.pushed() - before) * self.fault;
            if self.traps.is_multiple_of(LOOK) {
                self.look();
            }
        }
    }

    /// Records the faults in the ring of a thread. Returns whether faults were lost.
    fn read(&mut self, thread: usize) -> bool {
        // Copies all faults first: the code below takes faults of its own.
        let (list, mut count) = (&mut self.list, 0);
        let lost = events::read(thread, |address, of_kernel| {
            if count < events::FAULTS {
                list[count] = address & !(system::PAGE - 1) | usize::from(of_kernel);
                count += 1;
            }
        });
        for n in 0..count {
            let fault = self.list[n];
            self.record(fault & !(system::PAGE - 1), fault & 1 != 0);
        }
        lost
    }

    /// Records a fault.
    fn record(&mut self, page: usize, by_kernel: bool) {
        if memory::is_own(page) || self.pages.has(page) {
            return;
        }
        if self.ranges.of(page).is_none() {
            self.ranges.find(page, !are_several(), self.kinds);
        }
        let range = self.ranges.of(page);
        let Some(kind) = range.and_then(|range| range.kind()) else {
            return memory::count(range.map_or(Class::Other, |range| range.class));
        };
        record::reference((page / system::PAGE) as u64, kind);
        self.pages.push(page);
        let header = &record::header().window;
        header.by_kernel.fetch_add(by_kernel.into(), Relaxed);
    }

    /// Adds the pages that this handler itself referenced to the window. Returns whether faults
    /// were lost.
    fn skip(&mut self, thread: usize) -> bool {
        let Self { ranges, pages, .. } = self;
        events::read(thread, |address, _| {
            let page = address & !(system::PAGE - 1);
            let is_in_window =
                !memory::is_own(page) && ranges.of(page).is_some_and(|range| range.kind().is_some());
            if is_in_window && !pages.has(page) {
                pages.push(page);
            }
        })
    }

    /// Hides the `count` oldest pages.
    fn hide(&mut self, count: usize) {
        let Self { ranges, pages, list, .. } = self;
        let mut others = 0;
        pages.take(count, |some| {
            ranges.hide(some, |page| {
                if others < events::FAULTS {
                    list[others] = page;
                    others += 1;
                }
            });
        });
        // These pages belong to other memory than before.
        for n in 0..others {
            let page = self.list[n];
            self.ranges.forget(page);
            self.ranges.find(page, !are_several(), self.kinds);
        }
    }

    /// Hides all pages: afterwards the window knows all accessible pages again.
    fn empty(&mut self) {
        self.ranges.hide_all();
        self.pages.clear();
        record::header().window.emptied.fetch_add(1, Relaxed);
    }

    /// Doubles the window if it takes too much of the CPU time, both in all parts and in the last
    /// one. A window that is not full has only first references, which a larger one has too.
    fn look(&mut self) {
        let now = system::processor_time();
        let elapsed = now.saturating_sub(self.since);
        if elapsed < PART {
            return;
        }
        let part = (elapsed, self.taken);
        let all = (self.all.0 + part.0, self.all.1 + part.1);
        // The threshold is 10% below the limit.
        let is_slow = |(elapsed, taken): (u64, u64)| taken * SLOWDOWN * 10 > elapsed * (SLOWDOWN - 1) * 9;
        let is_full = self.pages.len() >= self.window;
        (self.all, self.since, self.taken) = (all, now, 0);
        if is_slow(part) && is_slow(all) && is_full && self.window < MAX_WINDOW as usize {
            self.empty();
            self.window *= 2;
            self.pages.resize(self.window);
            record::header().window.widest.fetch_max(self.window as u32, Relaxed);
        }
    }
}

/// Whether this process is recorded.
pub fn is_active() -> bool {
    // SAFETY: no pointers.
    ACTIVE.load(Acquire) && PROCESS.load(Relaxed) == unsafe { libc::getpid() }
}

/// Begins to record the calling thread, if there is room.
pub fn begin_thread() -> Option<usize> {
    let _guard = Guard::take();
    let number = events::begin();
    let header = record::header();
    let counter = if number.is_some() { &header.window.threads } else { &header.lost };
    counter.fetch_add(1, Relaxed);
    number
}

/// Ends the recording of the calling thread.
pub fn end_thread(number: usize) {
    if let Some(mut guard) = Guard::take() {
        guard.state().advance(number);
        events::end(number);
    }
}

/// Prepares for a second thread: finds all memory.
pub fn become_several() {
    settle();
    if let Some(mut guard) = Guard::take() {
        let state = guard.state();
        state.ranges.find_all(state.kinds);
        for number in 0..events::rings() {
            state.skip(number);
        }
    }
    // SAFETY: a word of the C library, which only callers of brk(2) write.
    let heap = unsafe { (&raw const __curbrk).read_volatile() };
    HEAP.store(heap.expose_provenance(), Relaxed);
    SEVERAL.store(true, Release);
}

/// Whether this process has had several threads.
pub fn are_several() -> bool {
    SEVERAL.load(Acquire)
}

/// The end of the brk(2) heap when the process got a second thread.
pub fn heap() -> usize {
    HEAP.load(Relaxed)
}

/// Whether functions that allocate or release memory take the lock: this process is recorded, and
/// has several threads.
pub fn is_locking() -> bool {
    are_several() && is_active()
}

/// The lock, for a function that allocates or releases memory; `None` if not needed, or already
/// held.
pub fn entered() -> Option<Guard> {
    if is_locking() { Guard::take() } else { None }
}

/// Takes the lock for a fork. Returns whether this process is recorded: then the caller must call
/// [`release`].
pub fn hold() -> bool {
    settle();
    is_active() && Guard::take().map(std::mem::forget).is_some()
}

/// Releases the lock that [`hold`] took, in the parent or in the child (`forked`), which is not
/// recorded yet.
pub fn release(forked: bool) {
    if forked {
        ACTIVE.store(false, Relaxed);
        SEVERAL.store(false, Relaxed);
    }
    OWNER.store(0, Release);
}

/// Takes new memory that only the calling thread knows. The caller holds the lock.
pub fn take_new(start: usize, length: usize) {
    let end = start.saturating_add(length).next_multiple_of(system::PAGE);
    let mut guard = Guard::nested();
    let state = guard.state();
    state.ranges.take_new(start & !(system::PAGE - 1), end, state.kinds);
}

/// Begins to record a program that was started with the path of the shared file in its environment.
///
/// # Safety
/// Call it before the program has threads; `path` ends with a zero byte.
pub unsafe fn begin(path: *const c_char) {
    // A character is signed on some processors only.
    let path = path.cast::<u8>();
    let Some(mut guard) = Guard::take() else { return };
    let state = guard.state();
    for (n, byte) in state.path.iter_mut().enumerate().take(PATH - 1) {
        // SAFETY: not past the zero byte.
        *byte = unsafe { path.add(n).read() };
        if *byte == 0 {
            break;
        }
    }
    let mut line = [0; 256];
    let length = command_line(&mut line);
    start(state, &line[..length], false);
}

/// Begins to record the child of a recorded process.
pub fn begin_forked() {
    if let Some(mut guard) = Guard::take() {
        start(guard.state(), &[], true);
    }
}

/// Begins to record this process; `forked`: as a child of its parent, without a command line of its
/// own.
fn start(state: &mut State, words: &[u8], forked: bool) {
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::open(state.path.as_ptr().cast(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return;
    }
    if record::open(file) {
        let header = record::header();
        match ready(state, file, words, forked) {
            Ok(()) => {
                // SAFETY: no pointers.
                PROCESS.store(unsafe { libc::getpid() }, Relaxed);
                ACTIVE.store(true, Release);
            }
            Err(refusal) => {
                let _ = header.window.refused.compare_exchange(0, refusal, Relaxed, Relaxed);
                header.lost.fetch_add(1, Relaxed);
                record::end();
            }
        }
        header.begun.store(1, Release);
    }
    system::close(file);
}

/// Sets up the recording. The error is one of [`refusals`].
fn ready(state: &mut State, file: c_int, words: &[u8], forked: bool) -> Result<(), u32> {
    let header = record::header();
    state.window = header.window.pages.load(Relaxed) as usize;
    state.grows = header.window.grows.load(Relaxed) != 0;
    state.kinds = header.kinds.load(Relaxed);
    header.window.widest.fetch_max(state.window as u32, Relaxed);
    if !system::open() {
        return Err(refusals::MAPPINGS);
    }
    if !memory::open() {
        return Err(refusals::USERFAULT);
    }
    if !record::begin(file, words, forked) {
        return Err(refusals::MEMORY);
    }
    memory::know_own();
    state.ranges.clear();
    state.pages.clear();
    state.pages.resize(state.window);
    install(trapped as *const () as usize);
    if state.grows {
        state.fault = calibrate().ok_or(refusals::EVENTS)?;
    }
    state.ranges.find_all(state.kinds);
    events::begin().ok_or(refusals::EVENTS)?;
    header.window.threads.fetch_add(1, Relaxed);
    if events::is_without_kernel() {
        header.window.without_kernel.store(1, Relaxed);
    }
    state.since = system::processor_time();
    state.taken = 0;
    state.all = (0, 0);
    Ok(())
}

/// Measures the cost of a recorded fault in nanoseconds, with its share of the signal and of the
/// hiding.
fn calibrate() -> Option<u64> {
    const ROUNDS: usize = 16;
    let length = PERIOD * system::PAGE;
    let file = system::memory_file(c"pagelab calibration");
    let area = system::map(length, libc::MAP_SHARED, file, 0);
    system::close(file);
    if area == 0 {
        return None;
    }
    let whole = libc::iovec { iov_base: ptr::with_exposed_provenance_mut(area), iov_len: length };
    let round = || {
        // In an order in which no page follows its neighbour.
        for n in 0..PERIOD {
            let at = area + n * 37 % PERIOD * system::PAGE;
            // SAFETY: within the mapping that was made above.
            unsafe { ptr::with_exposed_provenance_mut::<u8>(at).write_volatile(1) };
        }
        system::hide(&[whole]);
    };
    round();
    let number = events::begin()?;
    let begun = system::processor_time();
    for _ in 0..ROUNDS {
        round();
        events::read(number, |_, _| {});
    }
    let elapsed = system::processor_time() - begun;
    events::end(number);
    system::unmap(area, length);
    Some(elapsed * CACHES / (ROUNDS * PERIOD) as u64)
}

/// Reads this process's command line into `line`. Returns the number of bytes.
fn command_line(line: &mut [u8]) -> usize {
    // SAFETY: the name ends with a zero; the bytes of the line are writable.
    unsafe {
        let file = libc::open(c"/proc/self/cmdline".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let read = libc::read(file, line.as_mut_ptr().cast(), line.len()).max(0) as usize;
        system::close(file);
        read - usize::from(read > 0 && line[read - 1] == 0)
    }
}

/// Installs a handler of SIGTRAP, which runs with all signals blocked.
fn install(handler: usize) {
    // SAFETY: a zeroed action has no flags; the handler takes the arguments that SA_SIGINFO passes.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&mut action.sa_mask);
        raw_action(&action);
    }
}

/// Sets the action of SIGTRAP.
///
/// # Safety
/// The action's handler is a signal handler.
unsafe fn raw_action(action: &libc::sigaction) {
    // SAFETY: the caller's promise. This is glibc's own function; `sigaction` is this library's.
    unsafe { __sigaction(libc::SIGTRAP, action, ptr::null_mut()) };
}

/// Handles SIGTRAP, from this library's event or the program's own.
extern "C" fn trapped(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a whole structure, in which the event's data follow an address. The
    // thread's errno is restored.
    unsafe {
        if (*info).si_code != TRAP_PERF {
            return others(signal, info, context);
        }
        let error = *libc::__errno_location();
        let number = info.cast::<usize>().add(3).read();
        if ACTIVE.load(Acquire)
            && let Some(mut guard) = Guard::take()
        {
            guard.state().advance(number);
        }
        *libc::__errno_location() = error;
    }
}

/// Handles a SIGTRAP as the program requested.
unsafe fn others(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let action = ACTION.load(Acquire);
    // SAFETY: the program gave the handler for this signal.
    unsafe {
        match action {
            libc::SIG_IGN => {}
            libc::SIG_DFL => {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                raw_action(&action);
                libc::raise(signal);
            }
            handler if ACTION_FLAGS.load(Relaxed) & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

/// Stores the action that the program requests for SIGTRAP. Returns the previous one.
pub fn wish(wanted: Option<(usize, c_int)>) -> (usize, c_int) {
    let before = (ACTION.load(Acquire), ACTION_FLAGS.load(Relaxed));
    if let Some((handler, flags)) = wanted {
        ACTION_FLAGS.store(flags, Relaxed);
        ACTION.store(handler, Release);
    }
    before
}

/// Reads the rings of all threads, before this process ends or forks.
pub fn settle() {
    if is_active()
        && let Some(mut guard) = Guard::take()
    {
        for number in 0..events::rings() {
            guard.state().advance(number);
        }
    }
}

/// Ends the recording of this process.
pub fn end() {
    settle();
    if is_active() && ACTIVE.swap(false, AcqRel) {
        record::end();
    }
}

const _: () = assert!(size_of::<usize>() == 8);
