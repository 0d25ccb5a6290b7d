//! This process's threads, and the slot that each writes to.
//!
//! QEMU numbers the threads of a program from 0 and calls back on the thread itself. A forked process finds its parent's slots
//! in its memory: it lets them be and takes one of its own.

use std::cell::UnsafeCell;
use std::ffi::c_uint;
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use pagelab_ring::words::FAR;
use pagelab_ring::{CLOSED, Slot};

use crate::blocks::State;
use crate::ring;

/// Threads of one process that are told apart; QEMU gives the number of an ended one to the next.
const THREADS: usize = 4096;

/// The most executions in a buffer of a thread that is alone: pagelab follows each of them, and looks between two buffers whether
/// the user wants it to end.
const SINGLE_THREAD_BLOCKS: u32 = 1 << 22;
/// The same where there are several threads: they follow each other in the trace buffer by buffer.
const SHARED_BUFFER_BLOCKS: u32 = 1 << 15;
const _: () = assert!(SINGLE_THREAD_BLOCKS <= FAR);

/// Threads that are recorded.
static RECORDED: AtomicU32 = AtomicU32::new(0);
/// See [`turn`].
static MAX_EXECUTIONS: AtomicU32 = AtomicU32::new(SINGLE_THREAD_BLOCKS);

/// The most executions in a buffer, and in a word of them: [`SINGLE_THREAD_BLOCKS`], or [`SHARED_BUFFER_BLOCKS`] of several threads.
#[inline]
pub fn turn() -> u32 {
    MAX_EXECUTIONS.load(Relaxed)
}

/// There are so many threads now.
fn count(recorded: u32) {
    MAX_EXECUTIONS.store(if recorded > 1 { SHARED_BUFFER_BLOCKS } else { SINGLE_THREAD_BLOCKS }, Relaxed);
}

/// What a thread holds.
#[repr(align(128))]
pub struct Thread {
    /// Null: none.
    slot: AtomicPtr<Slot>,
    /// The buffer that it fills; null: none.
    buffer: AtomicPtr<AtomicU32>,
    /// What it executes.
    state: UnsafeCell<State>,
}

// SAFETY: the state of a thread is looked at by that thread alone, by the one that begins it before it runs, and by the one that
// a forked process has.
unsafe impl Sync for Thread {}

static ALL: [Thread; THREADS] = [const { Thread::none() }; THREADS];

impl Thread {
    const fn none() -> Self {
        Self {
            slot: AtomicPtr::new(ptr::null_mut()),
            buffer: AtomicPtr::new(ptr::null_mut()),
            state: UnsafeCell::new(State::none()),
        }
    }

    /// The one that a processor of QEMU's stands for.
    #[inline]
    pub fn of(processor: c_uint) -> &'static Self {
        &ALL[processor as usize % THREADS]
    }

    /// Where it writes, with its slot; `None` where it is not recorded.
    #[inline]
    pub fn output(&self) -> Option<(*mut AtomicU32, &'static Slot)> {
        let buffer = self.buffer.load(Relaxed);
        // SAFETY: null, or a slot, which stays.
        let slot = unsafe { self.slot.load(Relaxed).as_ref() }?;
        (!buffer.is_null()).then_some((buffer, slot))
    }

    /// Counts a block that was foreseen; `false`, and it is not counted, where none is recorded or it has had its turn.
    #[inline]
    pub fn goes(&self) -> bool {
        let slot = self.slot.load(Relaxed);
        if slot.is_null() {
            return false;
        }
        // SAFETY: slots stay.
        let going = unsafe { &(*slot).going };
        let count = going.load(Relaxed);
        if count >= u64::from(turn()) {
            return false;
        }
        going.store(count + 1, Release);
        true
    }

    /// Its state, which the thread itself alone may ask for.
    #[inline]
    pub fn state(&self) -> *mut State {
        self.state.get()
    }

    /// Writes on into `buffer`; null: no more.
    pub fn writes_to(&self, buffer: *mut AtomicU32) {
        self.buffer.store(buffer, Relaxed);
    }

    /// Lets its slot be.
    fn let_be(&self) -> *mut Slot {
        self.writes_to(ptr::null_mut());
        self.slot.swap(ptr::null_mut(), Relaxed)
    }
}

/// Takes a slot for a thread that begins.
pub fn begin(processor: c_uint) {
    end(processor);
    let Some(slot) = ring::take(processor) else { return };
    let thread = Thread::of(processor);
    // SAFETY: it does not run yet.
    unsafe { &mut *thread.state() }.begin();
    thread.slot.store(ptr::from_ref(slot).cast_mut(), Relaxed);
    thread.writes_to(ring::buffer(slot, 0));
    count(RECORDED.fetch_add(1, Relaxed) + 1);
}

/// Gives the slot of a thread that has ended to the reader.
pub fn end(processor: c_uint) {
    // SAFETY: null, or one of the mapping's, which stay.
    if let Some(slot) = unsafe { Thread::of(processor).let_be().as_ref() } {
        slot.state.store(CLOSED, Release);
        count(RECORDED.fetch_sub(1, Relaxed) - 1);
    }
}

/// The same for all threads: the process ends.
pub fn end_all() {
    (0..THREADS as c_uint).for_each(end);
}

/// Looks whether this is a process that the recorded one has forked, of which this thread is the only one.
pub fn fork(processor: c_uint) {
    if ring::is_forked() {
        for thread in &ALL {
            let _ = thread.let_be();
        }
        RECORDED.store(0, Relaxed);
        begin(processor);
    }
}
