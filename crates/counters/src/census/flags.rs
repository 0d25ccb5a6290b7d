//! What a page's flags say about its use (include/uapi/linux/kernel-page-flags.h).

use serde::Serialize;

pub const DIRTY: u64 = 1 << 4;
pub const LRU: u64 = 1 << 5;
pub const ACTIVE: u64 = 1 << 6;
pub const SLAB: u64 = 1 << 7;
pub const WRITEBACK: u64 = 1 << 8;
pub const BUDDY: u64 = 1 << 10;
pub const MMAP: u64 = 1 << 11;
pub const ANON: u64 = 1 << 12;
pub const SWAPCACHE: u64 = 1 << 13;
pub const SWAPBACKED: u64 = 1 << 14;
pub const HUGE: u64 = 1 << 17;
pub const UNEVICTABLE: u64 = 1 << 18;
pub const HWPOISON: u64 = 1 << 19;
pub const NOPAGE: u64 = 1 << 20;
pub const THP: u64 = 1 << 22;
pub const OFFLINE: u64 = 1 << 23;
pub const ZERO_PAGE: u64 = 1 << 24;
pub const PGTABLE: u64 = 1 << 26;
pub const RESERVED: u64 = 1 << 32;

/// What a physical page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// The kernel's objects.
    Slab,
    /// Page tables of processes.
    PageTable,
    /// Other pages of the kernel: stacks, per-CPU areas, vmalloc, drivers, per-CPU free lists.
    Kernel,
    /// Not the allocator's: the kernel's image, the memory map, firmware.
    Reserved,
    /// Private memory of processes.
    Anonymous,
    /// tmpfs, System V and shared anonymous memory.
    Shared,
    /// File pages that some process maps executable.
    Executable,
    /// Other file pages that are mapped.
    MappedFile,
    /// File pages that nobody maps: Solaris' cachelist, to be had at once unless dirty.
    UnmappedFile,
    /// Huge pages of hugetlbfs.
    Huge,
    /// Off line or poisoned.
    Gone,
    /// Free.
    Free,
}

impl Use {
    /// Every use, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Slab,
        Self::PageTable,
        Self::Kernel,
        Self::Reserved,
        Self::Anonymous,
        Self::Shared,
        Self::Executable,
        Self::MappedFile,
        Self::UnmappedFile,
        Self::Huge,
        Self::Gone,
        Self::Free,
    ];

    /// The name in the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Slab => "kernel: slab",
            Self::PageTable => "kernel: page tables",
            Self::Kernel => "kernel: other",
            Self::Reserved => "reserved, or the host's",
            Self::Anonymous => "anonymous",
            Self::Shared => "shared memory",
            Self::Executable => "executables and libraries",
            Self::MappedFile => "mapped file cache",
            Self::UnmappedFile => "unmapped file cache",
            Self::Huge => "huge pages",
            Self::Gone => "off line or poisoned",
            Self::Free => "free",
        }
    }

    /// The use that the flags tell; None where there is no page. Whether a mapped file page is
    /// executable is asked only of those.
    pub(super) fn of(flags: u64, is_executable: impl Fn() -> bool) -> Option<Self> {
        let has = |flag: u64| flags & flag != 0;
        Some(match () {
            () if has(NOPAGE) => return None,
            () if has(HWPOISON | OFFLINE) => Self::Gone,
            () if has(BUDDY) => Self::Free,
            () if has(SLAB) => Self::Slab,
            () if has(PGTABLE) => Self::PageTable,
            () if has(RESERVED | ZERO_PAGE) => Self::Reserved,
            () if has(HUGE) => Self::Huge,
            () if has(ANON) => Self::Anonymous,
            // Swap cache that has lost its mappings is still somebody's anonymous or shared memory.
            () if has(SWAPCACHE) && !has(MMAP) => Self::Anonymous,
            () if has(SWAPBACKED) && has(LRU | MMAP | UNEVICTABLE) => Self::Shared,
            () if has(MMAP) && is_executable() => Self::Executable,
            () if has(MMAP) => Self::MappedFile,
            () if has(LRU | UNEVICTABLE) => Self::UnmappedFile,
            () => Self::Kernel,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_numbered_in_order() {
        for (number, what) in Use::ALL.into_iter().enumerate() {
            assert_eq!(what as usize, number);
        }
    }

    #[test]
    fn flags_tell_the_use() {
        let plain = |flags| Use::of(flags, || false);
        assert_eq!(plain(NOPAGE), None);
        assert_eq!(plain(0), Some(Use::Kernel));
        assert_eq!(plain(BUDDY), Some(Use::Free));
        assert_eq!(plain(LRU | SWAPBACKED), Some(Use::Shared));
        assert_eq!(plain(LRU | SWAPBACKED | SWAPCACHE), Some(Use::Anonymous));
        assert_eq!(plain(LRU | MMAP), Some(Use::MappedFile));
        assert_eq!(Use::of(LRU | MMAP, || true), Some(Use::Executable));
        assert_eq!(Use::of(LRU, || true), Some(Use::UnmappedFile));
        assert_eq!(plain(MMAP | ANON | HUGE), Some(Use::Huge));
    }
}
