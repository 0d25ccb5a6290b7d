//! A fork whose child has nothing but what the experiment says: the copy's pages, a stack, and the one page of
//! code that it runs.
//!
//! A process of this program has a heap, libraries, relocated data and buffers mapped, and a fork copies the page
//! tables of all of them. Before a copy storms it keeps them from its children (`MADV_DONTFORK`): they stay the
//! copy's own and are no part of a fork. What must stay besides is counted, not guessed ([`residual`]): the
//! stack, and the page of the thread's own memory that the kernel writes in every new thread (rseq(2)).
//!
//! The child therefore may touch nothing of Rust's or of the C library's: it is a few instructions.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::region::{Region, page_size};

/// What the child does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child<'a> {
    /// Where it writes.
    pub(super) region: &'a Region,
    /// How many pages it writes.
    pub(super) touch: usize,
    /// What it executes then; else it exits.
    pub(super) execute: Option<&'a Arguments>,
}

/// A program and its arguments, on the stack of whoever made it.
#[derive(Debug)]
pub(super) struct Arguments {
    bytes: [u8; 64],
    pointers: [*const u8; 3],
}

impl Arguments {
    /// Empty; [`Arguments::fill`] it where it stays.
    pub(super) fn new() -> Self {
        Self { bytes: [0; 64], pointers: [std::ptr::null(); 3] }
    }

    /// The program `path` with its name and one argument.
    ///
    /// # Panics
    /// When they have no room.
    pub(super) fn fill(&mut self, path: &CStr, name: &CStr, argument: &CStr) {
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
pub(super) fn fork(child: Child<'_>) -> io::Result<libc::pid_t> {
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

/// Keeps everything that this process has mapped from the children that [`fork`] makes, but for `region`, the
/// stack, the code and the thread's own page; gives the addresses of the stack and that page.
///
/// # Errors
/// When the kernel does not show what is mapped.
pub(super) fn keep_the_rest_from_children(region: &Region) -> io::Result<Vec<Range>> {
    let maps = crate::kernel::text("/proc/self/maps")?;
    let page = page_size();
    let here = 0_u8;
    let (stack, code) = (std::ptr::from_ref(&here) as usize, fork as *const () as usize);
    let own = region.base() as usize..region.base() as usize + region.bytes();
    // The kernel writes into the thread's own memory within some KiB of its pointer: rseq(2).
    let thread = thread_pointer() / page * page;
    let thread = thread.saturating_sub(page)..thread + 2 * page;
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
        for part in without(&without_one(&mapped, &own), &thread) {
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

/// The pages that a fork copies beyond the region's: those present in what could not be kept from the children.
pub(super) fn residual(left: &[Range]) -> Option<u64> {
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
pub(super) type Range = std::ops::Range<usize>;

/// `START-END …`, in hexadecimal.
fn range(line: &str) -> Option<Range> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

fn without_one(whole: &Range, hole: &Range) -> Vec<Range> {
    without(std::slice::from_ref(whole), hole)
}

/// The parts of `ranges` outside `hole`.
fn without(ranges: &[Range], hole: &Range) -> Vec<Range> {
    let parts = ranges
        .iter()
        .flat_map(|whole| [whole.start..whole.end.min(hole.start), whole.start.max(hole.end)..whole.end]);
    parts.filter(|part| !part.is_empty()).collect()
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
        assert_eq!(without_one(&(0..10), &(3..5)), [0..3, 5..10]);
        assert!(without_one(&(0..10), &(0..10)).is_empty());
        assert_eq!(without(&[4..6, 9..10], &(8..9)), [4..6, 9..10]);
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
