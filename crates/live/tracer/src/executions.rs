//! What a thread executes, in the words of [`pagelab_ring::words`].
//!
//! Each thread remembers for each block what it loaded and stored when it executed it last, and what it executed then; what is
//! the same is counted and not written. The two calls that QEMU makes, for a block and for an access, look whether it is, which takes
//! them about a dozen instructions each; all else is apart from them.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use pagelab_ring::words::{self, FETCHED, LOAD, POSITIONS, STORE};
use pagelab_ring::{Slot, WORDS};

use crate::api::ExecutedCallback;
use crate::threads::{Thread, turn};
use crate::{STORES, ring};

/// The most words that are written at a time: the end of an execution, and the definition and the beginning of another.
const ROOM: usize = 8 + 3 * FETCHED;
/// Bits of a unit's number below those of [`Reference`] that say how it is referenced; addresses have 48.
const HOW: u32 = 44;
/// Blocks that a thread remembers: what is translated later is defined whenever it is executed.
const MOST: u32 = 1 << 22;
/// Executions in the first buffer of a thread: it is given away early, so that who begins first stands first in the trace.
const FIRST: u64 = 1 << 12;
/// What no reference is.
const NONE: u64 = u64::MAX;

/// A block of instructions. It is never given back, as it may be executed until the end.
pub struct Block {
    /// Its number, from 1; 0: of those that are not remembered.
    number: u32,
    /// The most loads and stores that are remembered of it. Where there were more, it is more for those who come to it anew: what
    /// a thread remembers is kept small, so that much of it stays in the processor's caches.
    capacity: AtomicU32,
    /// Runs of what is fetched: key and count.
    fetches: Box<[(u64, u32)]>,
}

/// Those that are remembered, by their numbers.
static REMEMBERED: [AtomicPtr<Block>; MOST as usize + 1] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST as usize + 1];
/// Those that there are, by the address and the number of their instructions: code is translated more than once.
static BLOCKS: Mutex<BTreeMap<(u64, usize), &Block>> = Mutex::new(BTreeMap::new());

impl Block {
    /// The one of so many instructions at `address`, for which these runs are fetched.
    pub fn of(address: u64, instructions: usize, fetches: Vec<(u64, u32)>) -> &'static Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let mut blocks = BLOCKS.lock().expect("nobody panics");
        if let Some(known) =
            blocks.get(&(address, instructions)).filter(|known| *known.fetches == fetches[..])
        {
            return known;
        }
        let number = LAST.fetch_update(Relaxed, Relaxed, |last| (last < MOST).then_some(last + 1));
        let number = number.map_or(0, |last| last + 1);
        // Some four of ten instructions have one; a block without number is defined with most from the beginning.
        let capacity = if number == 0 { POSITIONS } else { (instructions / 2 + 2).min(POSITIONS) };
        let new: &Self = Box::leak(Box::new(Self {
            number,
            capacity: AtomicU32::new(capacity as u32),
            fetches: fetches.into_boxed_slice(),
        }));
        if number > 0 {
            REMEMBERED[number as usize].store(ptr::from_ref(new).cast_mut(), Release);
        }
        blocks.insert((address, instructions), new);
        new
    }

    /// What is called when it is executed, and with what: its number, from which a thread finds what it remembers without waiting for
    /// what it executed before; or itself. With `ONE` there is one thread for all processors.
    pub fn callback<const ONE: bool>(&'static self) -> (ExecutedCallback, *mut c_void) {
        match self.number {
            0 => (executed_anew::<ONE>, ptr::from_ref(self).cast_mut().cast()),
            number => (executed::<ONE>, ptr::without_provenance_mut(number as usize)),
        }
    }
}

extern "C" fn executed<const ONE: bool>(processor: c_uint, number: *mut c_void) {
    execute(if ONE { 0 } else { processor }, number.addr());
}

extern "C" fn executed_anew<const ONE: bool>(processor: c_uint, block: *mut c_void) {
    // SAFETY: what [`Block::callback`] gave, which nobody gives back or writes.
    let block = unsafe { &*block.cast::<Block>() };
    another(Thread::of(if ONE { 0 } else { processor }), block);
}

/// A unit's number with QEMU's word for the access above it: what is compared.
#[derive(Clone, Copy)]
pub struct Reference(u64);

impl Reference {
    /// Of an address without the bits that name nothing, below 2^44.
    #[inline]
    pub const fn new(unit: u64, what: u32) -> Self {
        Self(unit ^ (what as u64) << HOW)
    }

    /// What is written of it.
    const fn key(self, stores: u32) -> u64 {
        let kind = if (self.0 >> HOW) as u32 & stores != 0 { STORE } else { LOAD };
        words::key(self.0 & ((1 << HOW) - 1), kind)
    }
}

/// What a thread remembers of a block; behind it lie as many references as it has capacity, and [`NONE`]. Those behind the end are
/// none, too.
#[repr(C)]
pub struct Entry {
    /// What was executed after it.
    next: *mut Self,
    /// Behind its last reference.
    end: *mut u64,
    /// Null: of no block.
    block: *const Block,
    /// The buffer that defines it.
    generation: u32,
    /// Its number there.
    number: u32,
    /// How many there is room for.
    capacity: u32,
}

