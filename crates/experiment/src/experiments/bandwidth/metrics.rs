//! Metrics of `bandwidth`.

use crate::metrics::metrics;

metrics! {
    BANDWIDTH_COPY = "bandwidth.copy", BytesPerSecond, Median, Higher,
        "bandwidth: copy over the largest working set with the fewest threads, median round",
        "16 bytes per element, as in STREAM: cache fills caused by writes do not count. With one \
         thread by its CPU time, with several by wall time.";
    BANDWIDTH_SCALE = "bandwidth.scale", BytesPerSecond, Median, Higher,
        "bandwidth: scale over the largest working set with the fewest threads, median round",
        "16 bytes per element, as in STREAM: cache fills caused by writes do not count. With one \
         thread by its CPU time, with several by wall time.";
    BANDWIDTH_ADD = "bandwidth.add", BytesPerSecond, Median, Higher,
        "bandwidth: add over the largest working set with the fewest threads, median round",
        "24 bytes per element, as in STREAM: cache fills caused by writes do not count. With one \
         thread by its CPU time, with several by wall time.";
    BANDWIDTH_TRIAD = "bandwidth.triad", BytesPerSecond, Median, Higher,
        "bandwidth: triad over the largest working set with the fewest threads, median round",
        "24 bytes per element, as in STREAM: cache fills caused by writes do not count. With one \
         thread by its CPU time, with several by wall time.";
    BANDWIDTH_TRIAD_THREADS = "bandwidth.triad.threads", BytesPerSecond, Median, Higher,
        "bandwidth: triad over the largest working set with the most threads together, median \
         round",
        "By wall time, so other programs reduce it. Missing with fewer CPUs than threads.";
    BANDWIDTH_TRIAD_CACHE = "bandwidth.triad.cache", BytesPerSecond, Median, Higher,
        "bandwidth: triad over the smallest working set with the fewest threads, median round",
        "The default size, 256K, fits into the second-level cache of most CPUs.";
}
