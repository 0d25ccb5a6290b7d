//! Metrics of `ksm`.

use crate::metrics::metrics;

metrics! {
    KSM_SHARING = "ksm.sharing", Pages, Last, Higher,
        "ksm: frames saved: pages of the mapping less the frames that hold them",
        "From the frame numbers in /proc/self/pagemap, so it excludes pages of other programs. \
         Missing if the kernel hides frame numbers.";
    KSM_SHARED = "ksm.shared", Pages, Last, Neither,
        "ksm: frames that hold several pages of the mapping after merging",
        "From the frame numbers in /proc/self/pagemap. One frame holds at most max_page_sharing \
         pages.";
    KSM_PROFIT = "ksm.profit", Bytes, Last, Higher,
        "ksm: bytes saved by merging less the kernel's bookkeeping, as the kernel reports them",
        "ksm_process_profit in /proc/self/ksm_stat (Linux 6.4): merged pages less 64 bytes per \
         page known to ksmd. Negative if few pages are equal.";
    KSM_TIME = "ksm.time", Nanoseconds, Total, Lower,
        "ksm: wall time from the start of ksmd to the last merge",
        "Polled every 2 ms; includes ksmd's sleeps. ksmd needs one scan to record a page and \
         another to merge it. Missing in a guest that counts instructions, because sleep executes \
         none.";
    KSM_SCANS = "ksm.scans", Count, Count, Lower,
        "ksm: full scans until a scan merged nothing more",
        "The growth of full_scans.";
    KSM_CPU = "ksm.cpu", Nanoseconds, Total, Lower,
        "ksm: CPU time of ksmd until the last merge",
        "The first number in the thread's schedstat. Missing if /proc does not show the thread.";
    KSM_COPY = "ksm.copy", Nanoseconds, Mean, Lower,
        "ksm: mean CPU time of a write to a merged page, which copies it",
        "A fault, a new frame and a copy. Compare with ksm.write.";
    KSM_WRITE = "ksm.write", Nanoseconds, Mean, Neither,
        "ksm: mean CPU time of a write to a page that was not merged",
        "The cost of a write in the same loop without a fault.";
    KSM_UNMERGE = "ksm.unmerge", Nanoseconds, Mean, Lower,
        "ksm: mean CPU time of madvise(MADV_UNMERGEABLE) per page still merged",
        "The kernel visits the whole mapping and copies every merged page.";
}