/// An entry and [`NONE`].
#[repr(C)]
struct Nothing(Entry, u64);

// SAFETY: nobody writes it: it is of no block, and what comes next is not the same.
unsafe impl Sync for Nothing {}

/// What a thread executes that has executed nothing.
static NOTHING: Nothing = {
    let next = (&raw const NOTHING.0).cast_mut();
    let end = (&raw const NOTHING.1).cast_mut();
    Nothing(Entry { block: ptr::null(), next, end, generation: 0, number: 0, capacity: 0 }, NONE)
};

impl Entry {
    const fn nothing() -> *mut Self {
        (&raw const NOTHING.0).cast_mut()
    }

    fn new(block: &Block) -> *mut Self {
        const HEAD: usize = size_of::<Entry>() / size_of::<u64>();
        let capacity = block.capacity.load(Relaxed);
        let memory: &mut [u64] = Box::leak(vec![NONE; HEAD + capacity as usize + 1].into_boxed_slice());
        let new: *mut Self = memory.as_mut_ptr().cast();
        // SAFETY: there is room for it, aligned as it asks for.
        unsafe {
            let end = Self::first(new);
            new.write(Self { block, next: Self::nothing(), end, generation: 0, number: 0, capacity });
        }
        new
    }

    /// Its first reference.
    ///
    /// # Safety
    /// `entry` is one of [`Entry::new`], or nothing.
    #[inline]
    const unsafe fn first(entry: *mut Self) -> *mut u64 {
        // SAFETY: they lie behind it.
        unsafe { entry.add(1).cast() }
    }
}

/// What a thread executes.
pub struct State {
    /// What it remembers of the block that it executes.
    entry: *mut Entry,
    /// The next of its references.
    place: *mut u64,
    /// Those of all blocks by their numbers; null: it has none yet.
    table: Vec<*mut Entry>,
    /// The buffer that is filled, from 1, how many blocks it has defined, and how many executions it has, as far as they are written.
    generation: u32,
    defined: u32,
    written: u64,
    /// How many it has at most.
    most: u64,
}

impl State {
    /// Of a thread that has executed nothing.
    pub const fn none() -> Self {
        let place = (&raw const NOTHING.1).cast_mut();
        Self {
            entry: Entry::nothing(),
            place,
            table: Vec::new(),
            generation: 0,
            defined: 0,
            written: 0,
            most: 0,
        }
    }

    /// Begins the first buffer of a slot.
    pub fn begin(&mut self) {
        self.renew(FIRST);
    }

    /// Begins a new buffer of so many executions at most, in which nothing is defined.
    fn renew(&mut self, most: u64) {
        let Self { entry, place, .. } = Self::none();
        (self.entry, self.place) = (entry, place);
        self.generation += 1;
        (self.defined, self.written, self.most) = (0, 0, most);
    }

    /// Whether the execution that is over was as long as the last one of its block.
    #[inline]
    fn is_settled(&self) -> bool {
        // SAFETY: nothing, or an entry, which stays.
        self.place == unsafe { (*self.entry).end }
    }

    /// Remembers how long the execution was that is over; the word for it where it was shorter.
    #[cold]
    #[inline(never)]
    fn settle(&mut self) -> Option<u32> {
        // SAFETY: nothing, whose place is its end, or an entry that is this thread's; the place is one of its references, or
        // behind them.
        unsafe {
            let first = Entry::first(self.entry);
            let (mut at, before) = (self.place, (*self.entry).end);
            if at == before {
                return None;
            }
            (*self.entry).end = at;
            let word = (at < before).then(|| words::cut(at.offset_from(first) as u32));
            while at < before {
                at.write(NONE);
                at = at.add(1);
            }
            word
        }
    }

    /// What is remembered of `block`, in this buffer.
    fn known(&self, block: &Block) -> Option<*mut Entry> {
        let entry = *self.table.get(block.number as usize)?;
        // SAFETY: null, or an entry, which stays.
        (!entry.is_null() && unsafe { (*entry).generation } == self.generation).then_some(entry)
    }

    /// Begins to remember `block`, which is defined now: nothing of its loads and stores.
    #[cold]
    #[inline(never)]
    fn define(&mut self, block: &Block) -> *mut Entry {
        let number = block.number as usize;
        if number >= self.table.len() {
            self.table.resize((number + 1).next_power_of_two(), ptr::null_mut());
        }
        let cell = &mut self.table[number];
        // SAFETY: null, or an entry, which stays.
        if unsafe { cell.as_ref() }.is_none_or(|entry| entry.capacity < block.capacity.load(Relaxed)) {
            *cell = Entry::new(block);
        }
        // SAFETY: an entry, which stays and is this thread's alone, with as many references.
        unsafe {
            let entry = &mut **cell;
            entry.next = Entry::nothing();
            // Of those that are not remembered none is known the next time.
            entry.generation = if block.number == 0 { 0 } else { self.generation };
            entry.number = self.defined;
            entry.end = Entry::first(*cell);
            (0..entry.capacity as usize).for_each(|at| entry.end.add(at).write(NONE));
        }
        self.defined += 1;
        self.table[number]
    }
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
