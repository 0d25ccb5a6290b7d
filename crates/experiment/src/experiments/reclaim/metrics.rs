//! Metrics of `reclaim`.

use crate::metrics::metrics;

metrics! {
    RECLAIM_REQUESTED = "reclaim.requested", Bytes, Total, Neither,
        "reclaim: bytes requested, or allowed to a DAMON scheme, over all steps",
        "The parameter --ask.";
    RECLAIM_RECLAIMED = "reclaim.reclaimed", Bytes, Total, Neither,
        "reclaim: bytes that the cgroup counted as reclaimed during the requests",
        "pgsteal in memory.stat. It can exceed reclaim.requested because the kernel reclaims in \
         batches. Missing with DAMON, whose work is not counted there.";
    RECLAIM_FREED = "reclaim.freed", Bytes, Total, Neither,
        "reclaim: decrease of the memory charged to the cgroup, over all steps",
        "memory.current before and after each step. Below reclaim.pages if paged-out pages remain \
         in the swap cache, as after a scheme on a disk.";
    RECLAIM_PAGES = "reclaim.pages", Pages, Count, Neither,
        "reclaim: pages of the mapping that were paged out, over all steps",
        "/proc/self/pagemap before and after each step. With DAMON it includes the faults on the \
         hot part, each of which brought a page back.";
    RECLAIM_COLD = "reclaim.cold", Share, Share, Higher,
        "reclaim: share of reclaim.pages from the cold part",
        "1 means that the kernel identified all pages that were not in use.";
    RECLAIM_MISTAKES = "reclaim.mistakes", Count, Count, Lower,
        "reclaim: major faults on the hot part, after steps and between them",
        "Each is a page that was paged out although it was in use. Read-ahead from a swap file \
         brings others back without a fault of their own.";
    RECLAIM_COST = "reclaim.cost", Nanoseconds, Mean, Lower,
        "reclaim: mean CPU time of the request, or of DAMON's thread, per page paged out",
        "Of the thread that writes to memory.reclaim, which does the reclaim itself, or of \
         DAMON's thread, including its monitoring.";
    RECLAIM_TRIED = "reclaim.tried", Bytes, Total, Neither,
        "reclaim: bytes of regions that DAMON's scheme tried, by its own count",
        "sz_tried in the scheme's statistics. The scheme tries a region again once it is old \
         enough again, even if its pages are not in memory.";
    RECLAIM_APPLIED = "reclaim.applied", Bytes, Total, Neither,
        "reclaim: bytes of regions to which DAMON's scheme applied its action, by its own count",
        "sz_applied in the scheme's statistics. It counts whole regions, so it is at least the \
         memory paged out.";
    RECLAIM_KDAMOND = "reclaim.kdamond", Nanoseconds, Total, Lower,
        "reclaim: CPU time of DAMON's thread, including its monitoring",
        "The first number in its schedstat. Missing with memory.reclaim.";
    RECLAIM_HOT_COST = "reclaim.hot.cost", Nanoseconds, Mean, Lower,
        "reclaim: mean CPU time of a reference to the hot part, including faults",
        "Between the steps and after them: the cost to the load itself, mainly its faults.";
    RECLAIM_REREAD_FAULTS = "reclaim.reread.faults", Count, Count, Lower,
        "reclaim: major faults of one final pass over the cold part",
        "Fewer than the pages paged out, because the kernel reads ahead.";
    RECLAIM_REREAD_COST = "reclaim.reread.cost", Nanoseconds, Mean, Lower,
        "reclaim: mean CPU time of that pass per major fault",
        "Includes the pages read ahead and the references themselves.";
}
