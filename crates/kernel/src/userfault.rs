//! userfaultfd(2): faults of a range of anonymous memory as events, and the calls that resolve them.
//!
//! [`Userfault`] is the descriptor. [`Paged`] is a mapping of this process under one: its pages are taken out and put
//! back by whoever reads the events. See `Documentation/admin-guide/mm/userfaultfd.rst` of the kernel.

use std::fs::File;
use std::io;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::region::Region;
use crate::waiting::{Bell, readable};

const API: u64 = 0xaa;
const MISSING: u64 = 1;
const PROTECTED: u64 = 2;
/// Of a copy: the page is protected against writing.
const COPY_PROTECTED: u64 = 2;
/// The descriptor serves faults in user mode alone, which every user may.
const USER_MODE_ONLY: libc::c_int = 1;

// `_IOWR(0xAA, …)` of <linux/userfaultfd.h>, alike on x86-64 and arm64.
const NEW: libc::c_ulong = 0xaa00;
const IOCTL_API: libc::c_ulong = 0xc018_aa3f;
const REGISTER: libc::c_ulong = 0xc020_aa00;
const WAKE: libc::c_ulong = 0x8010_aa02;
const COPY: libc::c_ulong = 0xc028_aa03;
const ZEROPAGE: libc::c_ulong = 0xc020_aa04;
const WRITEPROTECT: libc::c_ulong = 0xc018_aa06;

const EVENT_PAGEFAULT: u8 = 0x12;
const EVENT_REMAP: u8 = 0x14;
const EVENT_REMOVE: u8 = 0x15;
const EVENT_UNMAP: u8 = 0x16;

/// What a descriptor is asked to tell beside missing pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Faults of system calls too, and what becomes of the mappings: `mremap`, `munmap`, `madvise`.
    pub program: bool,
}

impl Features {
    /// `UFFD_FEATURE_PAGEFAULT_FLAG_WP`, `EVENT_REMAP`, `EVENT_REMOVE`, `EVENT_UNMAP`, `THREAD_ID`.
    fn bits(self) -> u64 {
        if self.program { 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 8 } else { 0 }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A reference to a page that is not there, or is write-protected; who made it waits.
    Fault {
        /// The address, anywhere in the page.
        address: usize,
        /// Whether it would write.
        write: bool,
        /// Whether the page is there and protected against writing.
        protected: bool,
        /// The number of the thread, where that was asked for ([`Features::program`]).
        thread: u32,
    },
    /// The range is empty now, or no longer mapped: what it held is of no use.
    Gone {
        /// The first address.
        start: usize,
        /// Behind the last.
        end: usize,
    },
    /// The range moved.
    Moved {
        /// From where.
        from: usize,
        /// To where.
        to: usize,
        /// Bytes.
        length: usize,
    },
}

/// Whether this user may have a userfaultfd on this kernel.
///
/// # Errors
/// Why not, and what to do instead.
pub fn available(features: Features) -> Result<(), (String, String)> {
    Userfault::open(features).map(drop).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => (
            "may not resolve page faults (userfaultfd) as this user".to_owned(),
            "run as root, or: sysctl vm.unprivileged_userfaultfd=1".to_owned(),
        ),
        _ => (
            format!("cannot resolve page faults here (userfaultfd: {error})"),
            "use a kernel from Linux 5.11 on with CONFIG_USERFAULTFD".to_owned(),
        ),
    })
}

/// A userfaultfd.
#[derive(Debug)]
pub struct Userfault(OwnedFd);

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Copy {
    to: u64,
    from: u64,
    length: u64,
    mode: u64,
    copied: i64,
}

/// `struct uffd_msg`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    words: [u64; 3],
}

/// Messages read at a time.
const MESSAGES: usize = 16;

