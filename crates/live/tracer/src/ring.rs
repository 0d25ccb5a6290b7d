//! The mapping that is shared with pagelab, and this process's threads in it.
//!
//! QEMU numbers the threads of a program from 0 and calls back on the thread itself, so each slot has one writer. A
//! forked process finds its parent's slots in its memory: it lets them be and takes one of its own. A program that a
//! process executes finds the slots of the one before it in the mapping, and gives them to the reader.

use std::ffi::c_uint;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};
use std::time::Duration;

use pagelab_ring::{
    BUFFERS, BYTES, CLOSED, FREE, Header, IMAGES, Image, LAYOUT, MOST, OPEN, RECORDS, RINGS, SLOTS, Slot,
    TABLE, longer, run,
};

/// Threads of one process that are told apart; QEMU gives the number of an ended one to the next.
const THREADS: usize = 4096;
/// Between two looks whether pagelab has read.
const LOOK: Duration = Duration::from_micros(50);
/// Looks between two whether it is still there.
const ALIVE: u32 = 2000;
/// The most looks whether pagelab has seen what the process has mapped.
const SEEN: u32 = 2000;

/// What a thread holds.
struct Held {
    slot: AtomicPtr<Slot>,
    /// The buffer that it fills; null: none.
    buffer: AtomicPtr<AtomicU64>,
    /// What the last run is of.
    key: AtomicU64,
}

impl Held {
    const fn none() -> Self {
        Self {
            slot: AtomicPtr::new(ptr::null_mut()),
            buffer: AtomicPtr::new(ptr::null_mut()),
            key: AtomicU64::new(0),
        }
    }
}

static MAPPING: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// The slot of each thread; null: none.
static HELD: [Held; THREADS] = [const { Held::none() }; THREADS];
/// The process that holds them.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The number of its address space.
static IMAGE: AtomicU32 = AtomicU32::new(0);

/// Maps the file at `path`, of pagelab's [`BYTES`]; `words` are the program's, with zeros between them.
///
/// # Errors
/// What the system says, or that it is laid out in another way.
pub fn open(path: &Path, words: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    if file.metadata()?.len() != BYTES as u64 {
        return Err(io::Error::other(
            "it has another length: pagelab and its tracer are of different versions",
        ));
    }
    // SAFETY: a new mapping of a file that is as long as it; it is never unmapped, and all of it that is used is
    // atomic or handed over by what is.
    let mapping = unsafe {
        libc::mmap(
            ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if mapping == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    MAPPING.store(mapping.cast(), Relaxed);
    PROCESS.store(std::process::id(), Relaxed);
    if header().layout.load(Acquire) != LAYOUT {
        return Err(io::Error::other(
            "it is laid out otherwise: pagelab and its tracer are of different versions",
        ));
    }
    new_image(0, words);
    header().begun.store(1, Release);
    Ok(())
}

/// Begins an address space of this process.
fn new_image(parent: u32, words: &[u8]) {
    let number = header().images.fetch_add(1, Relaxed);
    IMAGE.store(number, Relaxed);
    let Some(image) = images().get(number as usize) else { return };
    image.process.store(PROCESS.load(Relaxed), Relaxed);
    image.parent.store(parent, Relaxed);
    image.words.iter().zip(words).for_each(|(cell, byte)| cell.store(*byte, Relaxed));
    image.length.store(words.len().min(image.words.len()) as u32, Release);
}

/// Whether there is room for another address space.
pub fn has_room() -> bool {
    (header().images.load(Relaxed) as usize) < IMAGES
}

/// Says that this process is about to execute another program, or that it could not.
pub fn leave(leaving: bool) {
    if let Some(image) = images().get(IMAGE.load(Relaxed) as usize) {
        image.leaving.store(leaving.into(), Release);
    }
}

/// Waits until pagelab has looked at what this process has mapped, which is about to be gone: a tenth of a second at most.
pub fn be_looked_at() {
    let Some(image) = images().get(IMAGE.load(Relaxed) as usize) else { return };
    image.waiting.store(1, Release);
    for _ in 0..SEEN {
        if image.waiting.load(Acquire) == 0 {
            return;
        }
        std::thread::sleep(LOOK);
    }
    image.waiting.store(0, Relaxed);
}

/// The beginning of the mapping.
pub fn header() -> &'static Header {
    // SAFETY: [`open`] comes first, and stays; the mapping begins with a header of atomics.
    unsafe { &*MAPPING.load(Relaxed).cast::<Header>() }
}

fn slots() -> &'static [Slot; SLOTS] {
    // SAFETY: as for the header; the slots lie behind it, aligned alike.
    unsafe { &*MAPPING.load(Relaxed).add(size_of::<Header>()).cast::<[Slot; SLOTS]>() }
}

fn images() -> &'static [Image; IMAGES] {
    // SAFETY: as for the slots, behind which they lie, aligned alike.
    unsafe { &*MAPPING.load(Relaxed).add(TABLE).cast::<[Image; IMAGES]>() }
}

/// The thread that a processor of QEMU's stands for.
#[inline]
fn held(processor: c_uint) -> &'static Held {
    &HELD[processor as usize % THREADS]
}

