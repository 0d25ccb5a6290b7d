//! Wrappers of C library functions that start threads, release memory, set signal handlers, or
//! exit.
//!
//! In a process with one thread, free, munmap and mremap only pass calls on. With several, memory
//! is allocated and released under the window's lock. So the content of a page cannot change
//! between the handler's decision to hide the page and its removal from the page table.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use super::memory;
use super::state::{self, Guard, are_several, entered};

/// The key whose value is the index of a thread's events plus 1.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static CREATE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static SIGNAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

type Begin = extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Begin, *mut c_void) -> c_int;
type Signal = unsafe extern "C" fn(c_int, usize) -> usize;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __sigaction(signal: c_int, action: *const libc::sigaction, before: *mut libc::sigaction) -> c_int;
}

/// The C library's own function of this name.
fn real(kept: &AtomicPtr<c_void>, name: *const c_char) -> *mut c_void {
    let mut found = kept.load(Acquire);
    if found.is_null() {
        // SAFETY: the name ends with a zero.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
        kept.store(found, Release);
    }
    found
}

/// The program's start routine of a new thread, and its argument.
struct Work {
    begin: Begin,
    argument: *mut c_void,
}

/// pthread_create(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    begin: Begin,
    argument: *mut c_void,
) -> c_int {
    let create = real(&CREATE, c"pthread_create".as_ptr());
    if create.is_null() {
        return libc::ENOSYS;
    }
    // SAFETY: the C library's function is of this type; the work is the new thread's until it has
    // read it.
    unsafe {
        let create: Create = std::mem::transmute(create);
        if !state::is_active() {
            return create(thread, attributes, begin, argument);
        }
        several();
        let _guard = Guard::take();
        let work = __libc_malloc(size_of::<Work>()).cast::<Work>();
        if work.is_null() {
            return libc::EAGAIN;
        }
        work.write(Work { begin, argument });
        let result = create(thread, attributes, begun, work.cast());
        if result != 0 {
            __libc_free(work.cast());
        }
        result
    }
}

/// Prepares for a second thread.
fn several() {
    if are_several() {
        return;
    }
    let mut key = 0;
    // SAFETY: the key is writable; `ended` takes what is stored under it.
    if unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0 {
        KEY.store(key, Relaxed);
    }
    state::become_several();
}

/// Start routine of every new thread: begins its recording, then calls the program's start routine.
extern "C" fn begun(work: *mut c_void) -> *mut c_void {
    // SAFETY: the creator's work, which is this thread's.
    let Work { begin, argument } = unsafe { work.cast::<Work>().read() };
    {
        let _guard = entered();
        // SAFETY: as above, and no other thread uses it.
        unsafe { __libc_free(work) };
    }
    if let Some(number) = state::begin_thread() {
        // SAFETY: the value is a number.
        unsafe {
            libc::pthread_setspecific(KEY.load(Relaxed), ptr::without_provenance(number + 1));
        }
    }
    begin(argument)
}

extern "C" fn ended(number: *mut c_void) {
    if state::is_active()
        && let Some(number) = number.addr().checked_sub(1)
    {
        state::end_thread(number);
    }
}

/// free(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    let _guard = entered();
    // SAFETY: the caller's promise.
    unsafe { __libc_free(block) };
}

/// munmap(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    let _guard = entered();
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int }
}

/// mremap(2). The kernel uses the last argument only with `MREMAP_FIXED`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    length: usize,
    new_length: usize,
    flags: c_int,
    new_address: *mut c_void,
) -> *mut c_void {
    let _guard = entered();
    // SAFETY: the caller's promise.
    let made = unsafe { libc::syscall(libc::SYS_mremap, address, length, new_length, flags, new_address) };
    ptr::with_exposed_provenance_mut(made as usize)
}

/// madvise(2). Memory that the program gives up reads as zeros, also if it was moved to a memfd.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int {
    let _guard = entered();
    let gives_up = matches!(advice, libc::MADV_DONTNEED | libc::MADV_FREE);
    if gives_up
        && state::is_active()
        && let Some(result) = memory::given_up(address.addr(), length)
    {
        return result;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_madvise, address, length, advice) as c_int }
}

/// sigaction(2), except that the window keeps SIGTRAP.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    action: *const libc::sigaction,
    before: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        if signal != libc::SIGTRAP || !state::is_active() {
            return __sigaction(signal, action, before);
        }
        let wanted = action.as_ref().map(|action| (action.sa_sigaction, action.sa_flags));
        let (handler, flags) = state::wish(wanted);
        if !before.is_null() {
            before.write(std::mem::zeroed());
            (*before).sa_sigaction = handler;
            (*before).sa_flags = flags;
        }
    }
    0
}

/// signal(2), except that the window keeps SIGTRAP.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(number: c_int, handler: usize) -> usize {
    if number == libc::SIGTRAP && state::is_active() {
        return state::wish(Some((handler, 0))).0;
    }
    let own = real(&SIGNAL, c"signal".as_ptr());
    if own.is_null() {
        return libc::SIG_ERR;
    }
    // SAFETY: the C library's function is of this type; the caller's promise.
    unsafe {
        let own: Signal = std::mem::transmute(own);
        own(number, handler)
    }
}

/// _exit(2).
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    state::end();
    loop {
        // SAFETY: no pointers.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// _Exit(3).
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the C library's name")]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

/// The loader calls this after the program's own code.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = finish;

extern "C" fn finish() {
    state::end();
}
