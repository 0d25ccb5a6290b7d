//! What a thread executes, in the words of [`pagelab_ring::words`].
//!
//! What is the same as the last time (`blocks`) is counted and not written. The two calls that QEMU makes, for a block and
//! for an access, look whether it is, which takes them about a dozen instructions each; all else is apart from them.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use pagelab_ring::words::{self, FETCHED, POSITIONS};
use pagelab_ring::{Slot, WORDS};

use crate::api::ExecutedCallback;
use crate::blocks::{Block, Entry, REMEMBERED, Reference, State};
use crate::recorded::STORES;
use crate::ring;
use crate::threads::{Thread, turn};

/// The most words that are written at a time: the end of an execution, and the definition and the beginning of another.
const ROOM: usize = 8 + 3 * FETCHED;

/// What is called when `block` is executed, and with what: its number, from which a thread finds what it remembers without waiting
/// for what it executed before; or itself. With `ONE` there is one thread for all processors.
pub fn callback<const ONE: bool>(block: &'static Block) -> (ExecutedCallback, *mut c_void) {
    match block.number {
        0 => (executed_anew::<ONE>, ptr::from_ref(block).cast_mut().cast()),
        number => (executed::<ONE>, ptr::without_provenance_mut(number as usize)),
    }
}

extern "C" fn executed<const ONE: bool>(processor: c_uint, number: *mut c_void) {
    execute(if ONE { 0 } else { processor }, number.addr());
}

extern "C" fn executed_anew<const ONE: bool>(processor: c_uint, block: *mut c_void) {
    // SAFETY: what [`callback`] gave, which nobody gives back or writes.
    let block = unsafe { &*block.cast::<Block>() };
    another(Thread::of(if ONE { 0 } else { processor }), block);
}

/// The words of a buffer, of which so many are used.
struct Output {
    buffer: *mut AtomicU32,
    slot: &'static Slot,
    used: usize,
}

impl Output {
    #[inline]
    fn of(thread: &Thread) -> Option<Self> {
        let (buffer, slot) = thread.output()?;
        Some(Self { buffer, slot, used: slot.used.load(Relaxed) as usize })
    }

    /// Writes a word; whoever writes looks for room first.
    #[inline]
    fn put(&mut self, word: u32) {
        // SAFETY: it lies in the buffer, which this thread alone writes.
        unsafe { &*self.buffer.add(self.used) }.store(word, Relaxed);
        self.used += 1;
    }

    /// Writes how many blocks followed as they did the last time; how many.
    #[inline]
    fn go(&mut self) -> u64 {
        let count = self.slot.going.load(Relaxed);
        if count > 0 {
            self.slot.going.store(0, Relaxed);
            self.put(words::go(count as u32));
        }
        count
    }

    /// Lets the reader see them, now that all that belong to one are there: who is killed leaves no half.
    #[inline]
    fn show(&self) {
        self.slot.used.store(self.used as u64, Release);
    }

    /// Whether it has no room for what is written at a time, or has had its turn.
    #[inline]
    fn ends(&self, state: &State) -> bool {
        self.used + ROOM > WORDS || state.written > state.most.min(turn().into())
    }
}

/// Gives a buffer to the reader, and begins the next one; where nobody reads there is none.
#[cold]
#[inline(never)]
fn turned(thread: &Thread) {
    let Some(mut output) = Output::of(thread) else { return };
    // SAFETY: this is the thread.
    let state = unsafe { &mut *thread.state() };
    output.go();
    if let Some(word) = state.settle() {
        output.put(word);
    }
    output.show();
    state.renew(u64::MAX);
    thread.writes_to(ring::hand_over(output.slot).unwrap_or(ptr::null_mut()));
}

/// The thread executes the block of this number.
#[inline]
fn execute(processor: c_uint, number: usize) {
    let thread = Thread::of(processor);
    // SAFETY: this is the thread; what it executed last stays and is its own, or is nothing.
    unsafe {
        let state = &mut *thread.state();
        if let Some(&entry) = state.table.get(number)
            && (*state.entry).next == entry
            && state.place == (*state.entry).end
            && thread.goes()
        {
            state.entry = entry;
            state.place = Entry::first(entry);
            return;
        }
    }
    // SAFETY: null, or a block, which stays.
    if let Some(block) = unsafe { REMEMBERED[number].load(Acquire).as_ref() } {
        another(thread, block);
    }
}

/// The thread executes what it did not execute the last time.
#[inline(never)]
fn another(thread: &Thread, block: &'static Block) {
    let Some(mut output) = Output::of(thread) else { return };
    // SAFETY: this is the thread.
    let state = unsafe { &mut *thread.state() };
    if output.ends(state) {
        turned(thread);
        return another(thread, block);
    }
    state.written += output.go() + 1;
    if !state.is_settled()
        && let Some(word) = state.settle()
    {
        output.put(word);
    }
    let entry = state.known(block).unwrap_or_else(|| {
        output.put(words::define(block.fetches.len() as u32));
        for &(key, count) in &block.fetches {
            words::fetched(key, count).into_iter().for_each(|word| output.put(word));
        }
        state.define(block)
    });
    // SAFETY: entries, which stay and are this thread's alone, or nothing, which nobody writes.
    unsafe {
        output.put(words::execute((*entry).number));
        if state.entry != Entry::nothing() {
            // What is defined each time is foreseen never.
            (*state.entry).next = if block.number == 0 { Entry::nothing() } else { entry };
        }
        state.entry = entry;
        state.place = Entry::first(entry);
    }
    output.show();
}

/// The thread loads or stores.
#[inline]
pub fn access(processor: c_uint, reference: Reference) {
    let thread = Thread::of(processor);
    // SAFETY: this is the thread; its place is a reference of its entry, or behind all there is room for, where there is none.
    unsafe {
        let state = &mut *thread.state();
        if *state.place == reference.0 {
            state.place = state.place.add(1);
            return;
        }
    }
    differs(thread, reference);
}

/// The thread loads or stores what it did not the last time.
#[inline(never)]
fn differs(thread: &Thread, reference: Reference) {
    let Some(mut output) = Output::of(thread) else { return };
    // SAFETY: this is the thread.
    let state = unsafe { &mut *thread.state() };
    if output.ends(state) {
        turned(thread);
        return differs(thread, reference);
    }
    state.written += output.go();
    let key = reference.key(STORES.load(Relaxed));
    // SAFETY: the place is one of the entry's references, or behind them.
    let position = unsafe { state.place.offset_from(Entry::first(state.entry)) };
    // SAFETY: nothing, or an entry, which stays, of a block that does.
    let (capacity, block) = unsafe { ((*state.entry).capacity, (*state.entry).block.as_ref()) };
    if position < capacity as isize {
        words::replace(position as u32, key).into_iter().for_each(|word| output.put(word));
        // SAFETY: there is room for it.
        unsafe {
            state.place.write(reference.0);
            state.place = state.place.add(1);
        }
    } else {
        words::apart(key).into_iter().for_each(|word| output.put(word));
        if let Some(block) = block {
            block.capacity.store((2 * capacity).min(POSITIONS as u32), Relaxed);
        }
    }
    output.show();
}
