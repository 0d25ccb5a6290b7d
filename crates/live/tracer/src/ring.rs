//! The mapping that is shared with pagelab: its header, the address spaces, and the slots with their buffers.
//!
//! Each slot has one writer. A program that a process executes finds the slots of the one before it in the mapping, and gives
//! them to the reader.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};
use std::time::Duration;

use pagelab_ring::{
    BUFFERS, BYTES, CLOSED, FREE, Header, IMAGES, Image, LAYOUT, OPEN, RINGS, SLOTS, Slot, TABLE, WORDS,
};

/// Between two samples whether pagelab has read.
const POLL_INTERVAL: Duration = Duration::from_micros(50);
/// Polls between two checks whether it is still there.
const ALIVE: u32 = 2000;
/// Polls for pagelab to have read the mappings of the process.
const MAX_POLLS: u32 = 2000;

static MAPPING: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// The process that this is.
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
    for _ in 0..MAX_POLLS {
        if image.waiting.load(Acquire) == 0 {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
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

/// Takes a slot for thread `number` that begins; `None`, and counted, where there is none.
pub fn take(number: u32) -> Option<&'static Slot> {
    let image = IMAGE.load(Relaxed);
    let free = |slot: &&Slot| slot.state.compare_exchange(FREE, OPEN, Acquire, Relaxed).is_ok();
    let taken = if (image as usize) < IMAGES { slots().iter().find(free) } else { None };
    let Some(slot) = taken else {
        header().lost.fetch_add(1, Relaxed);
        return None;
    };
    for cell in [&slot.used, &slot.going, &slot.filled, &slot.read] {
        cell.store(0, Relaxed);
    }
    slot.thread.store(number, Relaxed);
    slot.image.store(image, Relaxed);
    slot.process.store(PROCESS.load(Relaxed), Release);
    succeed();
    Some(slot)
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

/// Whether this is a process that the recorded one has forked, which is asked once of each: it has an address space of its
/// own from now on.
pub fn is_forked() -> bool {
    let now = std::process::id();
    if PROCESS.swap(now, Relaxed) == now {
        return false;
    }
    new_image(IMAGE.load(Relaxed) + 1, &[]);
    true
}

/// Gives a full buffer to the reader and takes the next one, as soon as it is read; `None` where nobody reads.
pub fn hand_over(slot: &Slot) -> Option<*mut AtomicU32> {
    let filled = slot.filled.load(Relaxed) + 1;
    let words = slot.used.swap(0, Relaxed);
    slot.words[(filled - 1) as usize % BUFFERS].store(words as u32, Relaxed);
    slot.filled.store(filled, Release);
    let mut polls = 0;
    while filled - slot.read.load(Acquire) >= BUFFERS as u64 {
        std::thread::sleep(POLL_INTERVAL);
        polls += 1;
        // SAFETY: asks whether there is such a process, and sends nothing.
        if polls % ALIVE == 0 && unsafe { libc::kill(header().reader.load(Relaxed).cast_signed(), 0) } != 0 {
            // Nobody reads any more: the program goes on alone.
            return None;
        }
    }
    Some(buffer(slot, filled))
}

/// A slot's buffer, of those that it fills in turn.
pub fn buffer(slot: &Slot, filled: u64) -> *mut AtomicU32 {
    let number = (ptr::from_ref(slot) as usize - ptr::from_ref(slots()) as usize) / size_of::<Slot>();
    let at = (number * BUFFERS + filled as usize % BUFFERS) * WORDS;
    // SAFETY: `number` is below SLOTS: it lies in the mapping.
    unsafe { MAPPING.load(Relaxed).add(RINGS).cast::<AtomicU32>().add(at) }
}
