//! What every load causes: faults, swap traffic, switches.

use super::metrics;

metrics! {
    FAULTS_MINOR = "faults.minor", Count, Count, Lower,
        "minor faults",
        "The kernel's own count for the referencing thread; see minor fault.";
    FAULTS_MAJOR = "faults.major", Count, Count, Lower,
        "major faults",
        "The kernel's own count for the referencing thread; see major fault.";
    SWAP_IN = "swap.in", Pages, Count, Lower,
        "pages read from swap",
        "Includes read-ahead from swap, so it can exceed the major faults.";
    SWAP_OUT = "swap.out", Pages, Count, Lower,
        "pages written to swap",
        "The kernel drops a page without a write if swap already has a clean copy. The count can \
         therefore be below the number of reclaimed pages.";
    IO_READ = "io.read", Bytes, Total, Lower,
        "bytes read from block devices for the references: files and swap, including read-ahead",
        "The kernel's account for the process. Hits in the page cache are not included.";
    SWITCHES_VOLUNTARY = "switches.voluntary", Count, Count, Lower,
        "voluntary context switches",
        "The thread waited for a device or a lock. Each major fault that waits for a device \
         causes about one.";
    SWITCHES_INVOLUNTARY = "switches.involuntary", Count, Count, Lower,
        "involuntary context switches",
        "Another task took the CPU. A high count means that the machine was busy.";
    SCAN_KSWAPD = "scan.kswapd", Pages, Count, Lower,
        "pages scanned by kswapd",
        "pgscan_kswapd. Of the run's cgroup if it has a limit, otherwise of the whole machine. \
         Missing if the cgroup's memory.stat does not count it: version 1, or before Linux 6.0. \
         The machine's counters omit reclaim for a cgroup's limit.";
    SCAN_DIRECT = "scan.direct", Pages, Count, Lower,
        "pages scanned by direct reclaim and for memory.reclaim",
        "pgscan_direct plus pgscan_khugepaged (Linux 6.2) and pgscan_proactive (Linux 6.15), which \
         earlier kernels include in the former. The tasks that need memory scan these pages \
         themselves. Scope as for scan.kswapd.";
    STEAL_KSWAPD = "steal.kswapd", Pages, Count, Lower,
        "pages reclaimed by kswapd",
        "pgsteal_kswapd. Includes pages demoted to a slower node. Scope as for scan.kswapd.";
    STEAL_DIRECT = "steal.direct", Pages, Count, Lower,
        "pages reclaimed by direct reclaim and for memory.reclaim",
        "pgsteal_direct, pgsteal_khugepaged and pgsteal_proactive. Divided by scan.direct it is the efficiency of \
         direct reclaim. Scope as for scan.kswapd.";
    REFAULTS = "refaults", Pages, Count, Lower,
        "pages read again that were in memory a short time ago",
        "See refault. Of the cgroup if its memory.stat counts them, otherwise of the whole \
         machine; files and anonymous memory together.";
}
