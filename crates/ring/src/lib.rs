//! The mapping that pagelab shares with its tracer inside QEMU, or with its library in a program
//! that is recorded through a window. It has a [`Header`], a [`Slot`] for each thread that is
//! recorded at a time, and an [`Image`] for each address space. Each slot has a ring of [`BUFFERS`]
//! buffers of [`WORDS`] words, which encode references ([`words`]).
//!
//! The writer of a slot is the one thread that holds it, its reader is pagelab. A buffer is handed over when it is full.
//! All of a slot's state lies in the mapping, so what a killed program had recorded can still be read.

#![no_std]

pub mod words;

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// The first word of a mapping: its layout.
pub const LAYOUT: u64 = u64::from_le_bytes(*b"plring 6");
/// Threads that can be recorded at a time.
pub const SLOTS: usize = 256;
/// Address spaces in all: processes that are forked and programs that are executed. Those beyond are not recorded; a
/// trace's reader takes no more.
pub const IMAGES: usize = 4096;
/// Bytes that are kept of a program and its arguments.
pub const NAMED: usize = 236;
/// Buffers in a ring.
pub const BUFFERS: usize = 4;
/// Words in a buffer.
pub const WORDS: usize = 1 << 18;
/// Bytes of the mapping. Only what is written to takes memory: of each slot at most 4 MiB.
pub const BYTES: usize = RINGS + SLOTS * BUFFERS * WORDS * 4;
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

/// The first word of the counts of a machine: their layout. The second is the number of pages that
/// user mode touched, or [`UNCOUNTED`]. A row for each instruction follows.
pub const COUNTED: u64 = u64::from_le_bytes(*b"plcount2");
/// The number of pages if the tracer did not count them.
pub const UNCOUNTED: u64 = u64::MAX;
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
    /// What is recorded: bits 1 << [`words::LOAD`], 1 << [`words::STORE`], 1 << [`words::FETCH`].
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
    /// The window of a recording through a window.
    pub window: Window,
}

/// The size of a window, and the statistics of a recording through it.
#[repr(C)]
#[derive(Debug)]
pub struct Window {
    /// Initial size, in pages.
    pub pages: AtomicU32,
    /// Whether a program enlarges its window until it is no more than [`SLOWDOWN`] times slower.
    pub grows: AtomicU32,
    /// The largest window of any program, in pages.
    pub widest: AtomicU32,
    /// Why a program could not be recorded: one of [`refusals`]; 0: every program could.
    pub refused: AtomicU32,
    /// Threads whose faults were recorded.
    pub threads: AtomicU32,
    /// Whether references of the kernel may be missing.
    pub without_kernel: AtomicU32,
    /// Recorded faults that the kernel took for the program.
    pub by_kernel: AtomicU64,
    /// Pages of stacks, which are not in the window.
    pub stack_pages: AtomicU64,
    /// Other pages that are not in the window.
    pub other_pages: AtomicU64,
    /// How often all pages were hidden, because faults may have been missed or the window grew.
    pub emptied: AtomicU64,
}

/// Maximum slowdown of a program with a window that grows, as a factor.
pub const SLOWDOWN: u64 = 3;
/// The largest window, in pages.
pub const MAX_WINDOW: u32 = 1 << 16;
/// The smallest window, in pages.
pub const MIN_WINDOW: u32 = 128;

/// Why a program cannot be recorded through a window.
pub mod refusals {
    /// The kernel reports no mappings, or no page table entries.
    pub const MAPPINGS: u32 = 1;
    /// The kernel has no userfaultfd that accepts any memory.
    pub const USERFAULT: u32 = 2;
    /// The kernel records no page faults for this user.
    pub const EVENTS: u32 = 3;
    /// The system lacks memory, or the mapping lacks a free slot or image.
    pub const MEMORY: u32 = 4;
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
    /// Words in the buffer that is being filled.
    pub used: AtomicU64,
    /// Blocks that followed each other as they did the last time, since its last word: [`words::go`].
    pub going: AtomicU64,
    /// Words in each buffer that was handed over.
    pub words: [AtomicU32; BUFFERS],
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
    pub words: [AtomicU8; NAMED],
}
