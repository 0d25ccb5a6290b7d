//! The library that the dynamic loader loads (`LD_PRELOAD`) into a program that the pager pages, or
//! that pagelab records through a window.
//!
//! The module `window` records. For the pager, the library hands a userfaultfd over to pagelab and
//! reports each range of anonymous memory that the program gets. One thread removes pages when
//! pagelab requests it, because no other process can. The library itself decides nothing.
//!
//! glibc's malloc stays what it is: it asks the kernel for memory by itself, so that its functions are wrapped, and
//! each block that they return is asked where it comes from: the heap of brk(2), a mapping of its own, or a thread's arena.
//! `mmap` is wrapped for who calls it. Stacks, data of programs and libraries, and shared memory are not paged.
//!
//! In a forked child nothing is paged: before fork pagelab puts every page back, after it takes them out again. A program
//! that is executed gets memory of its own; it and what it executes no longer load this.

mod window;

use std::ffi::{c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize};

/// Where pagelab listens: a name of an abstract Unix socket.
const VARIABLE: &[u8] = b"PAGELAB_PAGER\0";
/// `_IO(0xAA, 0)` of /dev/userfaultfd.
const NEW: libc::c_ulong = 0xaa00;
/// Bytes of a page: others are not known to pagelab's pager.
const PAGE: usize = 4096;
/// Bytes of a thread's arena, aligned to as much, in glibc on 64 bits.
const ARENA: usize = 64 << 20;
/// Arenas that are known; memory of more is not paged.
const ARENAS: usize = 128;

/// What is told, as the first of three words.
const RANGE: usize = 1;
const FORK: usize = 2;
const FORKED: usize = 3;

/// Flags in the size of a block of glibc's malloc.
const MAPPED: usize = 2;
const OF_ARENA: usize = 4;

static ACTIVE: AtomicBool = AtomicBool::new(false);
static BUSY: AtomicBool = AtomicBool::new(false);
static TELLS: AtomicI32 = AtomicI32::new(-1);
static HELPS: AtomicI32 = AtomicI32::new(-1);
/// How far the heap of brk(2) was told.
static HEAP: AtomicUsize = AtomicUsize::new(0);
static KNOWN: [AtomicUsize; ARENAS] = [const { AtomicUsize::new(0) }; ARENAS];

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    static __curbrk: *mut c_void;
}

/// Called by the loader before the program's own code.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    // SAFETY: before the program's threads. The environment is the loader's; strings end with a zero; the thread's
    // function is `help`, which uses what is static alone.
    unsafe {
        let path = libc::getenv(window::VARIABLE.as_ptr().cast());
        if !path.is_null() {
            return window::begin(path);
        }
        let name = libc::getenv(VARIABLE.as_ptr().cast());
        if name.is_null() {
            return;
        }
        let (tells, helps) = (connected(name), connected(name));
        libc::unsetenv(VARIABLE.as_ptr().cast());
        libc::unsetenv(c"LD_PRELOAD".as_ptr());
        let faults = userfault();
        if tells < 0 || helps < 0 || faults < 0 || !hand_over(tells, faults) {
            // What pagelab hears then says enough.
            for open in [tells, helps, faults] {
                if open >= 0 {
                    libc::close(open);
                }
            }
            return;
        }
        libc::close(faults);
        TELLS.store(tells, Relaxed);
        HELPS.store(helps, Relaxed);
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let mut thread = std::mem::zeroed();
        let started = libc::pthread_create(&mut thread, ptr::null(), help, ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        if started != 0 || libc::pthread_atfork(Some(fork), Some(forked), Some(child)) != 0 {
            return;
        }
        let block = __libc_malloc(1);
        HEAP.store(block.expose_provenance() & !(PAGE - 1), Relaxed);
        ACTIVE.store(true, Release);
        seen(block);
        libc::free(block);
    }
}

