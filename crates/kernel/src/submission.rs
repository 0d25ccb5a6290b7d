//! Reads and writes of files by io_uring(7), several in flight at once.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use crate::region::{Region, page_size};

/// Most bytes that Linux transfers in one request (`MAX_RW_COUNT`), in whole pages.
pub const MAX_TRANSFER: usize = 0x7fff_0000;

/// What a request does with its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Fills it from the file.
    Read,
    /// Writes what it holds, which is what its last read left there.
    Write,
}

/// A submission queue with a page-aligned buffer for each request in flight.
///
/// Each request carries a tag of type `T`, which its completion returns.
pub struct Queue<T> {
    ring: IoUring,
    /// One buffer after the other; `None` only while the queue is dropped.
    buffers: Option<Region>,
    /// Bytes per buffer.
    stride: usize,
    in_flight: Vec<Option<(T, u32)>>,
    free: Vec<usize>,
    calls: u64,
}

impl<T> Queue<T> {
    /// A queue of up to `depth` requests of up to `transfer` bytes. Its buffers are populated.
    ///
    /// # Errors
    /// When the kernel has no io_uring (before 5.6 no reads either), or refuses it to the caller
    /// (sysctl kernel.io_uring_disabled); when there is no memory for the buffers.
    pub fn open(depth: u32, transfer: usize) -> io::Result<Self> {
        let ring = IoUring::new(depth.max(1))?;
        let count = depth.max(1) as usize;
        let pages = transfer.clamp(1, MAX_TRANSFER).div_ceil(page_size());
        let buffers = Region::anonymous(pages * count)?;
        buffers.populate(|_, _| {});
        Ok(Self {
            ring,
            buffers: Some(buffers),
            stride: pages * page_size(),
            in_flight: (0..count).map(|_| None).collect(),
            free: (0..count).rev().collect(),
            calls: 0,
        })
    }

