//! Metrics of `unmap`, `mremap` and `populate`.

use crate::metrics::metrics;

metrics! {
    UNMAP_MUNMAP = "unmap.munmap", Nanoseconds, Median, Lower,
        "unmap: CPU time of munmap(2) per written page",
        "Includes the release of the pages.";
    UNMAP_MUNMAP_SHARED = "unmap.munmap.shared", Nanoseconds, Median, Lower,
        "unmap: unmap.munmap with other threads running in the address space",
        "The other CPUs must drop their translations before the kernel releases the pages.";
    UNMAP_PROTECT = "unmap.mprotect", Nanoseconds, Median, Lower,
        "unmap: CPU time of mprotect(2) to PROT_READ per written page",
        "The kernel releases no page; it rewrites the page-table entries.";
    UNMAP_PROTECT_SHARED = "unmap.mprotect.shared", Nanoseconds, Median, Lower,
        "unmap: unmap.mprotect with other threads running in the address space",
        "The other CPUs must drop their translations.";
    UNMAP_DONTNEED = "unmap.dontneed", Nanoseconds, Median, Lower,
        "unmap: CPU time of madvise(MADV_DONTNEED) per written page",
        "The kernel releases the pages and keeps the mapping.";
    UNMAP_FREE = "unmap.free", Nanoseconds, Median, Lower,
        "unmap: CPU time of madvise(MADV_FREE) per written page",
        "The pages stay until the kernel needs them; the call only marks them.";
    UNMAP_COLD = "unmap.cold", Nanoseconds, Median, Lower,
        "unmap: CPU time of madvise(MADV_COLD) per written page",
        "The pages stay, and become the first candidates for reclaim. Missing before Linux 5.4.";
    UNMAP_PAGEOUT = "unmap.pageout", Nanoseconds, Median, Lower,
        "unmap: CPU time of madvise(MADV_PAGEOUT) per written page",
        "The kernel reclaims the pages at once, to swap; without swap they stay. Excludes waiting \
         for a disk. Missing before Linux 5.4.";
    MREMAP_ALIGNED = "mremap.aligned", Nanoseconds, Median, Lower,
        "mremap: CPU time of mremap(2) per page, to an address with the same offset within 2 MiB",
        "The kernel moves whole page tables.";
    MREMAP_MOVE = "mremap.move", Nanoseconds, Median, Lower,
        "mremap: CPU time of mremap(2) per page, to an address one page further",
        "The kernel moves each page-table entry separately.";
    MREMAP_MOVE_SHARED = "mremap.move.shared", Nanoseconds, Median, Lower,
        "mremap: mremap.move with other threads running in the address space",
        "The other CPUs must drop their translations.";
    POPULATE_TOUCH = "populate.touch", Nanoseconds, Median, Lower,
        "populate: CPU time of the first write to each page",
        "One fault per page, including the clearing of the page.";
    POPULATE_TOUCH_SHARED = "populate.touch.shared", Nanoseconds, Median, Lower,
        "populate: populate.touch with other threads running in the address space",
        "The other CPUs have no translations to drop.";
    POPULATE_MAP = "populate.map", Nanoseconds, Median, Lower,
        "populate: CPU time of mmap(2) with MAP_POPULATE per page",
        "The same pages without one fault per page.";
    POPULATE_ADVISE = "populate.advise", Nanoseconds, Median, Lower,
        "populate: CPU time of madvise(MADV_POPULATE_WRITE) per page",
        "Like populate.map, for an existing mapping. Missing before Linux 5.14.";
}
