//! Writes this process's references into the mapping that it shares with pagelab
//! ([`pagelab_ring`]).
//!
//! A process has one slot. Only the holder of the window's lock writes to it, so the references of
//! all threads are in the order in which the handlers read them.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};
use std::{mem, ptr};

use pagelab_ring::{
    BUFFERS, CLOSED, FREE, Header, IMAGES, Image, LAYOUT, OPEN, RINGS, SLOTS, Slot, TABLE, WORDS, words,
};

use super::system;

/// Bytes of a slot's buffers.
const SLOT: usize = BUFFERS * WORDS * size_of::<u32>();
/// Interval of the polls whether pagelab has read a buffer, in nanoseconds.
const POLL_INTERVAL: i64 = 50_000;
/// Polls between two checks whether pagelab is still alive.
const ALIVE: u32 = 2000;

static MAPPING: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// The slot's buffers.
static BUFFER: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
/// The number of the slot plus 1; 0: none.
static SLOT_NUMBER: AtomicUsize = AtomicUsize::new(0);
/// The number of the address space.
static IMAGE: AtomicU32 = AtomicU32::new(0);

/// Maps the beginning of the shared file. Returns whether the file has the layout that this library
/// knows.
pub fn open(file: c_int) -> bool {
    let mapping = system::map(RINGS, libc::MAP_SHARED, file, 0);
    if mapping == 0 {
        return false;
    }
    MAPPING.store(ptr::with_exposed_provenance_mut(mapping), Relaxed);
    header().layout.load(Acquire) == LAYOUT
}

/// The header of the mapping.
pub fn header() -> &'static Header {
    // SAFETY: [`open`] comes first; the mapping begins with a header of atomics and is never
    // unmapped.
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

/// Begins an address space of this process with a slot of its own. Returns whether there is room.
/// `words` is the program's command line, empty for a forked process.
pub fn begin(file: c_int, words: &[u8], forked: bool) -> bool {
    // SAFETY: no pointers.
    let process = unsafe { libc::getpid() }.cast_unsigned();
    let parent = if forked { IMAGE.load(Relaxed) + 1 } else { 0 };
    let number = header().images.fetch_add(1, Relaxed);
    IMAGE.store(number, Relaxed);
    let Some(image) = images().get(number as usize) else { return false };
    image.process.store(process, Relaxed);
    image.parent.store(parent, Relaxed);
    image.words.iter().zip(words).for_each(|(cell, byte)| cell.store(*byte, Relaxed));
    image.length.store(words.len().min(image.words.len()) as u32, Release);
    // The program that this process was before execve(2) writes no more.
    let before = |slot: &&Slot| {
        slot.state.load(Acquire) == OPEN
            && slot.process.load(Acquire) == process
            && slot.image.load(Relaxed) != number
    };
    slots().iter().filter(before).for_each(|slot| slot.state.store(CLOSED, Release));
    let free = |slot: &Slot| slot.state.compare_exchange(FREE, OPEN, Acquire, Relaxed).is_ok();
    let Some(taken) = slots().iter().position(free) else { return false };
    let buffer = system::map(SLOT, libc::MAP_SHARED, file, RINGS + taken * SLOT);
    let slot = &slots()[taken];
    if buffer == 0 {
        slot.state.store(FREE, Release);
        return false;
    }
    for cell in [&slot.used, &slot.going, &slot.filled, &slot.read] {
        cell.store(0, Relaxed);
    }
    slot.thread.store(0, Relaxed);
    slot.image.store(number, Relaxed);
    BUFFER.store(ptr::with_exposed_provenance_mut(buffer), Relaxed);
    slot.process.store(process, Release);
    SLOT_NUMBER.store(taken + 1, Release);
    true
}

/// Drops the slot in a forked child: it is the parent's.
pub fn forget() {
    SLOT_NUMBER.store(0, Relaxed);
    let buffer = BUFFER.swap(ptr::null_mut(), Relaxed);
    if !buffer.is_null() {
        system::unmap(buffer.expose_provenance(), SLOT);
    }
}

/// Closes the slot: nothing more is written.
pub fn end() {
    if let Some(number) = SLOT_NUMBER.swap(0, Relaxed).checked_sub(1) {
        slots()[number].state.store(CLOSED, Release);
    }
}

/// Records a reference. The caller holds the window's lock.
pub fn reference(unit: u64, kind: u64) {
    let Some(number) = SLOT_NUMBER.load(Relaxed).checked_sub(1) else { return };
    let slot = &slots()[number];
    let list = words::apart(words::key(unit, kind));
    let mut used = slot.used.load(Relaxed) as usize;
    if used + list.len() > WORDS {
        if !hand_over(slot) {
            return end();
        }
        used = 0;
    }
    let at = slot.filled.load(Relaxed) as usize % BUFFERS * WORDS + used;
    for (n, word) in list.into_iter().enumerate() {
        // SAFETY: below the buffer's end; all buffers of the slot are mapped.
        unsafe { (*BUFFER.load(Relaxed).add(at + n)).store(word, Relaxed) };
    }
    slot.used.store((used + list.len()) as u64, Release);
}

/// Hands the full buffer over to pagelab, and waits until the next one has been read. Returns
/// whether pagelab still reads.
fn hand_over(slot: &Slot) -> bool {
    let filled = slot.filled.load(Relaxed) + 1;
    let words = slot.used.swap(0, Relaxed);
    slot.words[(filled - 1) as usize % BUFFERS].store(words as u32, Relaxed);
    slot.filled.store(filled, Release);
    let mut polls = 0;
    while filled - slot.read.load(Acquire) >= BUFFERS as u64 {
        // SAFETY: the time is readable; kill(2) without a signal only checks the process.
        unsafe {
            let pause = libc::timespec { tv_nsec: POLL_INTERVAL, ..mem::zeroed() };
            libc::nanosleep(&pause, ptr::null_mut());
            polls += 1;
            if polls % ALIVE == 0 && libc::kill(header().reader.load(Relaxed).cast_signed(), 0) != 0 {
                return false;
            }
        }
    }
    true
}
