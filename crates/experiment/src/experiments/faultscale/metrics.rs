//! Metrics of `faultscale`.

use crate::metrics::metrics;

metrics! {
    THROUGHPUT_FIRST = "throughput.first", PerSecond, Rate, Higher,
        "faultscale: operations per second with the fewest workers",
        "The baseline of the scaling.";
    THROUGHPUT_BEST = "throughput.best", PerSecond, Max, Higher,
        "faultscale: maximum operations per second over all numbers of workers",
        "More workers than throughput.best.workers do not increase the throughput.";
    THROUGHPUT_BEST_WORKERS = "throughput.best.workers", Count, Value, Neither,
        "faultscale: number of workers with the maximum throughput",
        "See throughput.best.";
    THROUGHPUT_LAST = "throughput.last", PerSecond, Rate, Higher,
        "faultscale: operations per second with the most workers",
        "Below throughput.best, workers slow each other down.";
    OPERATION_P50 = "operation.p50", Nanoseconds, Median, Lower,
        "faultscale: median time of an operation with the most workers; one in 16 is timed",
        "Includes one reading of the clock. Sampling costs two readings per 16 operations.";
    OPERATION_P99 = "operation.p99", Nanoseconds, P99, Lower,
        "faultscale: 99th percentile of the time of those operations",
        "Waits for locks and for a CPU appear in this metric first.";
    BESIDE_THROUGHPUT = "beside.throughput", PerSecond, Rate, Higher,
        "faultscale --beside: operations per second with the most workers while another thread \
         runs",
        "The difference from throughput.last is the cost of the other thread. With fewer CPUs \
         than threads it includes that thread's own CPU time.";
    BESIDE_P50 = "beside.p50", Nanoseconds, Median, Lower,
        "faultscale --beside: median time of an operation with the most workers while another \
         thread runs",
        "Compare with operation.p50: most operations meet no held lock.";
    BESIDE_P99 = "beside.p99", Nanoseconds, P99, Lower,
        "faultscale --beside: 99th percentile of the time of those operations",
        "Compare with operation.p99. Waits become visible once 1% of the operations wait.";
    BESIDE_WAITS = "beside.waits", Count, Rate, Lower,
        "faultscale --beside: sleeps of the most workers per million of those operations",
        "Voluntary context switches (getrusage) during the operations. A fault that finds \
         mmap_lock held for writing sleeps. A fault under its own mapping's lock \
         (CONFIG_PER_VMA_LOCK) does not.";
    BESIDE_CALLS = "beside.calls", PerSecond, Rate, Neither,
        "faultscale --beside: system calls of the other thread per second",
        "mmap and munmap of a page are two calls, mprotect is one. More calls cause more waits.";
}
