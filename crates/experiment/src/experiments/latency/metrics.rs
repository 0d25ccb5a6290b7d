//! Metrics of `latency`.

use crate::metrics::metrics;

metrics! {
    LATENCY_L1 = "latency.l1", Nanoseconds, Median, Lower,
        "latency: a load from the first-level cache",
        "Each load depends on the one before, in random order, so no prefetcher helps. The figure \
         is the median round of the largest working set up to half the cache.";
    LATENCY_L2 = "latency.l2", Nanoseconds, Median, Lower,
        "latency: a load from the second-level cache",
        "Measured like latency.l1, with a working set beyond the first-level cache and up to half \
         the second.";
    LATENCY_L3 = "latency.l3", Nanoseconds, Median, Lower,
        "latency: a load from the third-level cache",
        "From the smallest working set of at least twice the second-level cache, because the \
         share of one CPU in a shared cache is unknown. Missing if it costs as much as memory \
         because other programs fill the cache.";
    LATENCY_DRAM = "latency.dram", Nanoseconds, Median, Lower,
        "latency: a load from memory",
        "From the largest working set, in huge pages, if it is at least twice the last cache. \
         Without huge pages it includes TLB misses.";
    LATENCY_TLB_MISS = "latency.tlb-miss", Nanoseconds, Median, Lower,
        "latency: a load that misses every TLB",
        "One line of each base page, from twice as many pages as the second-level TLB has \
         entries. The figure is a page-table walk plus a load of a cached line.";
    LATENCY_MINOR_FAULT = "latency.minor-fault", Nanoseconds, Median, Lower,
        "latency: first touch of a base page of anonymous memory",
        "Excludes the release of the page, which fault.anonymous includes.";
    LATENCY_HUGE_FAULT = "latency.huge-fault", Nanoseconds, Median, Lower,
        "latency: first touch of a transparent huge page in memory that the caches hold",
        "Includes clearing the page, 2 MiB on x86-64. The last cache still holds the four \
         pages, which an earlier mapping freed. Missing if the kernel supplied base pages: transparent \
         huge pages are off, or none was free.";
    LATENCY_HUGE_FAULT_FRESH = "latency.huge-fault.fresh", Nanoseconds, Median, Lower,
        "latency: first touch of a transparent huge page in memory beyond the caches",
        "A growing program pays this. At least 64 pages and twice the last cache are touched in \
         turn. Missing if the largest working set is smaller, or if the kernel supplied base pages.";
}
