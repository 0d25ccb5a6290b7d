//! The system calls of the window, and the mappings and page table of this process as the kernel
//! tells them.
//!
//! All of it runs in signal handlers: nothing here allocates or locks.

use std::ffi::{CStr, c_int, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of a page; the window knows no other.
pub const PAGE: usize = 4096;
/// Descriptors begin here, out of the way of programs that count on low numbers.
const HIGH: c_int = 200;

/// A mapping's flags, as `PROCMAP_QUERY` has them.
pub const READABLE: u64 = 1;
/// See above.
pub const WRITABLE: u64 = 2;
/// See above.
pub const EXECUTABLE: u64 = 4;
/// See above.
pub const SHARED: u64 = 8;

/// `PROCMAP_QUERY`, of Linux 6.11 and later.
const QUERY: libc::c_ulong = 0xc068_6611;
/// Not in the way asked for, then the next one.
const OR_NEXT: u64 = 16;

/// Of an entry of the page table: the page is there.
pub const PRESENT: u64 = 1 << 63;
/// It is in a swap area.
pub const SWAPPED: u64 = 1 << 62;
/// It belongs to a file, or to shared memory.
pub const OF_FILE: u64 = 1 << 61;

static MAPS: AtomicI32 = AtomicI32::new(-1);
static PAGEMAP: AtomicI32 = AtomicI32::new(-1);

/// `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    rights: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

/// A mapping.
#[derive(Clone, Copy, Debug, Default)]
pub struct Area {
    /// The first address.
    pub start: usize,
    /// Behind the last.
    pub end: usize,
    /// [`READABLE`] and the like.
    pub flags: u64,
    /// Whether it maps a file.
    pub file: bool,
}

/// Opens the files of this process that the others read; whether the kernel has them and can be
/// asked so.
pub fn open() -> bool {
    for (to, name) in [(&MAPS, c"/proc/self/maps"), (&PAGEMAP, c"/proc/self/pagemap")] {
        // SAFETY: the name ends with a zero.
        let file = unsafe { libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        to.store(high(file), Relaxed);
    }
    area(open as *const () as usize, false, &mut []).is_some() && entries(0, &mut [0])
}

/// Closes them.
pub fn close_files() {
    for file in [&MAPS, &PAGEMAP] {
        close(file.swap(-1, Relaxed));
    }
}

/// The descriptor under a high number.
pub fn high(file: c_int) -> c_int {
    if file < 0 {
        return file;
    }
    // SAFETY: no pointers; the low number is this library's and is not used again.
    unsafe {
        let high = libc::fcntl(file, libc::F_DUPFD_CLOEXEC, HIGH);
        if high >= 0 {
            libc::close(file);
            return high;
        }
    }
    file
}

/// Closes a descriptor, if it is one.
pub fn close(file: c_int) {
    if file >= 0 {
        // SAFETY: a descriptor of this library's.
        unsafe { libc::close(file) };
    }
}

/// The mapping at `address`, or the first behind it; its name's bytes go into `name`.
pub fn area(address: usize, or_next: bool, name: &mut [u8]) -> Option<Area> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        flags: if or_next { OR_NEXT } else { 0 },
        address: address as u64,
        name_size: name.len() as u32,
        name: if name.is_empty() { 0 } else { name.as_mut_ptr().expose_provenance() as u64 },
        ..Query::default()
    };
    if let Some(first) = name.first_mut() {
        *first = 0;
    }
    // SAFETY: the kernel writes to the query and to as many bytes of the name as it is said to
    // have.
    let done = unsafe { libc::ioctl(MAPS.load(Relaxed), QUERY, &raw mut query) };
    let (start, end) = (query.start as usize, query.end as usize);
    (done == 0).then_some(Area { start, end, flags: query.rights, file: query.inode != 0 })
}

/// The entries of the page table from the page of `address` on; whether they could be read.
pub fn entries(address: usize, list: &mut [u64]) -> bool {
    let (bytes, at) = (size_of_val(list), address / PAGE * size_of::<u64>());
    // SAFETY: so many bytes are writable, and every word is an entry.
    let read =
        unsafe { libc::pread(PAGEMAP.load(Relaxed), list.as_mut_ptr().cast(), bytes, at as libc::off_t) };
    read == bytes as isize
}

/// Nanoseconds that the threads of this process have run.
pub fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A new mapping of `length` bytes; 0: there is none.
pub fn map(length: usize, flags: c_int, file: c_int, offset: usize) -> usize {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: at an address of the kernel's choice.
    let made = unsafe {
        libc::syscall(libc::SYS_mmap, ptr::null_mut::<c_void>(), length, rights, flags, file, offset)
    };
    if made < 0 { 0 } else { made as usize }
}

/// Takes a mapping of this library's away.
pub fn unmap(start: usize, length: usize) {
    // SAFETY: nothing refers to it.
    unsafe { libc::syscall(libc::SYS_munmap, start, length) };
}

/// Gives rights, of [`READABLE`] and the like, to pages; whether it was done.
pub fn protect(start: usize, length: usize, flags: u64) -> bool {
    // SAFETY: callers name pages that they mapped, or add rights that are taken away again.
    unsafe {
        libc::syscall(libc::SYS_mprotect, start, length, flags & (READABLE | WRITABLE | EXECUTABLE)) == 0
    }
}

/// Moves a mapping over what is at `to`, at once; whether it was done.
pub fn move_over(from: usize, length: usize, to: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: what is there was copied to it.
    unsafe { libc::syscall(libc::SYS_mremap, from, length, length, flags, to) == to as i64 }
}

/// madvise(2), not the wrapper; 0 or -1.
pub fn advise(start: usize, length: usize, advice: c_int) -> c_int {
    // SAFETY: callers name advice that keeps the content of what they name, or that the program
    // itself gave.
    unsafe { libc::syscall(libc::SYS_madvise, start, length, advice) as c_int }
}

/// A file in memory that is as long as any mapping grows.
pub fn memory_file(name: &CStr) -> c_int {
    const LENGTH: i64 = 1 << 44;
    // SAFETY: the name ends with a zero; the file is new.
    unsafe {
        let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if file >= 0 && libc::ftruncate(file, LENGTH) != 0 {
            libc::close(file);
            return -1;
        }
        file
    }
}

/// Removes the pages of these mappings from the page table; they stay in their files.
pub fn hide(list: &[libc::iovec]) {
    /// `PIDFD_SELF_THREAD_GROUP`, of Linux 6.14 and later.
    const SELF: c_int = -10001;
    let bytes: usize = list.iter().map(|part| part.iov_len).sum();
    if bytes == 0 {
        return;
    }
    // SAFETY: the list is readable. All that it names is shared memory or an unchanged page of a
    // file: it keeps its content.
    let done = unsafe {
        libc::syscall(libc::SYS_process_madvise, SELF, list.as_ptr(), list.len(), libc::MADV_DONTNEED, 0)
    };
    if done != bytes as i64 {
        for part in list {
            advise(part.iov_base.expose_provenance(), part.iov_len, libc::MADV_DONTNEED);
        }
    }
}

/// The calling thread's number.
pub fn thread() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Lets another thread run.
pub fn give_way() {
    // SAFETY: no pointers.
    unsafe { libc::sched_yield() };
}
