//! Decides which memory is in the window, and moves private memory so that its pages can be hidden.
//!
//! Shared mappings, and file mappings without private pages that may not be written to, enter the
//! window as they are: pages removed from the page table stay in the page cache. Other private
//! memory is copied to a memfd, which is mapped in its place.
//!
//! The library registers a userfaultfd that protects nothing for all memory in the window. The
//! kernel then maps no neighbours of a missing page (`uffd_disable_fault_around`), and no larger
//! folios at once.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicUsize};

use pagelab_ring::words;

use super::record;
use super::system::{
    self, Area, EXECUTABLE, OF_FILE, PAGE, PRESENT, READABLE, SHARED, SWAPPED, WRITABLE, area, entries,
};

/// Maximum number of known ranges. If there are more, all are forgotten and found again.
const RANGES: usize = 1 << 14;
/// Bytes read of a mapping's name.
const NAME: usize = 1024;
/// Page table entries read at a time.
const ENTRIES: usize = 512;
/// Prefix of the memfds' names.
const OURS: &[u8] = b"/memfd:pagelab ";
const SHARED_WITH_PAGELAB: &[u8] = b"/memfd:pagelab's ";
/// Bytes around the thread pointer that are not moved: the kernel writes there at any time (rseq),
/// and threads wait there.
const BEFORE_THREAD: usize = 128 << 10;
const BEHIND_THREAD: usize = 8 << 10;

const USERFAULT_NEW: libc::c_ulong = 0xaa00;
const USERFAULT_API: libc::c_ulong = 0xc018_aa3f;
const USERFAULT_REGISTER: libc::c_ulong = 0xc020_aa00;
/// `UFFD_FEATURE_WP_ASYNC`, of Linux 6.7 and later: any memory may be registered.
const ANY_MEMORY: u64 = 1 << 15;
const PROTECTION: u64 = 2;
const USER_MODE_ONLY: c_int = 1;

static USERFAULT: AtomicI32 = AtomicI32::new(-1);
/// The address range of this library.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// How the window treats a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// In the window.
    Data,
    /// In the window: instructions.
    Code,
    /// Not in it.
    Stack,
    /// Not in it: private memory that could not be moved, devices.
    Other,
    /// Not requested, or pagelab's own.
    Ignored,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    start: usize,
    end: usize,
    /// How the window treats it.
    pub class: Class,
}

impl Range {
    /// The kind of its references; `None` outside the window.
    pub fn kind(&self) -> Option<u64> {
        match self.class {
            Class::Data => Some(words::LOAD),
            Class::Code => Some(words::FETCH),
            _ => None,
        }
    }
}

/// Counts a page that is not in the window.
pub fn count(class: Class) {
    let window = &record::header().window;
    match class {
        Class::Stack => window.stack_pages.fetch_add(1, Relaxed),
        Class::Other => window.other_pages.fetch_add(1, Relaxed),
        _ => 0,
    };
}

/// Opens the userfaultfd. Returns whether the kernel has one that accepts any memory.
pub fn open() -> bool {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
    // SAFETY: a string that ends with a zero, and three words that are writable.
    unsafe {
        let mut file = libc::syscall(libc::SYS_userfaultfd, flags) as c_int;
        if file < 0 {
            let device = libc::open(c"/dev/userfaultfd".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            file = libc::ioctl(device, USERFAULT_NEW, flags);
            system::close(device);
        }
        let mut api = [0xaau64, ANY_MEMORY, 0];
        if file < 0 || libc::ioctl(file, USERFAULT_API, api.as_mut_ptr()) != 0 {
            system::close(file);
            return false;
        }
        USERFAULT.store(system::high(file), Relaxed);
    }
    true
}

/// Closes the userfaultfd.
pub fn close() {
    system::close(USERFAULT.swap(-1, Relaxed));
}

fn register(start: usize, length: usize) -> bool {
    let mut words = [start as u64, length as u64, PROTECTION, 0];
    // SAFETY: four words that are writable.
    unsafe { libc::ioctl(USERFAULT.load(Relaxed), USERFAULT_REGISTER, words.as_mut_ptr()) == 0 }
}

/// Finds the address range of this library, once: it does not change.
pub fn know_own() {
    if OWN[0].load(Relaxed) == 0 {
        // SAFETY: the function takes the arguments that the loader passes.
        unsafe { libc::dl_iterate_phdr(Some(look_at), ptr::null_mut()) };
    }
}

/// Stores the address range of the library that contains this function.
unsafe extern "C" fn look_at(about: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    const LOADED: u32 = 1;
    // SAFETY: the loader passes a library, and as many headers as it states.
    let (base, headers) = unsafe {
        let about = &*about;
        (about.dlpi_addr as usize, std::slice::from_raw_parts(about.dlpi_phdr, about.dlpi_phnum.into()))
    };
    let here = look_at as *const () as usize;
    let loaded = headers.iter().filter(|header| header.p_type == LOADED);
    let ends = loaded.map(|header| {
        let start = base + header.p_vaddr as usize;
        (start & !(PAGE - 1), (start + header.p_memsz as usize).next_multiple_of(PAGE))
    });
    let (start, end) = ends.fold((usize::MAX, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)));
    if start <= here && here < end {
        OWN[0].store(start, Relaxed);
        OWN[1].store(end, Relaxed);
        return 1;
    }
    0
}