/// A userfaultfd that serves system calls too.
unsafe fn userfault() -> c_int {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: no pointers but to a string that ends with a zero.
    unsafe {
        let new = libc::syscall(libc::SYS_userfaultfd, flags) as c_int;
        if new >= 0 {
            return new;
        }
        let device = libc::open(c"/dev/userfaultfd".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if device < 0 {
            return -1;
        }
        let new = libc::ioctl(device, NEW, flags);
        libc::close(device);
        new
    }
}

/// A connection to the abstract socket of this name.
unsafe fn connected(name: *const c_char) -> c_int {
    // SAFETY: `name` ends with a zero; the address is as long as is said.
    unsafe {
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let length = libc::strlen(name).min(address.sun_path.len() - 1);
        ptr::copy_nonoverlapping(name, address.sun_path.as_mut_ptr().add(1), length);
        let bytes = size_of::<libc::sa_family_t>() + 1 + length;
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        // Out of the way of programs that count on low numbers.
        let high = libc::fcntl(socket, libc::F_DUPFD_CLOEXEC, 200);
        libc::close(socket);
        match libc::connect(high, (&raw const address).cast(), bytes as libc::socklen_t) {
            0 => high,
            _ => -1,
        }
    }
}

/// Sends the descriptor, with this process's number.
unsafe fn hand_over(socket: c_int, descriptor: c_int) -> bool {
    #[repr(C, align(8))]
    struct Control([u8; 32]);
    // SAFETY: all that the message points to lives until it is sent; the control message is as long as is said.
    unsafe {
        let mut process = [libc::getpid() as usize];
        let mut part = libc::iovec { iov_base: process.as_mut_ptr().cast(), iov_len: size_of::<usize>() };
        let mut control = Control([0; 32]);
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(descriptor);
        libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL) == size_of::<usize>() as isize
    }
}

/// Writes all of it, reads as much as is wanted; whether both were done.
unsafe fn exchange(socket: c_int, said: &[u8], mut heard: &mut [u8]) -> bool {
    let mut said = said;
    while !said.is_empty() {
        // SAFETY: so many bytes are readable.
        match unsafe { libc::send(socket, said.as_ptr().cast(), said.len(), libc::MSG_NOSIGNAL) } {
            sent @ 1.. => said = said.get(sent.unsigned_abs()..).unwrap_or_default(),
            _ if interrupted() => {}
            _ => return false,
        }
    }
    while !heard.is_empty() {
        // SAFETY: so many bytes are writable.
        match unsafe { libc::recv(socket, heard.as_mut_ptr().cast(), heard.len(), 0) } {
            read @ 1.. => heard = heard.get_mut(read.unsigned_abs()..).unwrap_or_default(),
            read if read < 0 && interrupted() => {}
            _ => return false,
        }
    }
    true
}

fn interrupted() -> bool {
    // SAFETY: the calling thread's own number.
    unsafe { *libc::__errno_location() == libc::EINTR }
}

/// Reports to pagelab or to the window, and waits until either has acted on the report.
fn tell(what: usize, start: usize, length: usize) {
    if window::state::is_locking() {
        if what == RANGE {
            window::state::take_new(start, length);
        }
        return;
    }
    // SAFETY: the thread's own error number, which a program may look at after what it called; the advice changes
    // nothing that a program sees.
    let error = unsafe {
        let error = *libc::__errno_location();
        if what == RANGE {
            libc::madvise(ptr::with_exposed_provenance_mut(start), length, libc::MADV_NOHUGEPAGE);
        }
        error
    };
    while BUSY.swap(true, AcqRel) {
        // SAFETY: no pointers.
        unsafe { libc::sched_yield() };
    }
    let mut words = [0; 3 * size_of::<usize>()];
    for (to, word) in words.chunks_exact_mut(size_of::<usize>()).zip([what, start, length]) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    // SAFETY: the socket is this library's.
    if !unsafe { exchange(TELLS.load(Relaxed), &words, &mut [0]) } {
        ACTIVE.store(false, Release);
    }
    BUSY.store(false, Release);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
}

/// Whether to report memory: to pagelab, or to the window of a process with several threads.
fn is_told() -> bool {
    ACTIVE.load(Acquire) || window::state::is_locking()
}