/// Takes a slot for a thread that begins.
pub fn begin(processor: c_uint) {
    end(processor);
    let image = IMAGE.load(Relaxed);
    if image as usize >= IMAGES {
        header().lost.fetch_add(1, Relaxed);
        return;
    }
    let taken = slots().iter().find(|slot| slot.state.compare_exchange(FREE, OPEN, Acquire, Relaxed).is_ok());
    let Some(slot) = taken else {
        header().lost.fetch_add(1, Relaxed);
        return;
    };
    for cell in [&slot.used, &slot.filled, &slot.read] {
        cell.store(0, Relaxed);
    }
    slot.thread.store(processor, Relaxed);
    slot.image.store(image, Relaxed);
    slot.process.store(PROCESS.load(Relaxed), Release);
    let (held, buffer) = (held(processor), buffer(slot, 0));
    // A buffer has a run at least: this one is empty, of a key that there is not.
    // SAFETY: the first word of a buffer.
    unsafe { &*buffer }.store(0, Relaxed);
    slot.used.store(1, Release);
    held.key.store(u64::MAX, Relaxed);
    held.slot.store(ptr::from_ref(slot).cast_mut(), Relaxed);
    held.buffer.store(buffer, Relaxed);
    succeed();
}

/// Gives the slots of what this process was before it executed this program to the reader.
fn succeed() {
    let (process, image) = (PROCESS.load(Relaxed), IMAGE.load(Relaxed));
    let before = |slot: &&Slot| {
        slot.state.load(Acquire) == OPEN
            && slot.process.load(Acquire) == process
            && slot.image.load(Relaxed) != image
    };
    slots().iter().filter(before).for_each(|slot| slot.state.store(CLOSED, Release));
}

/// Gives the slot of a thread that has ended to the reader.
pub fn end(processor: c_uint) {
    let held = held(processor);
    held.buffer.store(ptr::null_mut(), Relaxed);
    let slot = held.slot.swap(ptr::null_mut(), Relaxed);
    // SAFETY: null, or one of [`slots`], which stay.
    if let Some(slot) = unsafe { slot.as_ref() } {
        slot.state.store(CLOSED, Release);
    }
}

/// The same for all threads: the process ends.
pub fn end_all() {
    (0..THREADS as c_uint).for_each(end);
}

/// Whether this is a process that the recorded one has forked; it has a slot of its own from now on.
pub fn forked(processor: c_uint) -> bool {
    let now = std::process::id();
    if PROCESS.swap(now, Relaxed) == now {
        return false;
    }
    for held in &HELD {
        held.buffer.store(ptr::null_mut(), Relaxed);
        held.slot.store(ptr::null_mut(), Relaxed);
    }
    new_image(IMAGE.load(Relaxed) + 1, &[]);
    begin(processor);
    true
}

/// Adds `count` references of `key`: to the last run, or as a run behind it. Which of the two cannot be foreseen, so
/// nothing branches on it; and the last key, the place and the count go from one call to the next by themselves, so that none
/// waits for another.
#[inline]
pub fn touch(processor: c_uint, key: u64, count: u64) {
    let held = held(processor);
    let buffer = held.buffer.load(Relaxed);
    if buffer.is_null() {
        return;
    }
    // SAFETY: set together with the buffer; slots stay.
    let slot = unsafe { &*held.slot.load(Relaxed) };
    let same = u64::from(held.key.load(Relaxed) == key);
    held.key.store(key, Relaxed);
    let used = slot.used.load(Relaxed);
    // SAFETY: 1 to RECORDS words of the buffer are used, which lies in the mapping and which this thread alone writes.
    let last = unsafe { &*buffer.add(used as usize - 1) }.load(Relaxed);
    let run = longer(last, key, count, same);
    let next = used + (same ^ 1);
    if next > RECORDS as u64 || run & MOST < count {
        append(processor, key, count);
        return;
    }
    // SAFETY: as above.
    unsafe { &*buffer.add(next as usize - 1) }.store(run, Relaxed);
    // In this order: who is killed between both leaves no run of another time.
    slot.used.store(next, Release);
}

/// Adds a run behind a full one or a full buffer.
#[cold]
#[inline(never)]
fn append(processor: c_uint, key: u64, count: u64) {
    let held = held(processor);
    // SAFETY: the caller has seen it.
    let slot = unsafe { &*held.slot.load(Relaxed) };
    let used = slot.used.load(Relaxed);
    if used == RECORDS as u64 && !hand_over(held, slot) {
        return;
    }
    let used = used % RECORDS as u64;
    // SAFETY: below RECORDS.
    unsafe { &*held.buffer.load(Relaxed).add(used as usize) }.store(run(key, count), Relaxed);
    slot.used.store(used + 1, Release);
}

/// Hands the full buffer over and waits for an empty one; `false` where nobody reads.
fn hand_over(held: &Held, slot: &Slot) -> bool {
    let filled = slot.filled.load(Relaxed) + 1;
    slot.used.store(0, Relaxed);
    slot.filled.store(filled, Release);
    let mut looks = 0;
    while filled - slot.read.load(Acquire) >= BUFFERS as u64 {
        std::thread::sleep(LOOK);
        looks += 1;
        // SAFETY: asks whether there is such a process, and sends nothing.
        if looks % ALIVE == 0 && unsafe { libc::kill(header().reader.load(Relaxed).cast_signed(), 0) } != 0 {
            // Nobody reads any more: the program goes on alone.
            held.buffer.store(ptr::null_mut(), Relaxed);
            return false;
        }
    }
    held.buffer.store(buffer(slot, filled), Relaxed);
    true
}

/// A slot's buffer, of those that it fills in turn.
fn buffer(slot: &Slot, filled: u64) -> *mut AtomicU64 {
    let number = (ptr::from_ref(slot) as usize - ptr::from_ref(slots()) as usize) / size_of::<Slot>();
    let at = (number * BUFFERS + filled as usize % BUFFERS) * RECORDS;
    // SAFETY: `number` is below SLOTS: it lies in the mapping.
    unsafe { MAPPING.load(Relaxed).add(RINGS).cast::<AtomicU64>().add(at) }
}