/// Whether a page belongs to this library.
pub fn is_own(page: usize) -> bool {
    page >= OWN[0].load(Relaxed) && page < OWN[1].load(Relaxed)
}

/// The known ranges, sorted by address.
pub struct Ranges {
    list: [Range; RANGES],
    count: usize,
}

impl Ranges {
    /// No ranges.
    pub const fn new() -> Self {
        Self { list: [Range { start: 0, end: 0, class: Class::Data }; RANGES], count: 0 }
    }

    /// Forgets all ranges.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    fn behind(&self, address: usize) -> usize {
        self.list[..self.count].partition_point(|range| range.end <= address)
    }

    /// The range that contains an address.
    pub fn of(&self, address: usize) -> Option<Range> {
        let found = self.list[..self.count].get(self.behind(address))?;
        (found.start <= address).then_some(*found)
    }

    /// Forgets the range that contains an address.
    pub fn forget(&mut self, address: usize) {
        if self.of(address).is_some() {
            let at = self.behind(address);
            self.list.copy_within(at + 1..self.count, at);
            self.count -= 1;
        }
    }

    /// Adds a range. It replaces the parts of known ranges that it overlaps.
    fn add(&mut self, new: Range) {
        if new.start >= new.end {
            return;
        }
        if self.count + 2 > RANGES {
            self.count = 0;
        }
        let first = self.behind(new.start);
        let mut last = first;
        while last < self.count && self.list[last].start < new.end {
            last += 1;
        }
        // The rest of the first and of the last overlapped range.
        let mut parts = [new; 3];
        let mut count = 0;
        if first < last && self.list[first].start < new.start {
            parts[count] = Range { end: new.start, ..self.list[first] };
            count += 1;
        }
        parts[count] = new;
        count += 1;
        if first < last && self.list[last - 1].end > new.end {
            parts[count] = Range { start: new.end, ..self.list[last - 1] };
            count += 1;
        }
        self.list.copy_within(last..self.count, first + count);
        self.list[first..first + count].copy_from_slice(&parts[..count]);
        self.count = self.count + count - (last - first);
    }

    /// Finds all unknown mappings of a process with one thread.
    pub fn find_all(&mut self, kinds: u32) {
        let (mut at, mut name) = (0, [0; NAME]);
        while let Some(found) = area(at, true, &mut name) {
            at = found.end;
            let is_known = |range: Range| range.kind().is_some() && range.end >= found.end;
            if !(found.flags & SHARED != 0 && self.of(found.start).is_some_and(is_known)) {
                self.take(&found, &name, true, kinds);
            }
        }
    }

    /// Finds the mapping of a page; `alone`: the process has one thread, so private memory can be
    /// moved.
    pub fn find(&mut self, page: usize, alone: bool, kinds: u32) {
        let mut name = [0; NAME];
        let found = area(page, false, &mut name).or_else(|| {
            name[0] = 0;
            area(page, false, &mut [])
        });
        if let Some(found) = found {
            self.take(&found, &name, alone, kinds);
        }
    }

    /// Takes a mapping into the window as far as possible.
    fn take(&mut self, found: &Area, name: &[u8], alone: bool, kinds: u32) {
        let Area { start, end, flags, file } = *found;
        let code = flags & EXECUTABLE != 0 && flags & WRITABLE == 0;
        let kind = if code { words::FETCH } else { words::LOAD };
        let here = (&raw const kind).addr();
        let device =
            name.starts_with(b"/dev/") && !name.starts_with(b"/dev/shm/") && !name.starts_with(b"/dev/zero");
        if name.starts_with(b"[stack") || here >= start && here < end {
            return self.add(Range { start, end, class: Class::Stack });
        }
        if name.starts_with(SHARED_WITH_PAGELAB)
            || name.starts_with(b"anon_inode:")
            || is_own(start)
            || kinds >> kind & 1 == 0
        {
            return self.add(Range { start, end, class: Class::Ignored });
        }
        if device || name.starts_with(b"[") && !name.starts_with(b"[heap]") && !name.starts_with(b"[anon") {
            return self.add(Range { start, end, class: Class::Other });
        }
        let class = if code { Class::Code } else { Class::Data };
        let shared = flags & SHARED != 0;
        if shared || file && flags & WRITABLE == 0 && !has_private(start, end) {
            let taken = register(start, end - start);
            if taken {
                system::advise(start, end - start, libc::MADV_NOHUGEPAGE);
                system::advise(start, end - start, libc::MADV_DONTNEED);
            }
            return self.add(Range { start, end, class: if taken { class } else { Class::Other } });
        }
        if !alone {
            return self.add(Range { start, end, class: Class::Other });
        }
        let named = match () {
            () if name.starts_with(b"[heap]") => c"pagelab heap",
            () if file => c"pagelab data",
            () => c"pagelab anonymous",
        };
        self.move_all(found, named, class);
    }

    /// Moves the movable parts of a mapping.
    fn move_all(&mut self, found: &Area, named: &CStr, class: Class) {
        // SAFETY: no pointers. The result is the address of the thread's own structure.
        let thread = unsafe { libc::pthread_self() } as usize;
        let fixed = [
            (OWN[0].load(Relaxed), OWN[1].load(Relaxed), Class::Ignored),
            (
                thread.saturating_sub(BEFORE_THREAD) & !(PAGE - 1),
                (thread + BEHIND_THREAD).next_multiple_of(PAGE),
                Class::Other,
            ),
        ];
        let mut at = found.start;
        while at < found.end {
            let inside = fixed.iter().find(|(start, end, _)| *start <= at && at < *end);
            if let Some(&(_, end, class)) = inside {
                let end = end.min(found.end);
                self.add(Range { start: at, end, class });
                at = end;
                continue;
            }
            let next = fixed.iter().map(|&(start, ..)| start).filter(|&start| start > at);
            let end = next.min().unwrap_or(usize::MAX).min(found.end);
            let moved = moved(at, end, found, named);
            self.add(Range { start: at, end, class: if moved { class } else { Class::Other } });
            at = end;
        }
    }

    /// Takes new private memory that no thread has used yet, or only the calling one.
    pub fn take_new(&mut self, start: usize, end: usize, kinds: u32) {
        let (mut at, mut name) = (start, [0; NAME]);
        while at < end
            && let Some(found) = area(at, true, &mut name)
            && found.start < end
        {
            at = found.end;
            let part = Area { start: found.start.max(start), end: found.end.min(end), ..found };
            if part.flags & SHARED == 0 && !part.file && kinds >> words::LOAD & 1 != 0 {
                let named = if name.starts_with(b"[heap]") { c"pagelab heap" } else { c"pagelab anonymous" };
                self.move_all(&part, named, Class::Data);
            }
        }
    }

    /// Hides pages, which are sorted by address. Calls `other` for each page that now belongs to
    /// other memory than the known.
    pub fn hide(&self, list: &[usize], mut other: impl FnMut(usize)) {
        const EMPTY: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        const PARTS: usize = 512;
        let (mut parts, mut count) = ([EMPTY; PARTS], 0);
        let mut known = Area::default();
        for &page in list {
            if page < known.start || page >= known.end {
                match area(page, false, &mut []) {
                    Some(found) => known = found,
                    None => continue,
                }
            }
            let mut entry = [0];
            let keeps = known.flags & SHARED != 0
                || known.file
                    && entries(page, &mut entry)
                    && entry[0] & (PRESENT | OF_FILE) == PRESENT | OF_FILE;
            if !keeps {
                if !known.file || entry[0] & (PRESENT | SWAPPED) != 0 {
                    other(page);
                }
                continue;
            }
            if count > 0 && parts[count - 1].iov_base.addr() + parts[count - 1].iov_len == page {
                parts[count - 1].iov_len += PAGE;
                continue;
            }
            if count == PARTS {
                system::hide(&parts);
                count = 0;
            }
            parts[count] = libc::iovec { iov_base: ptr::with_exposed_provenance_mut(page), iov_len: PAGE };
            count += 1;
        }
        system::hide(&parts[..count]);
    }

    /// Hides all pages of all ranges in the window.
    pub fn hide_all(&self) {
        for range in self.list[..self.count].iter().filter(|range| range.kind().is_some()) {
            let mut at = range.start;
            while at < range.end
                && let Some(found) = area(at, true, &mut [])
                && found.start < range.end
            {
                let (start, end) = (found.start.max(at), found.end.min(range.end));
                if found.flags & SHARED != 0 || found.file && !has_private(start, end) {
                    system::advise(start, end - start, libc::MADV_DONTNEED);
                }
                at = found.end;
            }
        }
    }
}

