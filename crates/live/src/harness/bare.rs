//! A fork whose child has nothing but what the experiment says: its pages, a stack, and the one
//! page of code that it runs.
//!
//! A process of this program has a heap, libraries, relocated data and buffers mapped, and a fork
//! copies the page tables of all of them. A process with threads keeps them from its children
//! before an experiment maps its own memory (`MADV_DONTFORK`): they stay the parent's own. One
//! without leaves them behind altogether (module `alone`). What must stay besides are the stack,
//! and the page of the thread's own memory into which the kernel writes in every new thread, where
//! the C library asked for that (rseq(2); a worker that forks asks its own not to: [`SETTING`]).
//!
//! The child therefore may touch nothing of Rust's or of the C library's: it is a few instructions.

use std::ffi::CStr;
use std::io;

use pagelab_kernel::region::{Region, page_size};
use pagelab_procfs::addresses;

/// What the child does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    /// Where it writes.
    base: *mut u8,
    /// How many pages it writes, and their size in bytes.
    touch: usize,
    page: usize,
    /// What it executes then: path and arguments; null: it exits.
    execute: (*const u8, *const *const u8),
}

impl Child {
    /// Writes the first `touch` pages of the region, then exits.
    ///
    /// # Panics
    /// When the region has not as many.
    pub(crate) fn new(region: &Region, touch: usize) -> Self {
        assert!(touch <= region.pages(), "{touch} pages of {}", region.pages());
        Self {
            base: region.base(),
            touch,
            page: region.page_size(),
            execute: (std::ptr::null(), std::ptr::null()),
        }
    }

    /// Executes the program of these arguments, which stay where they are, instead of exiting.
    pub(crate) fn executing(self, arguments: &Arguments) -> Self {
        Self { execute: (arguments.bytes.as_ptr(), arguments.pointers.as_ptr()), ..self }
    }
}

/// A program and its arguments, without memory elsewhere.
#[derive(Debug)]
pub(crate) struct Arguments {
    bytes: [u8; 64],
    /// Where the name and the argument begin.
    starts: [usize; 2],
    pointers: [*const u8; 3],
}

impl Arguments {
    /// The program `path` with its name and one argument; to be settled where it stays.
    ///
    /// # Panics
    /// When they have no room.
    pub(crate) fn new(path: &CStr, name: &CStr, argument: &CStr) -> Self {
        let mut bytes = [0; 64];
        let mut starts = [0; 3];
        let mut at = 0;
        for (start, text) in starts.iter_mut().zip([path, name, argument]) {
            let text = text.to_bytes_with_nul();
            *start = at;
            bytes[at..at + text.len()].copy_from_slice(text);
            at += text.len();
        }
        Self { bytes, starts: [starts[1], starts[2]], pointers: [std::ptr::null(); 3] }
    }

    /// Points at what it has; it must not move any more.
    pub(crate) fn settle(&mut self) {
        let base = self.bytes.as_ptr();
        self.pointers[0] = base.wrapping_add(self.starts[0]);
        self.pointers[1] = base.wrapping_add(self.starts[1]);
    }
}

/// A system call without the C library, which may not be there any more; what the kernel answers.
///
/// # Safety
/// As the system call's.
#[inline(always)]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let [a, b, c, d] = arguments;
    let result: isize;
    // SAFETY: the caller's; the registers are the kernel's convention.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            options(nostack),
        );
    }
    result
}

/// Forks a child that does that; its process id. The child ends with 0, or with 1 where it could
/// not execute.
///
/// # Errors
/// When the kernel refuses another process.
pub(crate) fn fork(child: Child) -> io::Result<libc::pid_t> {
    // The kernel's answers below 0 are its error numbers.
    match fork_bare(&child) {
        pid @ 1.. => Ok(pid as libc::pid_t),
        error => Err(io::Error::from_raw_os_error(error.wrapping_neg() as i32)),
    }
}

