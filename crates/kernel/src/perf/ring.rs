//! The buffer in which the kernel hands over records: one page of control, then a ring of pages
//! (perf_event_open(2), "MMAP layout").

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::Event;
use crate::region::page_size;

/// Offsets of `data_head` and `data_tail` in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// An event's buffer.
#[derive(Debug)]
pub(super) struct Ring {
    event: Event,
    base: NonNull<u8>,
    /// Bytes of the ring, a power of two.
    bytes: usize,
}

impl Ring {
    /// Maps a ring of about `bytes`.
    pub(super) fn new(event: Event, bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_power_of_two().max(page_size());
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes + page_size(), rights, MapFlags::SHARED, &event.0, 0)?
        };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { event, base, bytes })
    }

    pub(super) fn event(&self) -> &Event {
        &self.event
    }

    fn cell(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the control page, aligned; the kernel writes it as one word.
        unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Hands every record to `take`: its type and what follows the header.
    pub(super) fn drain(&mut self, mut take: impl FnMut(u32, &[u8])) {
        let head = self.cell(HEAD).load(Ordering::Acquire);
        let mut tail = self.cell(TAIL).load(Ordering::Relaxed);
        let mut record = Vec::new();
        while tail < head {
            let mut header = [0; 8];
            self.copy(tail, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let size = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < 8 || tail + size > head {
                break;
            }
            record.resize(size as usize - 8, 0);
            self.copy(tail + 8, &mut record);
            take(kind, &record);
            tail += size;
        }
        self.cell(TAIL).store(head, Ordering::Release);
    }

    fn copy(&self, from: u64, into: &mut [u8]) {
        let start = from as usize & (self.bytes - 1);
        let first = into.len().min(self.bytes - start);
        // SAFETY: both parts lie in the ring; the kernel does not write what lies between tail and
        // head.
        unsafe {
            let ring = self.base.as_ptr().add(page_size());
            std::ptr::copy_nonoverlapping(ring.add(start), into.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(ring, into.as_mut_ptr().add(first), into.len() - first);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this ring's alone.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes + page_size()) };
    }
}