/// Whether any page between these addresses is private to this process: its content is stored
/// nowhere else.
fn has_private(start: usize, end: usize) -> bool {
    let mut list = [0; ENTRIES];
    let mut at = start;
    while at < end {
        let count = ((end - at) / PAGE).min(ENTRIES);
        let some = &mut list[..count];
        let private = |entry: &u64| entry & SWAPPED != 0 || entry & (PRESENT | OF_FILE) == PRESENT;
        if !entries(at, some) || some.iter().any(private) {
            return true;
        }
        at += count * PAGE;
    }
    false
}

/// Moves private memory to a memfd that is mapped in its place. Returns whether this succeeded.
fn moved(start: usize, end: usize, found: &Area, named: &CStr) -> bool {
    let length = end - start;
    let file = system::memory_file(named);
    if file < 0 {
        return false;
    }
    let new = system::map(length, libc::MAP_SHARED | libc::MAP_NORESERVE, file, 0);
    system::close(file);
    if new == 0 {
        return false;
    }
    system::advise(new, length, libc::MADV_NOHUGEPAGE);
    // A process created without the fork handlers has none of this memory, instead of sharing its
    // parent's.
    system::advise(new, length, libc::MADV_DONTFORK);
    let done = copied(start, end, found, new)
        && system::protect(new, length, found.flags)
        && system::move_over(new, length, start);
    if !done {
        system::unmap(new, length);
        return false;
    }
    register(start, length);
    system::advise(start, length, libc::MADV_DONTNEED);
    true
}