/// The same for a process that may touch as little as its child: what the kernel answers.
#[inline(never)]
pub(crate) fn fork_bare(child: &Child) -> isize {
    let (path, arguments) = child.execute;
    let result: isize;
    // SAFETY: clone(2) without sharing is fork(2). The child writes `touch` pages of the region,
    // which are writable and its own, and makes no other access to memory but that of execve(2),
    // whose strings are alive; it never leaves the block.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 9f",
            "2:",
            "test r12, r12",
            "jz 3f",
            "mov byte ptr [r13], 1",
            "add r13, r14",
            "dec r12",
            "jmp 2b",
            "3:",
            "xor edi, edi",
            "test r15, r15",
            "jz 4f",
            "mov rdi, r15",
            "mov rsi, r9",
            "xor edx, edx",
            "mov eax, 59", // execve
            "syscall",
            "mov edi, 1",
            "4:",
            "mov eax, 231", // exit_group
            "syscall",
            "ud2",
            "9:",
            inlateout("rax") libc::SYS_clone => result,
            in("rdi") libc::SIGCHLD as usize,
            in("rsi") 0,
            in("rdx") 0,
            in("r10") 0,
            in("r8") 0,
            in("r9") arguments,
            in("r12") child.touch,
            in("r13") child.base,
            in("r14") child.page,
            in("r15") path,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 9f",
            "mov w8, #1",
            "2:",
            "cbz x9, 3f",
            "strb w8, [x10]",
            "add x10, x10, x11",
            "sub x9, x9, #1",
            "b 2b",
            "3:",
            "cbz x12, 4f",
            "mov x0, x12",
            "mov x1, x13",
            "mov x2, #0",
            "mov x8, #221", // execve
            "svc #0",
            "mov x0, #1",
            "4:",
            "mov x8, #94", // exit_group
            "svc #0",
            "brk #0",
            "9:",
            inlateout("x0") libc::SIGCHLD as isize => result,
            in("x1") 0,
            in("x2") 0,
            in("x3") 0,
            in("x4") 0,
            in("x8") libc::SYS_clone,
            in("x9") child.touch,
            in("x10") child.base,
            in("x11") child.page,
            in("x12") path,
            in("x13") arguments,
            options(nostack),
        );
    }
    result
}

/// What the environment of a process that forks says, so that glibc has the kernel write nothing
/// into the memory of each new thread: the write is a fault in every child, and one more in its
/// parent.
pub(crate) const SETTING: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

/// Keeps everything that this process has mapped by now from the children that [`fork`] makes, but
/// for the stack, the code and, where the kernel writes into it, the thread's own page.
///
/// # Errors
/// When the kernel does not show what is mapped.
pub(crate) fn keep_all_from_children() -> io::Result<()> {
    let maps = pagelab_kernel::files::text("/proc/self/maps")?;
    let here = 0_u8;
    let (stack, code) = (std::ptr::from_ref(&here) as usize, fork as *const () as usize);
    let thread = written_pages();
    for mapped in maps.lines().filter_map(range) {
        // No page table of code is copied: the child finds its pages in the page cache.
        if mapped.contains(&code) || mapped.contains(&stack) {
            continue;
        }
        for part in without(&mapped, &thread) {
            // SAFETY: the advice changes nothing for this process. Refused for what is not memory, which a
            // fork does not copy.
            unsafe {
                let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(part.start);
                libc::madvise(start, part.len(), libc::MADV_DONTFORK);
            }
        }
    }
    Ok(())
}

/// The pages of the thread's own memory into which the kernel writes in children of the calling
/// thread too, where it does.
pub(crate) fn written_pages() -> Range {
    if !written_in_children() {
        return 0..0;
    }
    // It is within some KiB of the thread's pointer.
    let page = page_size();
    let thread = thread_pointer() / page * page;
    thread.saturating_sub(page)..thread + 2 * page
}

/// Whether the kernel writes into the memory of the calling thread's children (rseq(2)): then the
/// thread has an area for it, and another is refused.
fn written_in_children() -> bool {
    /// As the kernel wants it: 32 bytes, aligned to as many.
    #[repr(C, align(32))]
    struct Area([u8; 32]);
    /// To undo it.
    const UNREGISTER: libc::c_int = 1;
    const SIGNATURE: u32 = 0x5305_3053;
    let mut area = Area([0; 32]);
    let mut register = |flags: libc::c_int| {
        let at = area.0.as_mut_ptr();
        // SAFETY: the area is writable and aligned, and no longer the thread's when this function returns.
        unsafe { libc::syscall(libc::SYS_rseq, at, size_of::<Area>(), flags, SIGNATURE) }
    };
    if register(0) == 0 {
        register(UNREGISTER);
        return false;
    }
    io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS)
}

/// Where the thread's own memory is.
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register, on x86-64 the first word of the thread's memory, which is its own
    // address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags));
    }
    pointer
}

/// Addresses.
pub(crate) type Range = std::ops::Range<usize>;

/// Of a mapping's line.
pub(crate) fn range(line: &str) -> Option<Range> {
    addresses(line).map(|range| range.start as usize..range.end as usize)
}

/// The parts of `whole` outside `hole`.
fn without(whole: &Range, hole: &Range) -> Vec<Range> {
    let parts = [whole.start..whole.end.min(hole.start), whole.start.max(hole.end)..whole.end];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(without(&(0..10), &(3..5)), [0..3, 5..10]);
        assert!(without(&(0..10), &(0..10)).is_empty());
        assert_eq!(without(&(4..6), &(0..0)).len(), 1);
    }

    #[test]
    fn arguments_stand_one_after_the_other() {
        let mut arguments = Arguments::new(c"/a", c"b", c"c");
        arguments.settle();
        assert_eq!(&arguments.bytes[..7], b"/a\0b\0c\0");
        assert_eq!(arguments.pointers[1] as usize - arguments.bytes.as_ptr() as usize, 5);
    }
}
