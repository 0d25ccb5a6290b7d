//! A fork whose child has nothing but what the experiment says: its pages, a stack, and the one page of code that it
//! runs.
//!
//! A process of this program has a heap, libraries, relocated data and buffers mapped, and a fork copies the page
//! tables of all of them. Before an experiment maps its own memory they are kept from its children
//! (`MADV_DONTFORK`): they stay the parent's own and are no part of a fork. What must stay besides is counted, not
//! guessed ([`residual`]): the stack, and the page of the thread's own memory into which the kernel writes in every new
//! thread, where the C library asked for that (rseq(2); a worker that forks asks its own not to: [`SETTING`]).
//!
//! The child therefore may touch nothing of Rust's or of the C library's: it is a few instructions.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::region::{Region, page_size};

/// What the child does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child<'a> {
    /// Where it writes.
    pub(crate) region: &'a Region,
    /// How many pages it writes.
    pub(crate) touch: usize,
    /// What it executes then; else it exits.
    pub(crate) execute: Option<&'a Arguments>,
}

/// A program and its arguments, on the stack of whoever made it.
#[derive(Debug)]
pub(crate) struct Arguments {
    bytes: [u8; 64],
    pointers: [*const u8; 3],
}

impl Arguments {
    /// Empty; [`Arguments::fill`] it where it stays.
    pub(crate) fn new() -> Self {
        Self { bytes: [0; 64], pointers: [std::ptr::null(); 3] }
    }

    /// The program `path` with its name and one argument.
    ///
    /// # Panics
    /// When they have no room.
    pub(crate) fn fill(&mut self, path: &CStr, name: &CStr, argument: &CStr) {
        let mut at = 0;
        let mut starts = [0; 3];
        for (start, text) in starts.iter_mut().zip([path, name, argument]) {
            let text = text.to_bytes_with_nul();
            *start = at;
            self.bytes[at..at + text.len()].copy_from_slice(text);
            at += text.len();
        }
        let base = self.bytes.as_ptr();
        self.pointers = [base.wrapping_add(starts[1]), base.wrapping_add(starts[2]), std::ptr::null()];
    }

    fn path(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

/// Forks a child that does that; its process id. The child ends with 0, or with 1 where it could not execute.
///
/// # Errors
/// When the kernel refuses another process.
pub(crate) fn fork(child: Child<'_>) -> io::Result<libc::pid_t> {
    let (path, arguments) = child.execute.map_or((std::ptr::null(), std::ptr::null()), |arguments| {
        (arguments.path(), arguments.pointers.as_ptr())
    });
    let result: isize;
    // SAFETY: clone(2) without sharing is fork(2). The child writes `touch` pages of the region, which are
    // writable and its own, and makes no other access to memory but that of execve(2), whose strings are
    // alive; it never leaves the block.
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
            in("r13") child.region.base(),
            in("r14") page_size(),
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
            in("x10") child.region.base(),
            in("x11") page_size(),
            in("x12") path,
            in("x13") arguments,
            options(nostack),
        );
    }
    // The kernel's answers below 0 are its error numbers.
    match i32::try_from(result) {
        Ok(child) if child > 0 => Ok(child),
        _ => Err(io::Error::from_raw_os_error(result.wrapping_neg() as i32)),
    }
}

/// What the environment of a process that forks says, so that glibc has the kernel write nothing into the memory of each
/// new thread: the write is a fault in every child, and one more in its parent.
pub(crate) const SETTING: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

/// Keeps everything that this process has mapped by now from the children that [`fork`] makes, but for the stack, the
/// code and, where the kernel writes into it, the thread's own page; gives the addresses of the stack and that page.
///
/// # Errors
/// When the kernel does not show what is mapped.
pub(crate) fn keep_all_from_children() -> io::Result<Vec<Range>> {
    let maps = crate::kernel::text("/proc/self/maps")?;
    let page = page_size();
    let here = 0_u8;
    let (stack, code) = (std::ptr::from_ref(&here) as usize, fork as *const () as usize);
    // The kernel writes into the thread's own memory within some KiB of its pointer.
    let thread = thread_pointer() / page * page;
    let thread = if written_in_children() { thread.saturating_sub(page)..thread + 2 * page } else { 0..0 };
    let mut left = Vec::new();
    for mapped in maps.lines().filter_map(range) {
        if mapped.contains(&code) {
            // No page table of it is copied: the child finds its pages in the page cache.
            continue;
        }
        if mapped.contains(&stack) {
            left.push(mapped);
            continue;
        }
        left.extend(common(&mapped, &thread));
        for part in without(&mapped, &thread) {
            // SAFETY: the advice changes nothing for this process. Refused for what is not memory, which a
            // fork does not copy.
            unsafe {
                let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(part.start);
                libc::madvise(start, part.len(), libc::MADV_DONTFORK);
            }
        }
    }
    Ok(left)
}

/// Whether the kernel writes into the memory of the calling thread's children (rseq(2)): then the thread has an area for
/// it, and another is refused.
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

/// The pages that a fork copies beyond the region's: those present in what could not be kept from the children.
pub(crate) fn residual(left: &[Range]) -> Option<u64> {
    let file = File::open("/proc/self/pagemap").ok()?;
    let mut entry = [0; 8];
    let mut present = 0;
    for page in left.iter().flat_map(|range| range.clone().step_by(page_size())) {
        file.read_exact_at(&mut entry, (page / page_size()) as u64 * 8).ok()?;
        present += u64::from_ne_bytes(entry) >> 63;
    }
    Some(present)
}

/// Where the thread's own memory is.
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register, on x86-64 the first word of the thread's memory, which is its own address.
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

/// `START-END …`, in hexadecimal.
fn range(line: &str) -> Option<Range> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

/// The parts of `whole` outside `hole`.
fn without(whole: &Range, hole: &Range) -> Vec<Range> {
    let parts = [whole.start..whole.end.min(hole.start), whole.start.max(hole.end)..whole.end];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// What two ranges have in common.
fn common(a: &Range, b: &Range) -> Option<Range> {
    let both = a.start.max(b.start)..a.end.min(b.end);
    (!both.is_empty()).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(range("7f00-7f10 rw-p 0 00:00 0 [heap]"), Some(0x7f00..0x7f10));
        assert_eq!(range("no range"), None);
        assert_eq!(without(&(0..10), &(3..5)), [0..3, 5..10]);
        assert!(without(&(0..10), &(0..10)).is_empty());
        assert_eq!(without(&(4..6), &(0..0)).len(), 1);
        assert_eq!((common(&(0..10), &(8..12)), common(&(0..4), &(4..8))), (Some(8..10), None));
    }

    #[test]
    fn arguments_stand_one_after_the_other() {
        let mut arguments = Arguments::new();
        arguments.fill(c"/a", c"b", c"c");
        assert_eq!(&arguments.bytes[..7], b"/a\0b\0c\0");
        assert_eq!(arguments.pointers[1] as usize - arguments.path() as usize, 5);
    }
}