/// Copies the pages of a mapping, except those full of zeros.
fn copied(start: usize, end: usize, found: &Area, to: usize) -> bool {
    let mut list = [0; ENTRIES];
    let mut at = start;
    while at < end {
        let count = ((end - at) / PAGE).min(ENTRIES);
        if !entries(at, &mut list[..count]) {
            return false;
        }
        for (n, entry) in list[..count].iter().enumerate() {
            if entry & (PRESENT | SWAPPED) == 0 && !found.file {
                continue;
            }
            if found.flags & READABLE == 0 {
                return false;
            }
            copy_page(at + n * PAGE, to + (at - start) + n * PAGE);
        }
        at += count * PAGE;
    }
    true
}

/// Copies a page unless it is full of zeros.
pub fn copy_page(from: usize, to: usize) {
    let (from, to): (*const u64, *mut u64) =
        (ptr::with_exposed_provenance(from), ptr::with_exposed_provenance_mut(to));
    // SAFETY: both are whole pages: the first readable, the other new and writable.
    unsafe {
        const WORDS: usize = PAGE / size_of::<u64>();
        if (0..WORDS).any(|n| from.add(n).read_volatile() != 0) {
            ptr::copy_nonoverlapping(from, to, WORDS);
        }
    }
}

/// Calls `each` for every mapping of moved memory.
pub fn each_moved(mut each: impl FnMut(&Area)) {
    let (mut at, mut name) = (0, [0; NAME]);
    while let Some(found) = area(at, true, &mut name) {
        at = found.end;
        if found.flags & SHARED != 0 && name.starts_with(OURS) {
            each(&found);
        }
    }
}

/// Gives up a range as the program advised. Moved memory is zeroed, as private memory is. Returns
/// `None` if nothing in the range was moved.
pub fn given_up(start: usize, length: usize) -> Option<c_int> {
    let end = start.checked_add(length)?.next_multiple_of(PAGE);
    let (mut at, mut name, mut any) = (start, [0; NAME], false);
    while at < end
        && let Some(found) = area(at, true, &mut name)
        && found.start < end
    {
        let (from, to) = (found.start.max(at), found.end.min(end));
        let ours = found.flags & SHARED != 0 && name.starts_with(OURS);
        any |= ours;
        let advice = if ours { libc::MADV_REMOVE } else { libc::MADV_DONTNEED };
        if system::advise(from, to - from, advice) != 0 && ours {
            // MADV_REMOVE needs a writable mapping.
            let writable = found.flags | WRITABLE;
            if system::protect(from, to - from, writable) {
                system::advise(from, to - from, advice);
                system::protect(from, to - from, found.flags);
            }
        }
        at = to;
    }
    any.then_some(0)
}
