//! System calls of the window, and queries for the mappings and the page table of this process.
//!
//! These functions run in signal handlers, so they neither allocate nor lock.

use std::ffi::{CStr, c_int, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

/// Page size in bytes; the window supports no other.
pub const PAGE: usize = 4096;
/// The window's descriptors begin here, out of the way of programs that rely on low numbers.
const HIGH: c_int = 200;

/// Flags of a mapping, as in `PROCMAP_QUERY`.
pub const READABLE: u64 = 1;
/// See above.
pub const WRITABLE: u64 = 2;
/// See above.
pub const EXECUTABLE: u64 = 4;
/// See above.
pub const SHARED: u64 = 8;

/// `PROCMAP_QUERY`, of Linux 6.11 and later.
const QUERY: libc::c_ulong = 0xc068_6611;
/// `PROCMAP_QUERY_COVERING_OR_NEXT_VMA`: the next mapping if none covers the address.
const OR_NEXT: u64 = 16;

/// Bit of a pagemap entry: the page is present.
pub const PRESENT: u64 = 1 << 63;
/// The page is in a swap area.
pub const SWAPPED: u64 = 1 << 62;
/// The page belongs to a file or to shared memory.
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
    /// One past the last address.
    pub end: usize,
    /// [`READABLE`] and the like.
    pub flags: u64,
    /// Whether it maps a file.
    pub file: bool,
}

/// Opens /proc/self/maps and /proc/self/pagemap. Returns whether the kernel answers queries for
/// mappings and page table entries.
pub fn open() -> bool {
    for (to, name) in [(&MAPS, c"/proc/self/maps"), (&PAGEMAP, c"/proc/self/pagemap")] {
        // SAFETY: the name ends with a zero.
        let file = unsafe { libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        to.store(high(file), Relaxed);
    }
    area(open as *const () as usize, false, &mut []).is_some() && entries(0, &mut [0])
}

/// Closes both files.
pub fn close_files() {
    for file in [&MAPS, &PAGEMAP] {
        close(file.swap(-1, Relaxed));
    }
}

/// Moves a descriptor to a high number.
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

/// Closes a descriptor unless it is negative.
pub fn close(file: c_int) {
    if file >= 0 {
        // SAFETY: a descriptor of this library's.
        unsafe { libc::close(file) };
    }
}

/// The mapping at `address` or, with `or_next`, the first one after it. Stores the bytes of its
/// name in `name`.
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
    // SAFETY: the kernel writes to the query, and to as many bytes of the name as the query states.
    let done = unsafe { libc::ioctl(MAPS.load(Relaxed), QUERY, &raw mut query) };
    let (start, end) = (query.start as usize, query.end as usize);
    (done == 0).then_some(Area { start, end, flags: query.rights, file: query.inode != 0 })
}

/// Reads pagemap entries from the page of `address` on. Returns whether all could be read.
pub fn entries(address: usize, list: &mut [u64]) -> bool {
    let (bytes, at) = (size_of_val(list), address / PAGE * size_of::<u64>());
    // SAFETY: `bytes` is the size of the list, and every word is an entry.
    let read =
        unsafe { libc::pread(PAGEMAP.load(Relaxed), list.as_mut_ptr().cast(), bytes, at as libc::off_t) };
    read == bytes as isize
}

/// CPU time of all threads of this process, in nanoseconds.
pub fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Makes a mapping of `length` bytes. Returns its address, or 0 on failure.
pub fn map(length: usize, flags: c_int, file: c_int, offset: usize) -> usize {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: at an address of the kernel's choice.
    let made = unsafe {
        libc::syscall(libc::SYS_mmap, ptr::null_mut::<c_void>(), length, rights, flags, file, offset)
    };
    if made < 0 { 0 } else { made as usize }
}

/// Removes a mapping that this library made.
pub fn unmap(start: usize, length: usize) {
    // SAFETY: nothing refers to it.
    unsafe { libc::syscall(libc::SYS_munmap, start, length) };
}

/// Sets the protection of pages, [`READABLE`] and the like. Returns whether this succeeded.
pub fn protect(start: usize, length: usize, flags: u64) -> bool {
    // SAFETY: callers pass pages that they mapped, or add rights that they take away again.
    unsafe {
        libc::syscall(libc::SYS_mprotect, start, length, flags & (READABLE | WRITABLE | EXECUTABLE)) == 0
    }
}

/// Moves a mapping over the one at `to`, in one step. Returns whether this succeeded.
pub fn move_over(from: usize, length: usize, to: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the mapping has a copy of the content that it replaces.
    unsafe { libc::syscall(libc::SYS_mremap, from, length, length, flags, to) == to as i64 }
}

/// The system call madvise(2), not this library's wrapper. Returns 0 or -1.
pub fn advise(start: usize, length: usize, advice: c_int) -> c_int {
    // SAFETY: the advice keeps the content of the range, or the program itself gave it.
    unsafe { libc::syscall(libc::SYS_madvise, start, length, advice) as c_int }
}

/// Creates a memfd that is as long as any mapping grows.
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

/// Removes the pages of these ranges from the page table; their files keep them.
pub fn hide(list: &[libc::iovec]) {
    /// `PIDFD_SELF_THREAD_GROUP`, of Linux 6.14 and later.
    const SELF: c_int = -10001;
    let bytes: usize = list.iter().map(|part| part.iov_len).sum();
    if bytes == 0 {
        return;
    }
    // SAFETY: the list is readable. It names only shared memory and unchanged pages of files, which
    // keep their content.
    let done = unsafe {
        libc::syscall(libc::SYS_process_madvise, SELF, list.as_ptr(), list.len(), libc::MADV_DONTNEED, 0)
    };
    if done != bytes as i64 {
        for part in list {
            advise(part.iov_base.expose_provenance(), part.iov_len, libc::MADV_DONTNEED);
        }
    }
}

/// The ID of the calling thread.
pub fn thread() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Yields the CPU to another thread.
pub fn give_way() {
    // SAFETY: no pointers.
    unsafe { libc::sched_yield() };
}
