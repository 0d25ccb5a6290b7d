//! Metrics of `fileread` and `seqread`.

use crate::metrics::metrics;

metrics! {
    READ_CPU_SMALL = "read.cpu.small", Nanoseconds, Mean, Lower,
        "fileread: mean CPU time of a read from a small file in memory",
        "The cost of a read from the page cache: system call, lookup and copy. With --writes, the \
         mean of reads and writes.";
    READ_CPU_LARGE = "read.cpu.large", Nanoseconds, Mean, Lower,
        "fileread: mean CPU time of a read from a large file in memory",
        "Higher than with a small file, which the CPU's caches and TLB can hold.";
    READ_CPU_BEYOND = "read.cpu.beyond", Nanoseconds, Mean, Lower,
        "fileread: mean CPU time of a read from a file larger than the limit",
        "Includes reclaim and the device requests, but not the wait for the device.";
    BANDWIDTH_BUFFERED = "bandwidth.buffered", BytesPerSecond, Max, Higher,
        "seqread: bytes per second through the page cache, with the best transfer size",
        "Includes read-ahead and copying.";
    BANDWIDTH_DIRECT = "bandwidth.direct", BytesPerSecond, Max, Higher,
        "seqread: bytes per second around the page cache, with the best transfer size",
        "With O_DIRECT; missing if the file system does not support it.";
    BANDWIDTH_MAPPED = "bandwidth.mapped", BytesPerSecond, Max, Higher,
        "seqread: bytes per second through a mapping, with the best transfer size",
        "With --access mmap: includes the page faults, read-ahead and copying.";
    BANDWIDTH_IO_URING = "bandwidth.io-uring", BytesPerSecond, Max, Higher,
        "seqread: bytes per second by io_uring through the page cache, with the best transfer size",
        "With --access io-uring: --depth reads are in flight.";
    BANDWIDTH_IO_URING_DIRECT = "bandwidth.io-uring.direct", BytesPerSecond, Max, Higher,
        "seqread: bytes per second by io_uring around the page cache, with the best transfer size",
        "With --access io-uring-direct: --depth reads are in flight, with O_DIRECT.";
}
