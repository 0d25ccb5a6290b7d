//! Blocks of instructions, and what a thread remembers of each: what it loaded and stored when it executed it last, and
//! what it executed then.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use pagelab_ring::words::{self, LOAD, POSITIONS, STORE};

/// Bits of a unit's number below those of [`Reference`] that say how it is referenced; addresses have 48.
const HOW: u32 = 44;
/// Blocks that a thread remembers: what is translated later is defined whenever it is executed.
const MAX_BLOCKS: u32 = 1 << 22;
/// Executions in the first buffer of a thread: it is given away early, so that who begins first stands first in the trace.
const FIRST: u64 = 1 << 12;
/// What no reference is.
const NONE: u64 = u64::MAX;

/// A block of instructions. It is never given back, as it may be executed until the end.
pub struct Block {
    /// Its number, from 1; 0: of those that are not remembered.
    pub number: u32,
    /// The most loads and stores that are remembered of it. Where there were more, it is more for those who come to it anew: what
    /// a thread remembers is kept small, so that much of it stays in the processor's caches.
    pub capacity: AtomicU32,
    /// Runs of what is fetched: key and count.
    pub fetches: Box<[(u64, u32)]>,
}

/// Those that are remembered, by their numbers.
pub static REMEMBERED: [AtomicPtr<Block>; MAX_BLOCKS as usize + 1] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_BLOCKS as usize + 1];
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
        let number = LAST.fetch_update(Relaxed, Relaxed, |last| (last < MAX_BLOCKS).then_some(last + 1));
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
}

/// A unit's number with QEMU's word for the access above it: what is compared.
#[derive(Clone, Copy)]
pub struct Reference(pub u64);

impl Reference {
    /// Of an address without the bits that name nothing, below 2^44.
    #[inline]
    pub const fn new(unit: u64, what: u32) -> Self {
        Self(unit ^ (what as u64) << HOW)
    }

    /// What is written of it.
    #[inline]
    pub const fn key(self, stores: u32) -> u64 {
        let kind = if (self.0 >> HOW) as u32 & stores != 0 { STORE } else { LOAD };
        words::key(self.0 & ((1 << HOW) - 1), kind)
    }
}

/// What a thread remembers of a block; behind it lie as many references as it has capacity, and [`NONE`]. Those behind the end are
/// none, too.
#[repr(C)]
pub struct Entry {
    /// What was executed after it.
    pub next: *mut Self,
    /// Behind its last reference.
    pub end: *mut u64,
    /// Null: of no block.
    pub block: *const Block,
    /// The buffer that defines it.
    generation: u32,
    /// Its number there.
    pub number: u32,
    /// How many there is room for.
    pub capacity: u32,
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
    pub const fn nothing() -> *mut Self {
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
    pub const unsafe fn first(entry: *mut Self) -> *mut u64 {
        // SAFETY: they lie behind it.
        unsafe { entry.add(1).cast() }
    }
}

/// What a thread executes.
pub struct State {
    /// What it remembers of the block that it executes.
    pub entry: *mut Entry,
    /// The next of its references.
    pub place: *mut u64,
    /// Those of all blocks by their numbers; null: it has none yet.
    pub table: Vec<*mut Entry>,
    /// The buffer that is filled, from 1, how many blocks it has defined, and how many executions it has, as far as they are written.
    generation: u32,
    defined: u32,
    pub written: u64,
    /// How many it has at most.
    pub most: u64,
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
    pub fn renew(&mut self, most: u64) {
        let Self { entry, place, .. } = Self::none();
        (self.entry, self.place) = (entry, place);
        self.generation += 1;
        (self.defined, self.written, self.most) = (0, 0, most);
    }

    /// Whether the execution that is over was as long as the last one of its block.
    #[inline]
    pub fn is_settled(&self) -> bool {
        // SAFETY: nothing, or an entry, which stays.
        self.place == unsafe { (*self.entry).end }
    }

    /// Remembers how long the execution was that is over; the word for it where it was shorter.
    #[cold]
    #[inline(never)]
    pub fn settle(&mut self) -> Option<u32> {
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
    #[inline]
    pub fn known(&self, block: &Block) -> Option<*mut Entry> {
        let entry = *self.table.get(block.number as usize)?;
        // SAFETY: null, or an entry, which stays.
        (!entry.is_null() && unsafe { (*entry).generation } == self.generation).then_some(entry)
    }

    /// Begins to remember `block`, which is defined now: nothing of its loads and stores.
    #[cold]
    #[inline(never)]
    pub fn define(&mut self, block: &Block) -> *mut Entry {
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