impl Userfault {
    /// Opens one for this process.
    ///
    /// # Errors
    /// When the kernel has none, or this user may not.
    pub fn open(features: Features) -> io::Result<Self> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | if features.program { 0 } else { USER_MODE_ONLY };
        // SAFETY: no pointers; a new descriptor that nobody else has.
        let mut opened = unsafe { owned(libc::syscall(libc::SYS_userfaultfd, flags)) };
        if opened.is_err()
            && let Ok(device) = File::options().read(true).write(true).open("/dev/userfaultfd")
        {
            // SAFETY: as above.
            opened = unsafe { owned(i64::from(libc::ioctl(device.as_raw_fd(), NEW, flags))) };
        }
        Self::begun(opened?, features)
    }

    /// One that another process opened for its own memory and hands over; `None`: it got none.
    ///
    /// # Errors
    /// When it cannot be received, or the kernel lacks what is asked for.
    pub fn handed(socket: &UnixStream) -> io::Result<Option<Self>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut word = [0; 8];
        recvmsg(socket, &mut [IoSliceMut::new(&mut word)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let mut handed = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.into_iter().next(),
            _ => None,
        });
        handed.next().map(|descriptor| Self::begun(descriptor, Features { program: true })).transpose()
    }

    fn begun(descriptor: OwnedFd, features: Features) -> io::Result<Self> {
        let new = Self(descriptor);
        new.call(IOCTL_API, &mut Api { api: API, features: features.bits(), ioctls: 0 })?;
        Ok(new)
    }

    fn call<T>(&self, request: libc::c_ulong, argument: &mut T) -> io::Result<()> {
        // SAFETY: every request of this module is called with the structure that the kernel reads
        // and writes for it.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, std::ptr::from_mut(argument)) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Asks for the faults of missing pages of a range of anonymous memory; and, where they may be
    /// `protected`, for those of writes to protected ones.
    ///
    /// # Errors
    /// When it is no such memory, or another descriptor's already.
    pub fn register(&self, start: usize, length: usize, protected: bool) -> io::Result<()> {
        let mode = MISSING | if protected { PROTECTED } else { 0 };
        self.call(REGISTER, &mut Register { start: start as u64, length: length as u64, mode, ioctls: 0 })
    }

    /// Appends what has happened; nothing where nothing has. Never waits.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, events: &mut Vec<Event>) -> io::Result<()> {
        let mut messages = [Message::default(); MESSAGES];
        let size = size_of::<Message>();
        // SAFETY: so many bytes are writable, and any bytes are messages.
        let count = unsafe { libc::read(self.0.as_raw_fd(), messages.as_mut_ptr().cast(), size * MESSAGES) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(error) };
        }
        let read = messages.iter().take(count.unsigned_abs() / size);
        events.extend(read.filter_map(|&Message { event, words: [a, b, c], .. }| match event {
            EVENT_PAGEFAULT => {
                let (write, protected) = (a & 1 != 0, a & 2 != 0);
                Some(Event::Fault { address: b as usize, write, protected, thread: c as u32 })
            }
            EVENT_REMAP => Some(Event::Moved { from: a as usize, to: b as usize, length: c as usize }),
            EVENT_REMOVE | EVENT_UNMAP => Some(Event::Gone { start: a as usize, end: b as usize }),
            _ => None,
        }));
        Ok(())
    }

    /// Gives the missing page at `address` this content, and wakes who waits for it. `false`: it is
    /// there already, or its mapping is gone; who waits is woken too.
    ///
    /// # Errors
    /// `WouldBlock` while the mappings change, which an event tells; others when the kernel refuses.
    pub fn put(&self, address: usize, content: &[u8]) -> io::Result<bool> {
        self.copy(address, content, 0)
    }

    /// The same, and protects the page against writing.
    ///
    /// # Errors
    /// As there.
    pub fn put_protected(&self, address: usize, content: &[u8]) -> io::Result<bool> {
        self.copy(address, content, COPY_PROTECTED)
    }

    fn copy(&self, address: usize, content: &[u8], mode: u64) -> io::Result<bool> {
        let length = content.len() as u64;
        let from = content.as_ptr().expose_provenance() as u64;
        let done = self.call(COPY, &mut Copy { to: address as u64, from, length, mode, copied: 0 });
        self.resolved(done, address, length)
    }

    /// The same with zeroes.
    ///
    /// # Errors
    /// As there.
    pub fn put_zeroes(&self, address: usize, length: usize) -> io::Result<bool> {
        let length = length as u64;
        let done = self.call(ZEROPAGE, &mut Register { start: address as u64, length, mode: 0, ioctls: 0 });
        self.resolved(done, address, length)
    }

    fn resolved(&self, done: io::Result<()>, address: usize, length: u64) -> io::Result<bool> {
        match done {
            Ok(()) => Ok(true),
            Err(error) => match error.raw_os_error() {
                Some(libc::EEXIST | libc::ENOENT | libc::ESRCH) => {
                    self.wake(address, length as usize)?;
                    Ok(false)
                }
                _ => Err(error),
            },
        }
    }

    /// Wakes who waits for the range: what it does is tried again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wake(&self, address: usize, length: usize) -> io::Result<()> {
        self.call(WAKE, &mut [address as u64, length as u64])
    }

    /// Protects the range against writing, or no longer, which wakes who waits.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn protect(&self, address: usize, length: usize, protected: bool) -> io::Result<()> {
        self.call(WRITEPROTECT, &mut [address as u64, length as u64, u64::from(protected)])
    }
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The descriptor that a system call returned.
///
/// # Safety
/// It must be new, where it is one.
unsafe fn owned(returned: i64) -> io::Result<OwnedFd> {
    match i32::try_from(returned) {
        // SAFETY: the caller's promise.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A mapping of this process whose missing pages are events. Base pages alone.
#[derive(Debug)]
pub struct Paged {
    /// Dropped before the mapping: a thread that waits goes on, with zeroes.
    events: Userfault,
    region: Region,
}

// SAFETY: the mapping belongs to nobody else and stays where it is. Its content is referenced by
// one thread; another takes pages out and puts them back while that one waits for it, in a fault or
// for a lock. A page that is missing can be put in at any time: the kernel maps it once it is whole.
unsafe impl Sync for Paged {}

impl Paged {
    /// Maps `pages` pages of anonymous memory, none of them there.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new(pages: usize) -> io::Result<Self> {
        let region = Region::base_pages(pages)?;
        let events = Userfault::open(Features::default())?;
        events.register(region.base().expose_provenance(), region.bytes(), false)?;
        Ok(Self { events, region })
    }

    /// The mapping.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Its events.
    pub fn events(&self) -> &Userfault {
        &self.events
    }

    /// Has `resolve` put in each page that is referenced and missing, until `stop` rings. Where it
    /// cannot, `failed` is given the error, and missing pages get zeroes from then on: no reference
    /// may wait for ever.
    pub fn serve(
        &self,
        stop: &Bell,
        mut resolve: impl FnMut(u32) -> io::Result<()>,
        failed: impl FnOnce(io::Error),
    ) {
        let mut waiting = Vec::with_capacity(MESSAGES);
        match catch_unwind(AssertUnwindSafe(|| self.each(stop, &mut waiting, &mut resolve))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => failed(error),
            Err(_) => failed(io::Error::other("the thread that resolves faults panicked")),
        }
        let mut zeroes = |page| {
            let _ = self.events.put_zeroes(self.address(page), self.region.page_size());
            Ok(())
        };
        // The kernel does not repeat their events.
        let _ = waiting.drain(..).try_for_each(&mut zeroes);
        let _ = self.each(stop, &mut waiting, &mut zeroes);
    }

    /// Resolves faults until `stop` rings. The pages of `waiting` are those whose event was read.
    fn each(
        &self,
        stop: &Bell,
        waiting: &mut Vec<u32>,
        resolve: &mut impl FnMut(u32) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut events = Vec::with_capacity(MESSAGES);
        loop {
            let [_, stopped] = readable([self.events.as_fd(), stop.as_fd()], None)?;
            if stopped {
                return Ok(());
            }
            events.clear();
            self.events.read(&mut events)?;
            waiting.extend(events.iter().filter_map(|event| match *event {
                Event::Fault { address, .. } => Some(self.page(address)),
                _ => None,
            }));
            while let Some(&page) = waiting.last() {
                resolve(page)?;
                waiting.pop();
            }
        }
    }

    /// The page of an address.
    pub fn page(&self, address: usize) -> u32 {
        ((address - self.region.range().start) / self.region.page_size()) as u32
    }

    /// The address of a page.
    ///
    /// # Panics
    /// When the mapping has no such page.
    pub fn address(&self, page: u32) -> usize {
        assert!((page as usize) < self.region.pages(), "page {page} outside the mapping");
        self.region.range().start + page as usize * self.region.page_size()
    }

    /// Copies the page, which must be there and not be written meanwhile, into `content`, and takes
    /// it out: the next reference is an event.
    ///
    /// # Errors
    /// When the kernel refuses.
    ///
    /// # Panics
    /// When there is no such page, or `content` is not as long as one.
    pub fn take(&self, page: u32, content: &mut [u8]) -> io::Result<()> {
        let size = self.region.page_size();
        assert!((page as usize) < self.region.pages() && content.len() == size, "page {page}");
        // SAFETY: the page lies within this mapping, `content` is as long and cannot overlap with
        // what only this owns. Whoever references it does so by raw pointers and waits, as the
        // caller promises. What is dropped is a page of this mapping.
        unsafe {
            let base = self.region.base().add(page as usize * size);
            std::ptr::copy_nonoverlapping(base, content.as_mut_ptr(), size);
            match libc::madvise(base.cast(), size, libc::MADV_DONTNEED) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Reads a word of a page.
    ///
    /// # Panics
    /// When there is none.
    pub fn word(&self, page: u32, word: usize) -> u64 {
        // SAFETY: it lies within the mapping, aligned; no Rust reference to it exists.
        unsafe { self.pointer(page, word).read_volatile() }
    }

    /// Writes a word of a page.
    ///
    /// # Panics
    /// When there is none.
    pub fn set_word(&self, page: u32, word: usize, value: u64) {
        // SAFETY: as for reading.
        unsafe { self.pointer(page, word).write_volatile(value) }
    }

    fn pointer(&self, page: u32, word: usize) -> *mut u64 {
        let size = self.region.page_size();
        assert!((page as usize) < self.region.pages() && word < size / 8, "word {word} of page {page}");
        self.region.base().wrapping_add(page as usize * size + word * 8).cast()
    }
}