    /// Whether an error of [`Queue::open`] means that the caller cannot have a queue on this
    /// kernel, rather than that something is short.
    pub fn is_refused(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES))
    }

    /// Calls of io_uring_enter(2) so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Submits a request for `length` bytes at `offset`, at most a transfer. Where as many requests
    /// as the queue has buffers are in flight, waits for one of them first. Calls `completed` with
    /// the tag of each request that has completed.
    ///
    /// # Errors
    /// When a request is longer than a transfer, failed, or transferred fewer bytes than asked for.
    pub fn submit(
        &mut self,
        file: &File,
        (direction, offset, length): (Direction, u64, usize),
        tag: T,
        mut completed: impl FnMut(T),
    ) -> io::Result<()> {
        while self.free.is_empty() {
            self.enter(1)?;
            self.reap(&mut completed)?;
        }
        if length > self.stride {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the request is longer than a transfer"));
        }
        let length = length as u32;
        let (Some(buffers), Some(slot)) = (&self.buffers, self.free.pop()) else {
            return Err(io::Error::other("the queue is closed"));
        };
        let buffer = buffers.base().wrapping_add(slot * self.stride);
        let fd = types::Fd(file.as_raw_fd());
        let entry = match direction {
            Direction::Read => opcode::Read::new(fd, buffer, length).offset(offset).build(),
            Direction::Write => opcode::Write::new(fd, buffer, length).offset(offset).build(),
        };
        self.in_flight[slot] = Some((tag, length));
        // SAFETY: the buffer belongs to this request alone until it completes, and is unmapped only
        // after that; the file is open while the request is submitted below, and the kernel holds it
        // from then on.
        unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) }
            .map_err(|_| io::Error::other("the submission queue is full"))?;
        self.enter(0)?;
        self.reap(&mut completed)
    }

    /// Waits for all requests in flight.
    ///
    /// # Errors
    /// As [`Queue::submit`].
    pub fn finish(&mut self, mut completed: impl FnMut(T)) -> io::Result<()> {
        while self.free.len() < self.in_flight.len() {
            self.reap(&mut completed)?;
            if self.free.len() < self.in_flight.len() {
                self.enter(1)?;
            }
        }
        Ok(())
    }

    /// Submits what is queued, and waits for `count` completions.
    fn enter(&mut self, count: usize) -> io::Result<()> {
        loop {
            self.calls += 1;
            match self.ring.submit_and_wait(count) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn reap(&mut self, completed: &mut impl FnMut(T)) -> io::Result<()> {
        let mut failure = None;
        for entry in self.ring.completion() {
            let slot = entry.user_data() as usize;
            let Some((tag, length)) = self.in_flight.get_mut(slot).and_then(Option::take) else { continue };
            self.free.push(slot);
            match entry.result() {
                error if error < 0 => failure = Some(io::Error::from_raw_os_error(-error)),
                bytes if bytes as u32 != length => {
                    let text = format!("{bytes} of {length} bytes were transferred");
                    failure = Some(io::Error::new(io::ErrorKind::UnexpectedEof, text));
                }
                _ => completed(tag),
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        while self.free.len() < self.in_flight.len() {
            let entered = self.enter(1);
            // A request that failed has completed too.
            let _failed = self.reap(&mut |_| {});
            if entered.is_err() {
                // The kernel may still write into the buffers, so they stay mapped.
                std::mem::forget(self.buffers.take());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// A file of `pages` pages, each of which is filled with its number.
    fn numbered(pages: u8) -> File {
        let mut file = tempfile::tempfile().unwrap();
        (0..pages).for_each(|page| file.write_all(&vec![page; 4096]).unwrap());
        file
    }

    /// `None` where this machine refuses io_uring. A kernel that has it faults on parameters at 0.
    fn queue<T>(depth: u32) -> Option<Queue<T>> {
        match Queue::open(depth, 4096) {
            Ok(queue) => Some(queue),
            Err(error) if Queue::<T>::is_refused(&error) => {
                // SAFETY: without parameters the call only fails.
                unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null_mut::<u8>()) };
                assert_ne!(io::Error::last_os_error().raw_os_error(), Some(libc::EFAULT), "{error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn every_request_completes_once_with_its_tag() {
        let file = numbered(50);
        for depth in [1, 3, 64] {
            let Some(mut queue) = queue(depth) else { return };
            let mut tags = Vec::new();
            for page in 0..50 {
                let request = (Direction::Read, page * 4096, 4096);
                queue.submit(&file, request, page, |tag| tags.push(tag)).unwrap();
            }
            queue.finish(|tag| tags.push(tag)).unwrap();
            tags.sort_unstable();
            assert_eq!(tags, (0..50).collect::<Vec<_>>(), "depth {depth}");
            assert!(queue.calls() >= 50, "{}", queue.calls());
        }
    }

    #[test]
    fn a_write_copies_what_the_read_before_it_left() {
        let file = numbered(8);
        let Some(mut queue) = queue(1) else { return };
        queue.submit(&file, (Direction::Read, 5 * 4096, 4096), (), |()| {}).unwrap();
        queue.submit(&file, (Direction::Write, 2 * 4096, 4096), (), |()| {}).unwrap();
        queue.finish(|()| {}).unwrap();
        let mut page = [0; 4096];
        file.read_exact_at(&mut page, 2 * 4096).unwrap();
        assert_eq!(page, [5; 4096]);
    }

    #[test]
    fn a_read_past_the_end_is_an_error() {
        let file = numbered(1);
        let Some(mut queue) = queue(4) else { return };
        let submitted = queue.submit(&file, (Direction::Read, 2048, 4096), (), |()| {});
        let error = submitted.and_then(|()| queue.finish(|()| {})).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(error.to_string(), "2048 of 4096 bytes were transferred");
    }

    #[test]
    fn a_queue_dropped_early_waits_for_its_requests() {
        let file = numbered(200);
        let Some(mut queue) = queue(200) else { return };
        for page in 0..200 {
            queue.submit(&file, (Direction::Read, page * 4096, 4096), page, |_| {}).unwrap();
        }
        drop(queue);
        assert!(self::queue::<()>(200).is_some());
    }
}
