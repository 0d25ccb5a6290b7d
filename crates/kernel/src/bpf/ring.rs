//! A BPF ring buffer: programs on every CPU append records, and pagelab reads them in order
//! (Documentation/bpf/ringbuf.rst).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::TraceError;
use super::map::create;
use crate::region::page_size;

/// `BPF_MAP_TYPE_RINGBUF`.
const KIND: u32 = 27;
/// `BPF_RINGBUF_BUSY_BIT`, `BPF_RINGBUF_DISCARD_BIT` and the rest of a record's first word, its
/// length.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const LENGTH: u32 = DISCARDED - 1;
/// Bytes of a record's header (`BPF_RINGBUF_HDR_SZ`), and the alignment of records.
const HEADER: usize = 8;

/// A ring of records of `WORDS` words of eight bytes.
#[derive(Debug)]
pub(super) struct Ring<const WORDS: usize> {
    map: OwnedFd,
    /// The page with the reader's position, which pagelab writes.
    reader: NonNull<u8>,
    /// The page with the writers' position, followed by the ring. The kernel maps the ring twice in a
    /// row, so that every record is contiguous.
    writers: NonNull<u8>,
    bytes: usize,
}

impl<const WORDS: usize> Ring<WORDS> {
    /// Creates a ring of `bytes` bytes, a power of two.
    pub(super) fn new(bytes: u32) -> Result<Self, TraceError> {
        let map = create(KIND, [0, 0], bytes)?;
        let bytes = bytes as usize;
        let page = page_size();
        let mapped = |length: usize, rights: ProtFlags, offset: usize| -> io::Result<NonNull<u8>> {
            // SAFETY: a new mapping at an address of the kernel's choice.
            let base =
                unsafe { mmap(std::ptr::null_mut(), length, rights, MapFlags::SHARED, &map, offset as u64)? };
            NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
        };
        let refused = |error| TraceError::refused("to map a BPF ring buffer", error);
        let reader = mapped(page, ProtFlags::READ | ProtFlags::WRITE, 0).map_err(refused)?;
        let writers = mapped(page + 2 * bytes, ProtFlags::READ, page).inspect_err(|_| {
            // SAFETY: this function created the mapping and has not passed it on.
            let _ = unsafe { munmap(reader.as_ptr().cast(), page) };
        });
        Ok(Self { reader, writers: writers.map_err(refused)?, map, bytes })
    }

    /// The file descriptor of the map, for a program.
    pub(super) fn number(&self) -> i32 {
        self.map.as_raw_fd()
    }

    /// Passes every complete record to `take`, in order.
    pub(super) fn drain(&mut self, mut take: impl FnMut([u64; WORDS])) {
        // SAFETY: both words are aligned, at the start of their pages, and the kernel accesses them
        // as whole words.
        let (reader, writers) = unsafe {
            (&*self.reader.as_ptr().cast::<AtomicU64>(), &*self.writers.as_ptr().cast::<AtomicU64>())
        };
        let mut at = reader.load(Ordering::Relaxed);
        while at < writers.load(Ordering::Acquire) {
            let place = page_size() + (at as usize & (self.bytes - 1));
            // SAFETY: the record's header lies in the ring, aligned to eight bytes.
            let head = unsafe { &*self.writers.as_ptr().add(place).cast::<AtomicU32>() };
            let head = head.load(Ordering::Acquire);
            if head & BUSY != 0 {
                break;
            }
            let length = (head & LENGTH) as usize;
            if head & DISCARDED == 0 && length == WORDS * 8 {
                // SAFETY: the record is complete, and the kernel does not overwrite it before the
                // reader's position has passed it; the second mapping makes it contiguous.
                let record =
                    unsafe { self.writers.as_ptr().add(place + HEADER).cast::<[u64; WORDS]>().read() };
                take(record);
            }
            at += (HEADER + length).next_multiple_of(HEADER) as u64;
            reader.store(at, Ordering::Release);
        }
    }
}

impl<const WORDS: usize> Drop for Ring<WORDS> {
    fn drop(&mut self) {
        // SAFETY: both mappings are this ring's alone.
        unsafe {
            let _ = munmap(self.reader.as_ptr().cast(), page_size());
            let _ = munmap(self.writers.as_ptr().cast(), page_size() + 2 * self.bytes);
        }
    }
}
