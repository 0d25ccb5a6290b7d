//! Metrics of `mapanon` and `mapfile`.

use crate::metrics::metrics;

metrics! {
    ACCESS_MEAN = "access.mean", Nanoseconds, Mean, Lower,
        "mean access time",
        "The total time of all references divided by their number. A few major faults can make up \
         most of it. It includes all interruptions of a reference, also by other tasks.";
    ACCESS_P50 = "access.p50", Nanoseconds, Median, Lower,
        "median access time",
        "If most references are hits, the median shows nothing about faults.";
    ACCESS_P99 = "access.p99", Nanoseconds, P99, Lower,
        "99th percentile of the access time",
        "From a histogram with three significant digits.";
    ACCESS_P999 = "access.p999", Nanoseconds, P999, Lower,
        "99.9th percentile of the access time",
        "From a histogram with three significant digits. With fewer than 1,000 references it is \
         the maximum.";
    ACCESS_MAX = "access.max", Nanoseconds, Max, Lower,
        "maximum access time",
        "Exact. A single interrupt can determine it, so it says little about the load.";
    ACCESS_HIT_MEAN = "access.hit.mean", Nanoseconds, Mean, Lower,
        "mean access time of hits, references without a fault",
        "A reference is a hit if the thread's fault counters do not change during it. Hits \
         include references that another task interrupted for milliseconds. On a busy machine the \
         mean is therefore far above the median.";
    ACCESS_HIT_UNINTERRUPTED = "access.hit.uninterrupted", Nanoseconds, Mean, Lower,
        "mean access time of hits that no interrupt or other task interrupted",
        "Only hits during which the CPU did not enter the kernel. Known on x86-64, where every \
         interrupt clears a mark in a segment register. Missing on other architectures.";
    ACCESS_HIT_P50 = "access.hit.p50", Nanoseconds, Median, Lower,
        "median access time of hits",
        "The undisturbed cost of memory: caches, TLB and the harness itself (harness.cost).";
    ACCESS_MINOR_MEAN = "access.minor.mean", Nanoseconds, Mean, Lower,
        "mean access time with a minor fault",
        "The thread's own fault counters separate these references from hits; no time threshold \
         is involved.";
    ACCESS_MINOR_P50 = "access.minor.p50", Nanoseconds, Median, Lower,
        "median access time with a minor fault",
        "The thread's own fault counters separate these references from hits; no time threshold \
         is involved.";
    ACCESS_MAJOR_MEAN = "access.major.mean", Nanoseconds, Mean, Lower,
        "mean access time with a major fault",
        "Includes the wait for the device and any reclaim that the fault had to do first.";
    ACCESS_MAJOR_P50 = "access.major.p50", Nanoseconds, Median, Lower,
        "median access time with a major fault",
        "The usual cost of a page that must be read. Compare swap devices by this metric.";
    ACCESS_MAJOR_P99 = "access.major.p99", Nanoseconds, P99, Lower,
        "99th percentile of the access time with a major fault",
        "High values indicate a busy device, or reclaim that had to write.";
    ACCESS_READ_MEAN = "access.read.mean", Nanoseconds, Mean, Lower,
        "--writes: mean access time of reads",
        "Of the references that --writes leaves as reads, including faults. Compared with \
         access.write.mean it shows whether readers or writers pay for dirty pages.";
    ACCESS_WRITE_MEAN = "access.write.mean", Nanoseconds, Mean, Lower,
        "--writes: mean access time of writes, including pauses for dirty pages",
        "Includes faults. In a mapped file the first write to a clean page faults, and the kernel \
         may pause the writer in that fault.";
    WRITES = "writes", Count, Count, Neither,
        "--writes: timed references that wrote",
        "Determined by the seed, so the number is the same on every target.";
    DIRTY_MAX = "dirty.max", Bytes, Max, Neither,
        "mapfile: maximum dirty bytes between windows, of the cgroup if it counts them",
        "See dirty page. If the cgroup's memory.stat does not count dirty pages, the figure is \
         the machine's and a note says so. The kernel learns of a page written through a mapping \
         at its first write after the last writeback.";
    WRITEBACK_MAX = "writeback.max", Bytes, Max, Neither,
        "mapfile: maximum bytes under writeback between windows",
        "Pages on their way to the disk. pagelab reads the figure between windows, so it may miss \
         a short peak.";
    DIRTY_PAUSES = "dirty.pauses", Count, Count, Lower,
        "mapfile: pauses of the referencing thread in balance_dirty_pages",
        "See dirty throttling. From the tracepoint writeback:balance_dirty_pages of the \
         referencing thread. Missing if the user may not trace.";
    DIRTY_THROTTLED = "dirty.throttled", Nanoseconds, Total, Lower,
        "mapfile: total length of those pauses, as the kernel set them",
        "The lengths that the kernel requested, in whole timer ticks; the actual pauses may \
         differ. time.elapsed and access.write.mean include them.";
    PAGES_DIRTIED = "pages.dirtied", Pages, Count, Neither,
        "mapfile: pages that became dirty, on the whole machine",
        "nr_dirtied of /proc/vmstat, including writes of other programs. A page counts each time \
         it changes from clean to dirty. Exact for root; otherwise up to 125 pages per CPU are \
         missing at either end.";
    PAGES_WRITTEN = "pages.written", Pages, Count, Lower,
        "mapfile: pages written back to disks, on the whole machine",
        "nr_written of /proc/vmstat, including writes of other programs and the writeback of an \
         fsync after the last reference.";
    FSYNC_P50 = "fsync.p50", Nanoseconds, Median, Lower,
        "mapfile: median time of an fsync of the file that references write",
        "From the call to its return. The calls are between windows, so no access time includes \
         them. --syncs sets their number. Includes the flush of the disk's own cache.";
    FSYNC_MAX = "fsync.max", Nanoseconds, Max, Lower,
        "mapfile: maximum time of an fsync",
        "Over the number of calls that --syncs sets; with one call it equals the median.";
    FAULT_ANONYMOUS = "fault.anonymous", Nanoseconds, Median, Lower,
        "first touch of a page of anonymous memory and its release, measured before the run",
        "The median over rounds. In a guest that counts instructions the unit is instructions, \
         and the figure is the same in every run.";
    FAULTS_POPULATE = "faults.populate", Count, Count, Lower,
        "mapanon: minor faults of one write to every page before the references; a huge page \
         takes one",
        "The kernel's count: one per base page, and one per 2 MiB with huge pages on x86-64. No \
         other metric of the run includes these faults.";
    HUGE_BEFORE = "huge.before", Bytes, First, Neither,
        "mapanon: bytes of the mapping in transparent huge pages before the first reference",
        "AnonHugePages of the mapping in /proc/self/smaps, after it is populated. Present only if \
         --thp allows huge pages; missing if the kernel does not report it per mapping.";
    HUGE_AFTER = "huge.after", Bytes, Last, Neither,
        "mapanon: bytes of the mapping in transparent huge pages after the last reference",
        "Read in the same way as huge.before. It is lower if the kernel split huge pages to \
         reclaim them.";
    HUGE_COVERAGE_BEFORE = "huge.coverage.before", Share, First, Higher,
        "mapanon: share of the mapping in transparent huge pages before the first reference",
        "huge.before divided by the size of the mapping. Below 1 if the ends of the mapping are \
         not aligned, if no huge page was free, or if the mapping exceeds the limit.";
    HUGE_COVERAGE_AFTER = "huge.coverage.after", Share, Last, Higher,
        "mapanon: share of the mapping in transparent huge pages after the last reference",
        "huge.after divided by the size of the mapping. Swap-in brings base pages back, until \
         khugepaged collapses them.";
    FOLIO_COVERAGE_BEFORE = "folio.coverage.before", Share, First, Higher,
        "mapanon: share of the mapping in folios of more than one page before the first reference",
        "From /proc/kpageflags, for each page of the mapping in memory. It therefore includes \
         sizes that the CPU does not map with one entry. The table folios lists each size. \
         Missing without root.";
    FOLIO_COVERAGE_AFTER = "folio.coverage.after", Share, Last, Higher,
        "mapanon: share of the mapping in folios of more than one page after the last reference",
        "Read in the same way as folio.coverage.before. Pages that are not in memory belong to no \
         folio.";
    ZRAM_STORED = "zram.stored", Bytes, Last, Neither,
        "mapanon: bytes of pages stored in the run's zram device after the last reference",
        "orig_data_size in the device's mm_stat, while the mapping exists. A page that was read \
         back stays stored until it is written or the kernel needs its slot.";
    ZRAM_MEMORY = "zram.memory", Bytes, Last, Lower,
        "mapanon: memory used by zram for those pages, including its allocator",
        "mem_used_total in mm_stat.";
    ZRAM_RATIO = "zram.ratio", Ratio, Ratio, Higher,
        "mapanon: zram.stored divided by zram.memory",
        "The gain of swapping to zram: each byte of zram memory frees this many bytes, less one.";
    ZRAM_COMPRESSION = "zram.compression", Ratio, Ratio, Higher,
        "mapanon: bytes of pages per byte of compressor output, without same-filled pages",
        "Based on compr_data_size in mm_stat. zram.ratio is lower because the allocator rounds \
         sizes up, and higher if pages are same-filled.";
    ZRAM_SAME = "zram.same", Pages, Last, Neither,
        "mapanon: same-filled pages in zram (one repeated word), which take no memory",
        "same_pages in mm_stat.";
    ZRAM_INCOMPRESSIBLE = "zram.incompressible", Pages, Last, Neither,
        "mapanon: incompressible pages in zram, stored uncompressed",
        "huge_pages in mm_stat. Missing before Linux 4.19.";
    ZSWAP_STORED = "zswap.stored", Bytes, Last, Neither,
        "mapanon: bytes of pages in zswap after the last reference",
        "zswapped in the cgroup's memory.stat (version 2), otherwise Zswapped in /proc/meminfo, \
         for the whole machine. Present only if zswap is on; Linux 5.19 or later.";
    ZSWAP_MEMORY = "zswap.memory", Bytes, Last, Lower,
        "mapanon: memory used by zswap for those pages",
        "zswap in the cgroup's memory.stat, otherwise Zswap in /proc/meminfo.";
    ZSWAP_RATIO = "zswap.ratio", Ratio, Ratio, Higher,
        "mapanon: zswap.stored divided by zswap.memory",
        "Read like zram.ratio. Same-filled pages take no memory.";
    ZSWAP_OUT = "zswap.out", Pages, Count, Neither,
        "mapanon: pages stored in zswap since before the mapping was populated",
        "The growth of zswpout until the last reference, from the cgroup's memory.stat (version \
         2, Linux 6.13) or from /proc/vmstat for the whole machine. Such a page reaches the \
         device only through writeback. If nothing else swaps, zswap holds zswap.out less \
         zswap.in and zswap.writeback. Present only if zswap is on; Linux 5.19 or later.";
    ZSWAP_IN = "zswap.in", Pages, Count, Neither,
        "mapanon: pages read back from zswap in the same period",
        "The growth of zswpin; see zswap.out. These pages were not read from the device, and \
         swap.in does not include them.";
    ZSWAP_WRITEBACK = "zswap.writeback", Pages, Count, Lower,
        "mapanon: pages written back from zswap to the swap device in the same period",
        "The growth of zswpwb; see zswap.out. Zswap decompresses and writes a page if its pool is \
         full (zswap.max-pool-percent) or memory.zswap.max limits the cgroup. Reclaim can also \
         request it (zswap.shrinker-enabled). Missing before Linux 6.8.";
    ZSWAP_REJECTED = "zswap.rejected", Pages, Count, Lower,
        "mapanon: pages written to swap that zswap rejected in the same period",
        "The growth of pswpout less zswap.writeback. zswap rejects pages while its pool is full, \
         until it falls to zswap.accept-threshold-percent of its limit. Some kernels also reject \
         incompressible pages. Missing before Linux 6.8.";
    EVICTIONS = "evictions", Pages, Count, Lower,
        "--evictions: pages that left the page table (mapanon) or the page cache (mapfile)",
        "A page that left and came back several times counts each time. On a kernel, anonymous \
         pages leave the page table before they leave memory: a page can return from the swap \
         cache by a minor fault.";
    EVICTIONS_FREED = "evictions.freed", Pages, Count, Lower,
        "mapanon --evictions: pages of the mapping that the kernel freed during the references",
        "Counted at a kernel function (workingset_eviction). It includes pages that read-ahead \
         brought into the swap cache and no reference mapped. Missing on kernels that refuse BPF \
         programs on functions.";
    PAGES_PRESENT = "pages.present", Pages, Max, Neither,
        "maximum number of pages of the mapping in memory at any snapshot: its real number of \
         frames",
        "The models of the verdict get the same number of frames. Page tables and the rest of the \
         charge are not included.";
}
