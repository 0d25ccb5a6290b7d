//! What pagelab and its tracer inside QEMU share: one mapping with a [`Header`], a [`Slot`] for each thread that is
//! recorded at a time, an [`Image`] for each address space, and for each slot a ring of [`BUFFERS`] buffers of [`RECORDS`]
//! runs.
//!
//! The writer of a slot is the one thread that holds it, its reader is pagelab. A buffer is handed over when it is full.
//! All of a slot's state lies in the mapping, so what a killed program had recorded can still be read.

#![no_std]

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// The first word of a mapping: its layout.
pub const LAYOUT: u64 = u64::from_le_bytes(*b"plring 4");
/// Threads that can be recorded at a time.
pub const SLOTS: usize = 256;
/// Address spaces in all: processes that are forked and programs that are executed. Those beyond are not recorded; a
/// trace's reader takes no more.
pub const IMAGES: usize = 4096;
/// Bytes that are kept of a program and its arguments.
pub const WORDS: usize = 236;
/// Buffers in a ring.
pub const BUFFERS: usize = 8;
/// Runs in a buffer.
pub const RECORDS: usize = 1 << 15;
/// Bytes of the mapping. Only what is written to takes memory: of each slot at most 2 MiB.
pub const BYTES: usize = RINGS + SLOTS * BUFFERS * RECORDS * 8;
/// Where the images begin.
pub const TABLE: usize = size_of::<Header>() + SLOTS * size_of::<Slot>();
/// Where the rings begin.
pub const RINGS: usize = (TABLE + IMAGES * size_of::<Image>()).next_multiple_of(4096);

/// The instruction by which a load in a machine says that it begins: `nopl` with a displacement, which does nothing.
pub const BEGIN: [u8; MARKS] = [0x0f, 0x1f, 0x80, 0x50, 0x4c, 0x31, 0x62];
/// The one by which it says that it ends.
pub const END: [u8; MARKS] = [0x0f, 0x1f, 0x80, 0x50, 0x4c, 0x31, 0x65];
/// Bytes of either.
pub const MARKS: usize = 7;

/// The first word of what is counted in a machine: its layout.
pub const COUNTED: u64 = u64::from_le_bytes(*b"plcount1");
/// Figures that are counted of each instruction, behind its address: how often it was executed.
pub const INSTRUCTIONS: usize = 0;
/// Its loads and stores.
pub const REFERENCES: usize = 1;
/// Its fetches that missed the first-level cache of instructions.
pub const L1I: usize = 2;
/// Its loads and stores that missed that of data.
pub const L1D: usize = 3;
/// Those of both that missed the second level as well.
pub const L2: usize = 4;
/// Its fetches, loads and stores that missed the first-level translation buffers.
pub const TLB: usize = 5;
/// Those that missed the second level as well.
pub const WALKS: usize = 6;
/// How many figures there are.
pub const FIGURES: usize = 7;

/// Nobody has the slot.
pub const FREE: u32 = 0;
/// A thread is recorded into it.
pub const OPEN: u32 = 1;
/// The thread has ended; what it has left is to be read.
pub const CLOSED: u32 = 2;

/// What concerns the whole recording.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Header {
    /// [`LAYOUT`].
    pub layout: AtomicU64,
    /// Bits of an address below those that name what is recorded: 12 for pages of 4096 bytes.
    pub shift: AtomicU32,
    /// What is recorded: bits 1 << [`LOAD`], 1 << [`STORE`], 1 << [`FETCH`].
    pub kinds: AtomicU32,
    /// The process that reads; where it is gone nobody waits for it.
    pub reader: AtomicU32,
    /// Threads that found no slot.
    pub lost: AtomicU32,
    /// Programs executed by the program that the machine runs itself, unrecorded.
    pub executed: AtomicU32,
    /// Address spaces that have begun.
    pub images: AtomicU32,
    /// Whether the tracer has begun.
    pub begun: AtomicU32,
}

/// The state of one thread's recording.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Slot {
    /// [`FREE`], [`OPEN`] or [`CLOSED`].
    pub state: AtomicU32,
    /// The process.
    pub process: AtomicU32,
    /// The thread's number within the process, from 0.
    pub thread: AtomicU32,
    /// The number of its address space's image.
    pub image: AtomicU32,
    /// Runs in the buffer that is being filled, with the last one, which is being added to. The first of a thread's is empty.
    pub used: AtomicU64,
    /// Buffers handed over since the slot was taken.
    pub filled: AtomicU64,
    /// Buffers read since.
    pub read: AtomicU64,
}

/// An address space: that of the program, of a process that was forked, or of a program that was executed.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Image {
    /// The process.
    pub process: AtomicU32,
    /// Of a forked one, whose: its number and 1. A program has its own words.
    pub parent: AtomicU32,
    /// Whether its process is about to execute another program: what it has mapped may be that one's.
    pub leaving: AtomicU32,
    /// Whether its process ends or executes another program as soon as what it has mapped is looked at.
    pub waiting: AtomicU32,
    /// Bytes of `words`; of a forked one 0.
    pub length: AtomicU32,
    /// The program and its arguments with zeros between them, cut.
    pub words: [AtomicU8; WORDS],
}

/// A reference that reads.
pub const LOAD: u64 = 0;
/// A reference that writes.
pub const STORE: u64 = 1;
/// The fetch of an instruction.
pub const FETCH: u64 = 2;

/// Bits of a run that count its references.
const COUNT: u32 = 20;
/// The most references in a run.
pub const MOST: u64 = (1 << COUNT) - 1;

/// Names a page, or whatever the granularity is, and how it is referenced. `page` is below 2^42.
#[inline]
pub const fn key(page: u64, kind: u64) -> u64 {
    page << 2 | kind
}

/// `count` references in a row that have the same key. Of a `count` of 1 and more, no run is 0.
#[inline]
pub const fn run(key: u64, count: u64) -> u64 {
    key << COUNT | count
}

/// `last` with `count` more references where `same` is 1, `count` references of `key` where it is 0: without a branch, for nobody
/// can foresee which. A run that had no room for them has a count below `count`.
#[inline]
pub const fn longer(last: u64, key: u64, count: u64, same: u64) -> u64 {
    (last & same.wrapping_neg() | run(key, 0) & same.wrapping_sub(1)).wrapping_add(count)
}

/// The page, the kind and the count of a run.
#[inline]
pub const fn parts(run: u64) -> (u64, u64, u64) {
    (run >> (COUNT + 2), run >> COUNT & 3, run & MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_grows_until_it_is_full() {
        let one = run(key(0x7_ffff_f123, STORE), 1);
        assert_eq!(parts(one), (0x7_ffff_f123, STORE, 1));
        let store = key(0x7_ffff_f123, STORE);
        let more = longer(one, store, MOST - 1, 1);
        assert_eq!(parts(more), (0x7_ffff_f123, STORE, MOST));
        assert!(longer(more, store, 1, 1) & MOST < 1, "it has no room");
        assert!(longer(more, store, 4095, 1) & MOST < 4095, "nor for many");
        let load = key(0x7_ffff_f123, LOAD);
        assert_eq!(longer(one, load, 7, 0), run(load, 7));
        assert_eq!(longer(u64::MAX, key(0, LOAD), 1, 0), 1, "page 0");
    }
}