/// Looks where a block comes from, and tells what is not known yet.
fn seen(block: *mut c_void) {
    let address = block.expose_provenance();
    if address == 0 || !is_told() {
        return;
    }
    // SAFETY: before each block of glibc's malloc stand its size with three flags and, before that, of a block with a
    // mapping of its own, what alignment has left before it.
    let (before, size) = unsafe {
        let words = block.cast::<usize>();
        (words.sub(2).read(), words.sub(1).read())
    };
    if size & MAPPED != 0 {
        let start = address.wrapping_sub(2 * size_of::<usize>()).wrapping_sub(before);
        tell(RANGE, start, (size & !7).wrapping_add(before));
    } else if size & OF_ARENA != 0 {
        let arena = address & !(ARENA - 1);
        for known in &KNOWN {
            match known.compare_exchange(0, arena, AcqRel, Acquire) {
                Ok(_) => return tell(RANGE, arena, ARENA),
                Err(other) if other == arena => return,
                Err(_) => {}
            }
        }
    } else {
        // SAFETY: a word of the C library's, written by brk(2)'s callers alone.
        let end = unsafe { (&raw const __curbrk).read_volatile() }.expose_provenance();
        let told = match HEAP.swap(end, AcqRel) {
            0 => window::state::heap(),
            told => told,
        };
        if end > told {
            tell(RANGE, told, end - told);
        }
    }
}

/// Takes pages out: reads an address, answers with the page.
extern "C" fn help(_: *mut c_void) -> *mut c_void {
    let socket = HELPS.load(Relaxed);
    // SAFETY: the sockets are this library's. Addresses are of pages that pagelab has found in the page table,
    // protected against writing, and whose loss it repairs.
    unsafe {
        let mut word = [0; size_of::<usize>()];
        let mut content = [0u8; PAGE];
        let thread = (libc::syscall(libc::SYS_gettid) as usize).to_ne_bytes();
        let mut go_on = exchange(socket, &thread, &mut word);
        while go_on {
            let page: *mut u8 = ptr::with_exposed_provenance_mut(usize::from_ne_bytes(word));
            for (at, byte) in content.chunks_exact_mut(size_of::<u64>()).enumerate() {
                byte.copy_from_slice(&page.cast::<u64>().add(at).read_volatile().to_ne_bytes());
            }
            libc::madvise(page.cast(), PAGE, libc::MADV_DONTNEED);
            go_on = exchange(socket, &content, &mut word);
        }
    }
    ptr::null_mut()
}

extern "C" fn fork() {
    if ACTIVE.load(Acquire) {
        tell(FORK, 0, 0);
    }
}

extern "C" fn forked() {
    if ACTIVE.load(Acquire) {
        tell(FORKED, 0, 0);
    }
}

extern "C" fn child() {
    if ACTIVE.swap(false, AcqRel) {
        // SAFETY: the child's copies of this library's sockets.
        unsafe {
            libc::close(TELLS.load(Relaxed));
            libc::close(HELPS.load(Relaxed));
        }
    }
}

macro_rules! wrapped {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $call:expr;)*) => {
        $($(#[$doc])*
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> *mut c_void {
            let _guard = window::state::entered();
            // SAFETY: the caller's promise.
            let block = unsafe { $call };
            seen(block);
            block
        })*
    };
}

wrapped! {
    /// malloc(3).
    malloc(size: usize) = __libc_malloc(size);
    /// calloc(3).
    calloc(count: usize, size: usize) = __libc_calloc(count, size);
    /// realloc(3).
    realloc(block: *mut c_void, size: usize) = __libc_realloc(block, size);
    /// memalign(3).
    memalign(alignment: usize, size: usize) = __libc_memalign(alignment, size);
    /// aligned_alloc(3).
    aligned_alloc(alignment: usize, size: usize) = __libc_memalign(alignment, size);
}

/// reallocarray(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => {
            // SAFETY: the thread's own error number.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            ptr::null_mut()
        }
    }
}

/// posix_memalign(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let block = memalign(alignment, size);
        if block.is_null() {
            return libc::ENOMEM;
        }
        to.write(block);
    }
    0
}

/// mmap(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let _guard = window::state::entered();
    // SAFETY: the caller's promise.
    let made = unsafe { libc::syscall(libc::SYS_mmap, address, length, protection, flags, file, offset) };
    let wanted = libc::MAP_ANONYMOUS | libc::MAP_PRIVATE;
    let other = libc::MAP_STACK | libc::MAP_GROWSDOWN | libc::MAP_HUGETLB;
    if made != -1 && flags & (wanted | other) == wanted && is_told() {
        tell(RANGE, made as usize, length);
    }
    ptr::with_exposed_provenance_mut(made as usize)
}

/// mmap64(3), the same on 64 bits.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { mmap(address, length, protection, flags, file, offset) }
}
